"""Planted bugs: deliberately broken variants of the product, and for each the oracles that must catch it.

They prove the oracles: an oracle that no variant ever fires may be blind.  ``pseudosim run --planted NAME`` runs the scenarios on one,
``pseudosim selftest`` runs all.

Not here, because a second defence masks it: a writer that does not end a torn line.  The loader finds the whole record behind the glued bytes
by its checksum, and nothing is lost.
"""

from __future__ import annotations

import msgspec

from simulator.planted.compaction import (
    AcceptsEmptySummary,
    BreakerNeverOpens,
    IgnoresWindow,
    KeepsUsage,
    PreviewBeforeSpill,
)
from simulator.planted.disks import NoFolderSync, NoSpillSync, NoSync
from simulator.planted.memories import (
    DropsHandLines,
    ForgetsPendingTurns,
    IndexInLog,
    IndexNeverArrives,
    JournalGoesFirst,
    LineBeforeNote,
    NoJournal,
    SlicesBytes,
    TakesTurnsTwice,
)
from simulator.planted.older_log import OlderLogProtocol
from simulator.planted.sessions import (
    DropsAMiddleMessage,
    InventsMessage,
    KeepsOpenCalls,
    RaisesOnTornLine,
    WritesOnOpen,
)
from simulator.product import Product
from simulator.values import OracleName


class Planted(msgspec.Struct, frozen=True):
    """One variant.  ``caught_by``: the oracles that must break, each of them.  ``caught_in_run``: the scenario whose run itself must go
    against it, before any crash: an expected fact, an expected failure, a request that may not be sent.  ``suite``: how the ids of scenarios
    begin in which the oracles can see it at all."""

    name: str
    why: str
    product: Product
    caught_by: tuple[OracleName, ...] = ()
    caught_in_run: str = ""
    suite: str = ""


_VARIANTS = (
    Planted(
        "older_log_protocol",
        "a replace is a marker, then the new messages one by one, one sync each; the loader clears at the marker",
        OlderLogProtocol(),
        ("O3", "O6"),
    ),
    Planted("no_sync", "an append returns before its bytes are durable", NoSync(), ("O3",)),
    Planted("no_folder_sync", "the names of new files and folders are never made durable", NoFolderSync(), ("O3",)),
    Planted(
        "no_spill_sync", "the preview stands in the history before the spilled text is durable", NoSpillSync(), ("O7",)
    ),
    Planted("keeps_open_calls", "a call without its result is loaded", KeepsOpenCalls(), ("O2",)),
    Planted("raises_on_torn_line", "one torn line makes the session unreadable", RaisesOnTornLine(), ("O1",)),
    Planted("writes_on_open", "opening for append writes", WritesOnOpen(), ("O9",)),
    Planted("invents_message", "a message loads that nobody wrote", InventsMessage(), ("O4",)),
    Planted("drops_a_middle_message", "a good line beside a bad one is skipped", DropsAMiddleMessage(), ("O5",)),
    Planted(
        "preview_before_spill",
        "the preview stands in the history before the file that it names is there",
        PreviewBeforeSpill(),
        ("O7",),
    ),
    Planted(
        "keeps_usage",
        "the usage of the replaced history is taken for that of the summary",
        KeepsUsage(),
        caught_in_run="summary_breaker/retried_until_it_works",
    ),
    Planted(
        "breaker_never_opens",
        "a summary is asked for in every turn, however often it failed",
        BreakerNeverOpens(),
        caught_in_run="summary_breaker/open_for_ten_turns",
    ),
    Planted(
        "ignores_window",
        "a request is sent that does not fit the window",
        IgnoresWindow(),
        caught_in_run="summary_breaker/window_full_drop_oldest",
    ),
    Planted(
        "accepts_empty_summary",
        "an empty summary takes the place of the history",
        AcceptsEmptySummary(),
        caught_in_run="summary_breaker/empty_once",
    ),
    Planted(
        "no_memory_journal",
        "the stores of memory are changed one after the other, without a journal",
        NoJournal(),
        ("M1",),
        suite="memory/",
    ),
    Planted(
        "memory_journal_goes_first",
        "the journal of memory is removed before the stores are durable",
        JournalGoesFirst(),
        ("M1",),
        suite="memory/",
    ),
    Planted(
        "line_before_note", "the index names a note that is not there yet", LineBeforeNote(), ("M2",), suite="memory/"
    ),
    Planted(
        "drops_hand_lines", "the index is written anew from the notes alone", DropsHandLines(), ("M3",), suite="memory/"
    ),
    Planted(
        "index_never_arrives",
        "a new session's prompt says nothing of memory",
        IndexNeverArrives(),
        ("M4",),
        suite="memory/",
    ),
    Planted(
        "index_in_log",
        "the index goes into the session with the user's message",
        IndexInLog(),
        ("M4",),
        suite="memory/",
    ),
    Planted(
        "slices_index_bytes", "the index of the prompt is cut by bytes", SlicesBytes(), ("M5",), suite="utf8_index/"
    ),
    Planted(
        "forgets_pending_turns",
        "a turn whose process died is never taken into memory",
        ForgetsPendingTurns(),
        ("M6",),
        suite="memory/",
    ),
    Planted(
        "takes_turns_twice",
        "the record of a turn stays when its update is made",
        TakesTurnsTwice(),
        ("M6",),
        suite="memory/",
    ),
)
PLANTED: dict[str, Planted] = {variant.name: variant for variant in _VARIANTS}


def product_of(variant: str) -> Product:
    """The session code of a variant; ``product`` is the real one."""
    return Product() if variant == "product" else PLANTED[variant].product
