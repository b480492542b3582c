"""Results of parts: the counts of pytest, and their summary in words and as a table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TAIL_LINES: Final = 60
FAILURE_LINES: Final = 10  # of a part, in the summary
FAILURE_WIDTH: Final = 300
_COUNT: Final = r"\d+ [a-z]+"
_SUMMARY: Final = re.compile(rf"^=* ?((?:{_COUNT}, )*{_COUNT}) in [\d.]+s\b", re.MULTILINE)
_FAILURES: Final = ("failed", "error", "errors")
UNSTEADY: Final = "unsteady"


@dataclass(frozen=True)
class Result:
    """note: the reason of a failure that is not in the log. cpu: seconds of processor time, without the programs of
    clusters."""

    part: str
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    note: str = ""
    cpu: float = 0.0

    @property
    def passed(self) -> int:
        return self.counts["passed"]

    @property
    def failed(self) -> int:
        return failed(self.counts)

    @property
    def unsteady(self) -> int:
        """Tests that passed only when they were run again."""
        return self.counts[UNSTEADY]

    @property
    def ok(self) -> bool:
        return self.failed == 0

    def __str__(self) -> str:
        words = ", ".join(f"{number} {word}" for word, number in sorted(self.counts.items()))
        return f"{words}; {self.note}" if self.note else words


def failed(found: Counter[str]) -> int:
    """How many tests and checks did."""
    return sum(found[word] for word in _FAILURES)


def run_again(first: Counter[str], again: Counter[str]) -> Counter[str]:
    """The counts of a run and of another one with what had failed in it."""
    found = first + again
    for word in _FAILURES:
        found[word] = again[word]
    found[UNSTEADY] = again["passed"]
    return +found


def counts(output: str, status: int) -> Counter[str]:
    """Counts of one command: pytest's summary, or else one check that passed or failed."""
    found: Counter[str] = Counter()
    for summary in _SUMMARY.findall(output)[-1:]:
        for entry in summary.split(", "):
            number, _, word = entry.partition(" ")
            if word in (*_FAILURES, "passed", "skipped", "xfailed", "xpassed"):
                found[word] += int(number)
    if status != 0 and not any(found[word] for word in _FAILURES):
        found["failed"] += 1  # includes errors of collection
    elif status == 0 and not found:
        found["passed"] = 1
    return found


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The end of a log, or a note that there is none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(it wrote nothing)"


def failures(log: Path) -> str:
    """The lines of a log that name what failed, as pytest and the fault campaign write them; else its last lines.

    The summary repeats them: of a long output, often only the end is kept.
    """
    lines = tail(log, lines=10**6).splitlines()
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    shown = (named or lines[-FAILURE_LINES:])[:FAILURE_LINES]
    more = [f"and {len(named) - len(shown)} more"] if len(named) > len(shown) else []
    return "\n".join([line[:FAILURE_WIDTH] for line in shown] + more)


def table(results: Iterable[Result]) -> str:
    """A line for each part, in the order of their ends."""
    rows = [
        (
            *(
                result.part,
                ("UNSTEADY" if result.unsteady else "ok") if result.ok else "FAILED",
                f"{result.seconds:.0f} s",
                f"{result.cpu:.0f} s",
            ),
            str(result),
        )
        for result in results
    ]
    head = ("PART", "RESULT", "TIME", "CPU", "TESTS")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(4)]
    return "\n".join(
        "  ".join((*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4])) for row in (head, *rows)
    )


def total(results: Iterable[Result]) -> str:
    """The last line, for programs that read the output."""
    listed = list(results)
    return f"{sum(r.passed for r in listed)} passed, {sum(r.failed for r in listed)} failed"
