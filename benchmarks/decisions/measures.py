"""The measures: what a story's counts say over all jobs and seeds, with an interval, against a bar."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rightpool.profiles.steadiness import quantile_of_t

Z95: Final = 1.96
# Student's t for a 95% interval, by degrees of freedom.
T95: Final = {1: 12.7, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


@dataclass(frozen=True, slots=True)
class Bar:
    """What a measure has to be."""

    least: float = -math.inf
    most: float = math.inf
    share: bool = True
    """Whether it counts cases; else it is a ratio of amounts."""

    def holds(self, value: float) -> bool:
        """Whether the value is within it."""
        return self.least <= value <= self.most

    def __str__(self) -> str:
        if math.isinf(self.least) and math.isinf(self.most):
            return "–"
        if math.isinf(self.least):
            return f"<= {self.most:g}"
        return f">= {self.least:g}" if math.isinf(self.most) else f"{self.least:g} to {self.most:g}"


BARS: Final = {
    "false moves": Bar(most=0.01),
    "right moves made within 2 h": Bar(least=0.95),
    "right moves undone": Bar(most=0.02),
    "wrong moves undone within 6 h": Bar(least=0.95),
    "hanging jobs back within 2 h": Bar(least=0.95),
    # Eight jobs with long pauses tell 25%.
    "lost where it hangs, booked": Bar(least=0.9, most=1.1, share=False),
    "moves of slow starters made": Bar(least=0.95),
    "moves of slow starters undone": Bar(most=0.02),
    # At most five before their verdicts make a pattern, then one after 1, 2, 4, 8, 16 and 32 hours.
    "jobs moved to a bad pool in three days": Bar(most=11.0, share=False),
    # A trial comes after twice as long as the last one.
    "wait for a mended pool ÷ time it was bad": Bar(most=1.0, share=False),
    "moved for a deadline in time, slack 15%": Bar(most=0.01),
    "moved for a deadline in time, slack 30%": Bar(most=0.01),
    "true misses repaired in time": Bar(least=0.95),
    "saved": Bar(least=0.95, most=1.05, share=False),
    "hours without a pod beyond the moves' need": Bar(most=0.0, share=False),
    "share of the oracle's saving": Bar(least=0.80, share=False),
    "share of the oracle's saving, with trials": Bar(least=0.92, share=False),
    "share of the oracle's saving, without trials": Bar(share=False),
    "moves undone, with trials ÷ without": Bar(most=0.5, share=False),
    "share of the oracle's gain, dollars": Bar(least=0.85, share=False),
    "share of the oracle's gain, time": Bar(least=0.85, share=False),
    "dollars, fleet ÷ greedy": Bar(share=False),
    "time, fleet ÷ greedy": Bar(share=False),
    "jobs that do not end": Bar(most=0.0),
    "longest wait, fleet ÷ greedy": Bar(most=1.0, share=False),
    "cost against staying": Bar(share=False),
    "moves a day, hourly prices, restart 1 min": Bar(share=False),
    # Half of those without doubt about prices.
    "moves a day, hourly prices, restart 10 min": Bar(most=4.5, share=False),
    "cost against staying, hourly prices, restart 1 min": Bar(most=1.0, share=False),
    "cost against staying, hourly prices, restart 10 min": Bar(most=1.0, share=False),
    # Four days begin and end by night.
    "moves a day, daily tariffs": Bar(most=2.25, share=False),
    "cost against staying, daily tariffs": Bar(most=0.95, share=False),
    "at a pool 2 h after its price fell": Bar(least=0.95),
    "at a pool 8 h after its price fell, in a market": Bar(least=0.95),
    "right moves made and kept where prices change": Bar(least=0.98),
    "jobs back 3 h after a pool fades": Bar(least=1.0),
    "saved where a pool fades": Bar(least=0.9, most=1.1, share=False),
    "moves for a mistyped price": Bar(most=0.0),
    "saved by a mistyped price ÷ spent": Bar(least=-0.01, most=0.01, share=False),
    "jobs home 3 h after their pool was gone": Bar(least=1.0),
    "saved where a batch grows": Bar(least=0.9, most=1.1, share=False),
    # A quarter: what one more does to a pool is not known before.
    "jobs back that slow each other": Bar(most=0.25),
    "saved where jobs slow each other": Bar(least=0.9, most=1.1, share=False),
    # Four of eight at 92%; all of them there would be at 131%.
    "cost against staying where jobs slow each other": Bar(most=0.97, share=False),
    "slow to restart, on demand in the end": Bar(least=1.0),
    "quick to restart, on spot in the end": Bar(least=1.0),
    "saved where spot is taken": Bar(least=0.9, most=1.1, share=False),
    "cost against staying where spot is taken": Bar(most=0.95, share=False),
    "wait of 1 chip, ends declared ÷ unknown": Bar(most=0.65, share=False),
    "wait of 8 chips, ends declared ÷ unknown": Bar(most=1.05, share=False),
    # Never worse than none.
    "cost with learning ÷ without, with counters": Bar(most=1.001, share=False),
    "cost with learning ÷ without, without counters": Bar(most=1.001, share=False),
    "moves undone by learning a job, with counters": Bar(most=0.0, share=False),
    "moves undone by learning a job, without counters": Bar(most=0.0, share=False),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    noise: str
    measure: str
    value: float
    low: float
    high: float
    bar: str
    ok: bool


def row(noise: str, measure: str, counts: Sequence[tuple[float, float]]) -> Row:
    """All seeds together. A share has Wilson's interval of all cases, a ratio of sums Student's over jobs."""
    bar = BARS[measure]
    # Those of NumPy compare to truths that JSON does not know.
    events, cases = float(sum(count for count, _ in counts)), float(sum(of for _, of in counts))
    value = events / cases if cases else math.nan
    low, high = _wilson(value, cases) if bar.share else _student(counts)
    return Row(noise, measure, value, low, high, str(bar), bar.holds(value))


def print_table(rows: Sequence[Row], to: Path | None) -> None:
    """Print them. to: where they are written, too, as JSON."""
    print(f"{'noise':12} {'measure':44} {'value':>8} {'low':>8} {'high':>8}  bar")
    for line in rows:
        mark = "" if line.ok else "  MISSED"
        print(f"{line.noise:12} {line.measure:44} {line.value:8.3f} {line.low:8.3f} {line.high:8.3f}  {line.bar}{mark}")
    if to is not None:
        body = [{name: _known(value) for name, value in asdict(line).items()} for line in rows]
        to.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def _known(value: object) -> object:
    """JSON has no NaN."""
    return None if isinstance(value, float) and math.isnan(value) else value


def _wilson(share: float, cases: float) -> tuple[float, float]:
    if not cases:
        return math.nan, math.nan
    share = min(max(share, 0.0), 1.0)
    scale = 1.0 + Z95**2 / cases
    middle = (share + Z95**2 / (2.0 * cases)) / scale
    half = Z95 / scale * math.sqrt(share * (1.0 - share) / cases + Z95**2 / (4.0 * cases**2))
    return max(middle - half, 0.0), middle + half


def _student(counts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Of a ratio of sums, by what is left of each amount beyond that share of its truth: a job with a small truth says
    little, and a ratio of its own says nothing."""
    count, whole = len(counts), sum(of for _, of in counts)
    if count < 2 or not whole:
        return math.nan, math.nan
    ratio = sum(amount for amount, _ in counts) / whole
    square = sum((amount - ratio * of) ** 2 for amount, of in counts) / (count - 1)
    t = T95.get(count - 1) or quantile_of_t(Z95, count - 1)
    half = t * math.sqrt(square * count) / abs(whole)
    return ratio - half, ratio + half
