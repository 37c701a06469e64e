"""``python -m tests.session.large_log [--mib 1024]``: the resume of a large log whose last snapshot lies near its end, against a full scan.

Each load runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from pseudoclaude.messages import Message
from pseudoclaude.session import load
from pseudoclaude.session.records import encode_header, encode_message, encode_replace

TS = 1_764_547_200
MIB = 1 << 20
TAIL_BYTES = MIB
ROUND_BYTES = 32 * MIB
"""A compaction after so much: what a full scan has to hold at a time."""


class Measured(msgspec.Struct, frozen=True):
    """One load.  ``digest`` stands for the messages, id and model."""

    seconds: float
    peak_kib: int
    scanned_from: int
    digest: str


def write_log(path: Path, size: int) -> None:
    """A log of about ``size`` bytes in which a session is compacted now and then, the last time ``TAIL_BYTES`` from the end."""
    text = "All work and no play makes this line longer. " * 44
    with path.open("wb") as out:
        out.write(encode_header("large", TS, "/project"))
        n, since = 0, 0
        while out.tell() < size - TAIL_BYTES:
            n += 1
            since += out.write(encode_message(Message("user" if n % 2 else "assistant", f"{n} {text}"), n, TS))
            if since > ROUND_BYTES:
                n += 1
                since = 0
                out.write(encode_replace("compact", [Message("user", f"summary {n}")], n, TS, model="m"))
        n += 1
        snapshot = [Message("user", "summary"), Message("assistant", text * 8)]
        out.write(encode_replace("compact", snapshot, n, TS, model="m"))
        while out.tell() < size:
            n += 1
            out.write(encode_message(Message("user" if n % 2 else "assistant", f"{n} {text}"), n, TS))


def measure(path: Path, *, scan_all: bool) -> Measured:
    """One load in a fresh process."""
    command = [sys.executable, "-m", "tests.session.large_log", "--load", str(path), *(["--all"] if scan_all else [])]
    done = subprocess.run(command, capture_output=True, check=True)
    return msgspec.json.decode(done.stdout, type=Measured)


def _load(path: str, scan_all: bool) -> Measured:
    before = time.perf_counter()
    loaded = load(path, scan_all=scan_all)
    seconds = time.perf_counter() - before
    said = msgspec.json.encode((loaded.id, loaded.model, loaded.messages))
    digest = hashlib.sha256(said).hexdigest()
    return Measured(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, loaded.scanned_from, digest)


def main() -> int:
    """Print both loads and their ratio; 1 if they differ in what they give."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--load", default="")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args()
    if args.load:
        sys.stdout.buffer.write(msgspec.json.encode(_load(args.load, args.all)))
        return 0
    with tempfile.TemporaryDirectory() as root:
        path = Path(root, "conversation.jsonl")
        write_log(path, args.mib * MIB)
        small = Path(root, "small.jsonl")
        write_log(small, TAIL_BYTES + 1)
        alone, fast, full = measure(small, scan_all=True), measure(path, scan_all=False), measure(path, scan_all=True)
        size = path.stat().st_size
    sys.stdout.write(
        f"a log of {size / MIB:,.0f} MiB, its last snapshot {(size - fast.scanned_from) / MIB:.1f} MiB from the end\n"
    )
    for name, one in (("1 MiB alone", alone), ("resume", fast), ("full scan", full)):
        sys.stdout.write(f"  {name:<12} {one.seconds * 1000:10.1f} ms   peak {one.peak_kib / 1024:8.1f} MiB\n")
    sys.stdout.write(
        f"resume is {full.seconds / fast.seconds:,.0f} times faster, with {full.peak_kib / fast.peak_kib:.1f} times less memory\n"
    )
    return int(fast.digest != full.digest)


if __name__ == "__main__":
    sys.exit(main())
