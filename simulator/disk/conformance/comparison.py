"""The comparison: one script, three file systems, call by call, and the whole tree at the end.

Every answer of SimFileSystem must equal that of the real folder; every answer of pyfakefs must too, or be a known deviation.  Of each
script the first difference is reported, with the calls that led to it: what follows one is mostly its consequence.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import msgspec

from pseudoclaude.ports import FileSystem
from simulator.disk.conformance.deviations import KNOWN, Case, known_deviation
from simulator.disk.conformance.pyfake import PyFakeFileSystem
from simulator.disk.conformance.running import DONE, ScriptRun
from simulator.disk.conformance.scripts import Script, generate

TOP_NAME = "w"
ANSWER_SHOWN = 300


class Difference(msgspec.Struct, frozen=True):
    """A call that ``file_system`` answered differently from the real folder; ``pyfakefs`` is "-" where it no longer took part."""

    file_system: str
    script: Script
    index: int
    simulated: str
    pyfakefs: str
    real: str

    def __str__(self) -> str:
        answers = {"SimFileSystem": self.simulated, "pyfakefs": self.pyfakefs, "real folder": self.real}
        said = "\n".join(f"  {name:13} {_brief(answer)}" for name, answer in answers.items())
        head = f"{self.file_system} differs in script {self.script.number}, call {self.index}"
        return f"{head}: {self.script.calls[self.index]}\n{said}\nthe calls up to it\n{self.script.up_to(self.index)}"


class Report(msgspec.Struct):
    """What a comparison found.

    ``differences``: SimFileSystem against the real folder.  ``pyfakefs_differences``: pyfakefs against it, beyond what is known.
    ``deviations``: known ones by name, with their count.  ``pyfakefs_calls``: calls that all three answered; ``pyfakefs_scripts``: scripts in
    which all three took part to the end.  ``outcomes``: how often each call gave each kind of answer on the real folder.
    """

    seed: int
    scripts: int = 0
    calls: int = 0
    differences: list[Difference] = []
    pyfakefs_differences: list[Difference] = []
    deviations: dict[str, int] = {}
    pyfakefs_calls: int = 0
    pyfakefs_scripts: int = 0
    outcomes: dict[str, int] = {}

    @property
    def held(self) -> bool:
        return self.scripts > 0 and not self.differences and not self.pyfakefs_differences

    def text(self) -> str:
        """The report for people; no clock and no path of this machine."""
        lines = [
            f"{self.scripts} scripts, {self.calls} calls, {len(self.outcomes)} kinds of outcome, seed {self.seed}",
            f"SimFileSystem against a real folder: {len(self.differences)} differences",
            f"pyfakefs against a real folder: {len(self.pyfakefs_differences)} differences beyond its known deviations; "
            f"{self.pyfakefs_calls} calls compared, {self.pyfakefs_scripts} scripts to their end",
        ]
        for known in KNOWN:
            lines.append(f"  {self.deviations.get(known.name, 0):5} {known.name}: {known.reason}")
        lines += [str(difference) for difference in (*self.differences, *self.pyfakefs_differences)]
        return "\n".join(lines)


def compare_file_systems(
    scripts: int, seed: int, enough: int, *, simulated: Callable[[], FileSystem], real: FileSystem, real_folder: str
) -> Report:
    """Run ``scripts`` scripts on a new simulated file system each, a new pyfakefs each, and a new folder in ``real_folder``."""
    report = Report(seed, differences=[], pyfakefs_differences=[], deviations={}, outcomes={})
    for number in range(scripts):
        if enough and len(report.differences) >= enough:
            break
        folder = posixpath.join(real_folder, str(number))
        real.mkdir(folder)
        runs = (_start(simulated(), "/"), _start(PyFakeFileSystem(), "/"), _start(real, folder))
        _Trial(generate(seed, number), report).run(*runs)
        runs[2].close()
    return report


def _start(fs: FileSystem, folder: str) -> ScriptRun:
    top = posixpath.join(folder, TOP_NAME)
    fs.mkdir(top)
    return ScriptRun(fs, top)


class _Trial:
    """One script on the three."""

    def __init__(self, script: Script, report: Report) -> None:
        self._script = script
        self._report = report
        self._fake_takes_part = True
        self._truncated = False

    def run(self, simulated: ScriptRun, fake: ScriptRun, real: ScriptRun) -> None:
        report = self._report
        report.scripts += 1
        for index, call in enumerate(self._script.calls):
            report.calls += 1
            truth = real.answer(call)
            fakes = fake.answer(call) if self._fake_takes_part else "-"
            ours = simulated.answer(call)
            outcome = f"{call.kind} {_outcome(truth)}"
            report.outcomes[outcome] = report.outcomes.get(outcome, 0) + 1
            if self._fake_takes_part:
                report.pyfakefs_calls += 1
                if fakes != truth:
                    self._judge_fake(index, ours, fakes, truth)
            if ours != truth:
                report.differences.append(Difference("SimFileSystem", self._script, index, ours, fakes, truth))
                return
            self._truncated |= call.kind == "truncate" and truth == DONE
        report.pyfakefs_scripts += self._fake_takes_part

    def _judge_fake(self, index: int, ours: str, fakes: str, truth: str) -> None:
        known = known_deviation(Case(self._script.calls[index], fakes, truth, self._truncated))
        if known is None:
            difference = Difference("pyfakefs", self._script, index, ours, fakes, truth)
            self._report.pyfakefs_differences.append(difference)
            self._fake_takes_part = False
            return
        self._report.deviations[known.name] = self._report.deviations.get(known.name, 0) + 1
        self._fake_takes_part = known.harmless or (_is_error(fakes) and _is_error(truth))


def _is_error(answer: str) -> bool:
    return answer.isidentifier() and answer not in (DONE, "True", "False")


def _outcome(answer: str) -> str:
    return answer if answer.isidentifier() else "value"


def _brief(answer: str) -> str:
    shown = answer.replace("\n", "; ")
    return shown if len(shown) <= ANSWER_SHOWN else f"{shown[:ANSWER_SHOWN]}... ({len(shown)} characters)"
