"""``pseudosim corpus fetch``: pinned, verified, unpacked without leaving the cache - tried offline, with archives made here."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from simulator.commands.corpus import fetch_corpus
from simulator.replies.cassettes import load_cassette
from simulator.replies.corpus import (
    CorpusUnavailable,
    Download,
    Source,
    as_vcrpy,
    default_cache,
    fetch,
    pip_download,
    sources,
)
from simulator.scenario import ScenarioError
from tests.shared import shared_file

ROOT = Path(__file__).resolve().parents[2]
TOP = "fake_recordings-1.0"
REQUEST = {
    "method": "POST",
    "uri": "https://api.anthropic.com/v1/messages",
    "headers": {"content-type": ["application/json"]},
    "body": '{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}',
}
RESPONSE = {
    "status": {"code": 200, "message": "OK"},
    "headers": {"content-type": ["application/json"]},
    "body": {"string": '{"model":"m","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":null}'},
}
CASSETTE = yaml.safe_dump({"interactions": [{"request": REQUEST, "response": RESPONSE}], "version": 1}).encode()
TWO_LISTS = yaml.safe_dump({"requests": [REQUEST, REQUEST], "responses": [RESPONSE, RESPONSE]}).encode()
BACKEND = b"""
import pathlib
def get_requires_for_build_wheel(config_settings=None): return []
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = pathlib.Path(folder, "fake_recordings-1.0.dist-info"); info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\\nName: fake-recordings\\nVersion: 1.0\\n")
    return info.name
"""
"""A build backend that needs nothing from anywhere."""
PACKAGE = {
    f"{TOP}/pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    f"{TOP}/backend.py": BACKEND,
    f"{TOP}/PKG-INFO": b"Metadata-Version: 2.1\nName: fake-recordings\nVersion: 1.0\n",
    f"{TOP}/tests/cassettes/plain.yaml": CASSETTE,
    f"{TOP}/tests/cassettes/deeper/lists.yaml.gz": gzip.compress(TWO_LISTS, mtime=0),
    f"{TOP}/tests/other/not_wanted.yaml": CASSETTE,
    f"{TOP}/tests/cassettes/README.md": b"not a recording",
}


def _archive(folder: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    """A source archive with these files, and symbolic links."""
    path = folder / f"{TOP}.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            packed.addfile(member)
    return path


def _source(archive: Path, *paths: str, sha256: str = "") -> Source:
    digest = sha256 or hashlib.sha256(archive.read_bytes()).hexdigest()
    return Source("fake-recordings", "1.0", digest, paths or ("tests/cassettes",), 2, "3 Anthropic", "")


def _given(archive: Path) -> Download:
    return lambda _source, _folder: archive


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return _archive(tmp_path, PACKAGE)


def _tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


# --- what arrives ----------------------------------------------------------------------------------------------


def test_only_the_recordings_arrive_and_all_can_be_read(archive: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    fetched = fetch(_source(archive), cache, _given(archive))
    assert _tree(cache) == [
        "fake-recordings-1.0/tests/cassettes/deeper/lists.yaml",
        "fake-recordings-1.0/tests/cassettes/plain.yaml",
    ]
    assert (fetched.files, fetched.interactions, fetched.unreadable, fetched.was_there) == (
        2,
        {"Anthropic": 3},
        (),
        False,
    )
    assert str(fetched).startswith("fake-recordings 1.0: 2 recordings (3 Anthropic) in ")
    converted = load_cassette(fetched.folder / "tests/cassettes/deeper/lists.yaml")
    assert [one.reply for one in converted.interactions] == [str(RESPONSE["body"]["string"]).encode()] * 2  # type: ignore[index]


def test_what_is_there_is_not_fetched_again(archive: Path, tmp_path: Path) -> None:
    asked: list[Source] = []

    def download(source: Source, _folder: Path) -> Path:
        asked.append(source)
        return archive

    fetch(_source(archive), tmp_path / "cache", download)
    again = fetch(_source(archive), tmp_path / "cache", download)
    assert len(asked) == 1
    assert again.was_there
    assert "already there" in str(again)


def test_a_pattern_takes_only_the_names_it_fits(archive: Path, tmp_path: Path) -> None:
    fetch(_source(archive, "tests/cassettes/*/*.yaml.gz", "tests/nothing"), tmp_path / "cache", _given(archive))
    assert _tree(tmp_path / "cache") == ["fake-recordings-1.0/tests/cassettes/deeper/lists.yaml"]


def test_a_recording_nobody_can_read_is_named(tmp_path: Path) -> None:
    archive = _archive(tmp_path, {f"{TOP}/tests/cassettes/bad.yaml": b"- 1\n", **PACKAGE})
    fetched = fetch(_source(archive), tmp_path / "cache", _given(archive))
    assert (fetched.files, fetched.interactions) == (3, {"Anthropic": 3})
    assert "bad.yaml" in str(fetched)
    assert "not readable" in str(fetched)


@pytest.mark.parametrize(
    "data", [b"requests: [1]\nresponses: []\n", b"requests: 3\n", b"responses: [\n", b"", CASSETTE]
)
def test_what_is_not_two_equal_lists_stays_as_it_is(data: bytes) -> None:
    assert as_vcrpy(data) == data


# --- what does not ---------------------------------------------------------------------------------------------

OUTSIDE = [
    "../evil.yaml",
    f"{TOP}/tests/cassettes/../../../evil.yaml",
    "/evil.yaml",
    f"{TOP}/../tests/cassettes/evil.yaml",
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_name_leads_out_of_the_cache(name: str, tmp_path: Path) -> None:
    archive = _archive(tmp_path, {name: CASSETTE, **PACKAGE})
    before = _tree(tmp_path)
    fetch(_source(archive, "tests/cassettes", ""), tmp_path / "cache", _given(archive))
    assert not [path for path in tmp_path.rglob("*") if "evil" in path.name]
    assert [path for path in _tree(tmp_path) if not path.startswith("cache/")] == before


def test_no_link_is_followed_or_made(tmp_path: Path) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_bytes(CASSETTE)
    links = {f"{TOP}/tests/cassettes/link.yaml": str(secret), f"{TOP}/tests/cassettes/deeper": str(tmp_path)}
    archive = _archive(tmp_path, PACKAGE, links)
    fetched = fetch(_source(archive), tmp_path / "cache", _given(archive))
    assert fetched.files == 2
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_symlink()]


def test_another_archive_than_the_pinned_one_is_not_unpacked(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(
        CorpusUnavailable, match=r"not the pinned one.*fake-recordings 1.0.*Nothing of it is in the cache"
    ):
        fetch(_source(archive, sha256="0" * 64), tmp_path / "cache", _given(archive))
    assert _tree(tmp_path / "cache") == []


@pytest.mark.parametrize(
    "make",
    [lambda folder: _archive(folder, {f"{TOP}/setup.py": b""}), lambda folder: _cut(_archive(folder, PACKAGE))],
    ids=["nothing in it", "cut off"],
)
def test_a_failure_leaves_nothing_behind(make: Callable[[Path], Path], tmp_path: Path) -> None:
    archive = make(tmp_path)
    with pytest.raises(CorpusUnavailable):
        fetch(_source(archive), tmp_path / "cache", _given(archive))
    assert list((tmp_path / "cache").iterdir()) == []


def _cut(archive: Path) -> Path:
    archive.write_bytes(archive.read_bytes()[:-200])
    return archive


# --- through pip -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_pip_gets_it_by_name_and_checks_the_hash(archive: Path, tmp_path: Path) -> None:
    offline = ("--no-index", "--find-links", str(archive.parent))
    fetched = fetch(_source(archive), tmp_path / "cache", partial(pip_download, options=offline))
    assert (fetched.files, fetched.interactions) == (2, {"Anthropic": 3})
    wrong = _source(archive, sha256="0" * 64)
    with pytest.raises(CorpusUnavailable, match=r"pip could not download it: .*(HASH|hash)"):
        fetch(wrong, tmp_path / "other", partial(pip_download, options=offline))


@pytest.mark.slow
def test_the_command_says_what_it_could_not_get_and_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from simulator.cli import main; main()", "corpus", "fetch", "magentic", "chatlas"]
    options = ["--into", str(tmp_path / "cache"), "--find-links", str(tmp_path)]
    run = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 1
    assert [line.count("pip could not download it") for line in run.stdout.splitlines()] == [1, 1]
    assert ["(magentic 0.41.1)" in line for line in run.stdout.splitlines()] == [True, False]
    assert "Traceback" not in run.stderr


def test_a_package_that_is_not_in_the_list_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="leftpad: not in the list of sources, which holds chatlas, crewai"):
        fetch_corpus(["leftpad"], tmp_path, None)


# --- the list --------------------------------------------------------------------------------------------------


def test_every_source_is_pinned() -> None:
    rows = sources()
    assert len({row.package for row in rows}) == len(rows) >= 9
    for row in rows:
        assert len(bytes.fromhex(row.sha256)) == 32
        assert row.files > 0
        assert all(path and not path.startswith("/") and ".." not in path for path in row.paths)


def test_the_list_is_the_shared_one() -> None:
    assert sources() == sources(shared_file("cassettes/sources.tsv").read_text(encoding="utf-8").splitlines())


def test_the_cache_is_the_users_and_outside_the_repository() -> None:
    assert default_cache().parts[-2:] == ("pseudoclaude", "corpus")
    assert ROOT not in default_cache().parents
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    assert str(default_cache()).startswith(base)
