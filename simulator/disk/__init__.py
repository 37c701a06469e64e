"""The simulated disk: a file system in memory that writes every call into one log, and can be told to fail."""

from simulator.disk.faults import DiskFault, FaultPlan
from simulator.disk.filesystem import ProcessKilled, SimFileSystem
from simulator.disk.oplog import OpLog

__all__ = ["DiskFault", "FaultPlan", "OpLog", "ProcessKilled", "SimFileSystem"]
