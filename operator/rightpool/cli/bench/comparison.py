"""How a run of a program compares with an earlier one: a verdict by numbers that both machines share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree

from rightpool.api.wording import number, percent
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.bench.profile import BenchProfile
from rightpool.planning.judge.difference import Difference
from rightpool.planning.judge.moved_texts import PARTS, MeasuredStep, moved_text, percent_of
from rightpool.planning.judge.series import RateSeries
from rightpool.planning.judge.two_runs import OF_TWO_RUNS, Repeats, difference_of_runs, doubt
from rightpool.planning.judge.verdict import BETTER_Z, TOLERATED, Verdict, verdict
from rightpool.profiles.profile import SHARED

_MOST: Final = 30  # runs that anybody would wait for
_EXIT: Final = {Verdict.BETTER: 0, Verdict.SAME: 0, Verdict.WORSE: 1, Verdict.IDLE: 1}
_UNKNOWN: Final = 3
_FEWEST_PAIRS: Final = 3
# From these shares of the time on a run says nothing of its program.
_VOID: Final = {"throttle": "a fault held its clocks down", "others": "others worked on its chip"}


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs side by side."""

    baseline: BenchProfile
    """The earlier one."""
    candidate: BenchProfile
    """The one that is judged."""
    by: str
    """What is compared; empty where nothing can be."""
    difference: Difference | None
    """By how much what a unit of work takes differs; None where nothing can be compared."""

    @property
    def verdict(self) -> Verdict:
        """Open where it can't be told."""
        return Verdict.OPEN if self.difference is None else verdict(self.difference, OF_TWO_RUNS)

    @property
    def exit_status(self) -> int:
        """0 the same or better, 1 worse, 3 not known."""
        return _EXIT.get(self.verdict, _UNKNOWN)

    def text(self) -> str:
        """One sentence: what was found, by how much, and why."""
        for which, run in (("baseline", self.baseline), ("candidate", self.candidate)):
            for reading, why in _VOID.items():
                if run.readings.get(reading, 0.0) >= SHARED:
                    return f"not known: the {which} was disturbed, {why}: measure it again"
        if self.difference is None:
            return _incomparable(self.baseline, self.candidate)
        ratio, sd = -self.difference.measured, doubt(self.difference, BETTER_Z)
        span = f"{percent_of(ratio - sd)} to {percent_of(ratio + sd)}"
        match self.verdict:
            case Verdict.BETTER:
                return f"better: {self.by} changed by {percent_of(ratio)} ({span}){self._moved(-1.0)}"
            case Verdict.SAME:
                return f"no worse: {self.by} changed by {percent_of(ratio)} ({span}), {percent(TOLERATED)} is tolerated"
            case Verdict.WORSE:
                return f"worse: {self.by} changed by {percent_of(ratio)} ({span}){self._moved(1.0)}"
            case Verdict.IDLE:
                return "worse: the program did nothing"
        return f"not known: {self.by} changed by {percent_of(ratio)} ({span}): {self._more()}"

    def _more(self) -> str:
        """What would tell."""
        assert self.difference is not None
        times = max(1, len(self.candidate.runs))
        wanted = times * (doubt(self.difference, BETTER_Z) / math.log1p(TOLERATED)) ** 2
        needed = min(_MOST, max(times + 1, _FEWEST_PAIRS, math.ceil(wanted)))
        return f"measure {needed} times, in turns (--repeat {needed} --against)"

    def _moved(self, sign: float) -> str:
        """What has grown most in time, or with a sign of -1 has shrunk most."""
        both, alike = (self.baseline, self.candidate), self.baseline.unit is self.candidate.unit
        before, after = (MeasuredStep(one.rate, one.shares if alike else {}, one.model.precision) for one in both)
        moved = moved_text(before, after, sign)
        return moved and f"; {moved}"

    def markdown(self) -> str:
        """A table with the sentence above it."""
        rows: list[tuple[str, ...]] = [("", "baseline", "candidate"), ("---", "---", "---")]
        both = (self.baseline, self.candidate)
        rows += [
            ("commit", *(one.commit or "–" for one in both)),
            ("chips", *(f"{one.chips} × {one.chip}" for one in both)),
            ("rate", *(f"{number(one.rate)} {one.unit.value.lower()}/s" for one in both)),
            ("model FLOPs utilization", *(_or_none(one.flops_utilization) for one in both)),
            ("bottleneck", *(one.bottleneck for one in both)),
        ]
        if any(one.taken_by_others for one in both):
            rows.append(("others had its cores", *(_or_none(one.taken_by_others) for one in both)))
        for part, words in PARTS.items():
            if any(part in one.shares for one in both):
                rows.append((words, *(_or_none(one.shares.get(part)) for one in both)))
        rows.append(("memory", *("–" if (m := one.memory_bytes) is None else f"{m / 2**30:.2f} GiB" for one in both)))
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        return f"**{self.candidate.name}**: {self.text()}\n\n{table}\n"

    def measures(self) -> list[dict[str, object]]:
        """As github-action-benchmark reads them with the tool customBiggerIsBetter: names, units, values, ranges."""
        one, extra = self.candidate, self.text()
        span = (max(one.windows) - min(one.windows)) / 2.0
        rate = {
            "name": f"{one.name}: rate",
            "unit": f"{one.unit.plural}/s",
            "value": one.rate,
            "range": f"± {span:.4g}",
        }
        found: list[dict[str, object]] = [{**rate, "extra": extra}]
        if one.flops_utilization is not None:
            name = f"{one.name}: model FLOPs utilization"
            found.append({"name": name, "unit": "%", "value": one.flops_utilization * 100.0})
        return found

    def junit(self) -> str:
        """One case. What is not known is skipped."""
        suite = ElementTree.Element("testsuite", name="rightpool bench", tests="1")
        case = ElementTree.SubElement(suite, "testcase", classname="rightpool.bench", name=self.candidate.name)
        counts = {0: "", 1: "failure", _UNKNOWN: "skipped"}
        tag = counts[self.exit_status]
        suite.set("failures", str(int(tag == "failure")))
        suite.set("skipped", str(int(tag == "skipped")))
        if tag:
            ElementTree.SubElement(case, tag, message=self.text())
        ElementTree.SubElement(case, "system-out").text = self.markdown()
        ElementTree.indent(suite)
        return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def compare_runs(baseline: BenchProfile, candidate: BenchProfile) -> RunComparison:
    """By rate on equal chips, else by model FLOPs utilization."""
    if any(run.readings.get(reading, 0.0) >= SHARED for run in (baseline, candidate) for reading in _VOID):
        return RunComparison(baseline, candidate, "", None)
    if baseline.unit is candidate.unit and _place(baseline) == _place(candidate):
        difference = difference_of_runs(_series(baseline), _series(candidate), _repeats(baseline, candidate))
        return RunComparison(baseline, candidate, f"{WorkUnit(candidate.unit).value.lower()}/s", difference)
    shares = baseline.flops_utilization, candidate.flops_utilization
    if shares[0] and shares[1]:
        before, after = _series(baseline, shares[0]), _series(candidate, shares[1])
        return RunComparison(baseline, candidate, "model FLOPs utilization", difference_of_runs(before, after))
    return RunComparison(baseline, candidate, "", None)


def _place(one: BenchProfile) -> tuple[str, int]:
    return one.accelerator or one.chip, one.chips


def _repeats(baseline: BenchProfile, candidate: BenchProfile) -> Repeats:
    paired = baseline.session == candidate.session != "" and len(baseline.runs) == len(candidate.runs)
    return Repeats(baseline.runs, candidate.runs, in_turns=paired)


def _series(one: BenchProfile, utilization: float | None = None) -> RateSeries:
    """utilization: what the windows' mean is taken for, if not for the rate."""
    scale = 1.0 if utilization is None else utilization / one.rate
    rates = tuple(rate * scale for rate in one.windows)
    return RateSeries(one.rate * scale, len(rates), rates, rates, one.window_seconds)


def _incomparable(baseline: BenchProfile, candidate: BenchProfile) -> str:
    if baseline.unit is not candidate.unit and _place(baseline) == _place(candidate):
        units = f"{baseline.unit.value.lower()} and {candidate.unit.value.lower()}"
        return f"not known: the runs count {units}, and utilization of FLOPs is missing"
    chips = f"{baseline.chips} × {baseline.chip} and {candidate.chips} × {candidate.chip}"
    return f"not known: {chips} differ, and utilization of FLOPs is missing; measure both on one kind of chip"


def _or_none(share: float | None) -> str:
    return "–" if share is None else percent(share)
