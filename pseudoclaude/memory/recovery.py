"""Making one update all or nothing across two stores, and finishing the one that was interrupted.

Everything here runs with the locks held.  The journal lives in the user's store when it touches that, else in the project's.  A
journal that is found is first put in place again, since it may be visible and not durable, and then applied from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pseudoclaude.errors import MemoryFailed
from pseudoclaude.memory.journal import Journal
from pseudoclaude.memory.store import Store, project_store
from pseudoclaude.ports import Clock, FileSystem

Report = Callable[[str], None]


class OpenStores(msgspec.Struct, frozen=True):
    """The stores whose locks are held; None for one that does not exist or cannot be reached.

    ``user`` and ``project`` are the same object where both levels share one folder.
    """

    fs: FileSystem
    clock: Clock
    project_root: str
    user: Store | None
    project: Store | None

    @property
    def distinct(self) -> tuple[Store, ...]:
        stores = [store for store in (self.user, self.project) if store is not None]
        return tuple(stores[:1] if len(stores) == 2 and stores[0] is stores[1] else stores)


def finish_journals(stores: OpenStores, report: Report) -> None:
    """Settle the stores and finish every journal in them.

    Raises ``MemoryFailed`` when one of *these* stores cannot be brought to its new state; another project that cannot be
    reached is reported and keeps its part.
    """
    for store in stores.distinct:
        store.settle()
    for store in stores.distinct:
        found, problems = store.journals()
        for problem in problems:
            report(problem)
        for name, journal in found:
            store.put_journal(name, journal)
            _finish(stores, store, name, journal, report)


def make_update(stores: OpenStores, journal: Journal, report: Report) -> None:
    """Make the update that ``journal`` describes.  Raises ``MemoryFailed``: then it is not made, or made by the next start or update."""
    home = stores.user if journal.of("user") else stores.project
    assert home is not None, "changes are planned for reachable stores only"
    for store in stores.distinct:
        store.index_text()  # an index that cannot be merged into is found out before there is anything to finish
    _finish(stores, home, home.add_journal(journal), journal, report)


def _finish(stores: OpenStores, home: Store, name: str, journal: Journal, report: Report) -> None:
    if home.level == "project":
        _apply_project(home, journal, report)
        home.drop_journal(name)
        return
    _tell(home.apply(journal), report)
    for_project = bool(journal.of("project") or journal.pending)
    if not for_project or _reach_project(stores, journal, report):
        home.drop_journal(name)
    elif journal.of("user"):
        home.put_journal(name, journal.without("user"))


def _apply_project(store: Store, journal: Journal, report: Report) -> None:
    _tell(store.apply(journal) if store.level == "project" else [], report)
    if journal.pending:
        store.drop_pending(journal.pending)


def _reach_project(stores: OpenStores, journal: Journal, report: Report) -> bool:
    """Apply the project's part; False, with a report, when its project is somewhere else and cannot be reached now."""
    if stores.project is not None and journal.project == stores.project_root:
        _apply_project(stores.project, journal, report)
        return True
    try:
        store = project_store(stores.fs, journal.project)
        store.prepare()
        with store.lock(stores.clock, 0) as held:
            if held:
                store.settle()
                _apply_project(store, journal, report)
                return True
            reason = "another process works in its store"
    except MemoryFailed as error:
        reason = str(error)
    report(
        f"An update of the project {journal.project} waits until the project can be reached: {reason}"
        " Its part is kept; everything else goes on."
    )
    return False


def _tell(sentences: list[str], report: Report) -> None:
    for sentence in sentences:
        report(sentence)
