"""What came of a part: counts, as pytest gives them, and the words and the table that tell of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TAIL_LINES: Final = 60
_COUNT: Final = r"\d+ [a-z]+"
_SUMMARY: Final = re.compile(rf"^=* ?((?:{_COUNT}, )*{_COUNT}) in [\d.]+s\b", re.MULTILINE)
_FAILURES: Final = ("failed", "error", "errors")


@dataclass(frozen=True)
class Result:
    """note: why it failed, where its log alone does not say it."""

    part: str
    seconds: float
    counts: Counter[str] = field(default_factory=Counter)
    note: str = ""

    @property
    def passed(self) -> int:
        return self.counts["passed"]

    @property
    def failed(self) -> int:
        return sum(self.counts[word] for word in _FAILURES)

    @property
    def ok(self) -> bool:
        return self.failed == 0

    def __str__(self) -> str:
        words = ", ".join(f"{number} {word}" for word, number in sorted(self.counts.items()))
        return f"{words}; {self.note}" if self.note else words


def counts(output: str, status: int) -> Counter[str]:
    """Of one command: what pytest says of its tests, and else one check that passed or failed."""
    found: Counter[str] = Counter()
    for summary in _SUMMARY.findall(output)[-1:]:
        for entry in summary.split(", "):
            number, _, word = entry.partition(" ")
            if word in (*_FAILURES, "passed", "skipped", "xfailed", "xpassed"):
                found[word] += int(number)
    if status != 0 and not any(found[word] for word in _FAILURES):
        found["failed"] += 1  # also where pytest could not even collect
    elif status == 0 and not found:
        found["passed"] = 1
    return found


def tail(log: Path, lines: int = TAIL_LINES) -> str:
    """The end of a log; why there is none, where there is none."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(it wrote nothing)"


def table(results: Iterable[Result]) -> str:
    """A line for each part, in the order in which they ended."""
    rows = [
        (result.part, "ok" if result.ok else "FAILED", f"{result.seconds:.0f} s", str(result)) for result in results
    ]
    head = ("PART", "RESULT", "TIME", "TESTS")
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(3)]
    return "\n".join(
        "  ".join((*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3])) for row in (head, *rows)
    )


def total(results: Iterable[Result]) -> str:
    """The last line, for whoever reads it by program."""
    listed = list(results)
    return f"{sum(r.passed for r in listed)} passed, {sum(r.failed for r in listed)} failed"
