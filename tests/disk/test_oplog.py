"""The log names the line of the product that made a call, and no path of the machine."""

from __future__ import annotations

import re
import sys
from pathlib import PurePath

from pseudoclaude.session import SessionWriter
from simulator.disk import OpLog, SimFileSystem
from simulator.values import Mark, Op


def test_a_call_names_the_line_that_made_it():
    log = OpLog()
    fs = SimFileSystem(log=log)
    fs.mkdir("/d")
    line = sys._getframe().f_lineno - 1
    fd = fs.open("/d/f", "create")
    fs.fdatasync(fd)
    fs.close(fd)
    assert [op.site for op in log.ops] == [f"tests/disk/test_oplog.py:{line + at}" for at in (0, 2, 3, 4)]


def test_calls_of_the_product_name_the_product():
    log = OpLog()
    fs = SimFileSystem(log=log)
    with SessionWriter.open("/s", fs=fs):
        pass
    sites = {op.site for op in log.ops}
    assert sites
    assert all(re.fullmatch(r"pseudoclaude/[a-z_/]+\.py:\d+", site) for site in sites)


def test_code_from_elsewhere_is_named_by_its_file_alone():
    log = OpLog()
    folder = PurePath("/somewhere/else")
    code = compile("fs.mkdir('/d')", str(folder / "script.py"), "exec")
    exec(code, {"fs": SimFileSystem(log=log)})
    assert [op.site for op in log.ops] == ["script.py:1"]


def test_marks_of_the_harness_stand_between_the_calls():
    log = OpLog()
    fs = SimFileSystem(log=log)
    log.issue("/s", 1)
    fs.mkdir("/s")
    log.ack("/s", 1, durable=False)
    assert [op.kind for op in log.ops] == ["issue", "mkdir", "ack"]
    assert log.ops[0] == Op("issue", mark=Mark("/s", 1))
    assert log.ops[2] == Op("ack", mark=Mark("/s", 1, durable=False))
