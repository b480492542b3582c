"""Predictions beside what was measured: errors, coverage, and the lines that a benchmark prints of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rightpool.api.choices import Batch
from rightpool.api.estimate import Z80
from rightpool.api.placement import Placement
from rightpool.api.pool import LinkKind
from rightpool.api.traits import ModelTraits
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.pool import Pool
from rightpool.prediction.features import Features, features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations, Missing, Predictor
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey

# From so many pairs on, the share inside an interval is judged.
JUDGED = 30
INTERVAL = "80% interval"


@dataclass(frozen=True, slots=True)
class Scored:
    """A prediction and what was measured, in logarithms."""

    source: str
    target: str
    """The accelerator that was predicted."""
    log: float
    sd: float
    """Of the log; NaN where nothing is said of it."""
    truth: float
    rules: Mapping[str, float] = field(default_factory=dict)
    """What simple rules say, by name."""

    @property
    def error(self) -> float:
        """Relative error."""
        return abs(math.expm1(self.log - self.truth))

    @property
    def inside(self) -> bool:
        """Whether the measurement is in the 80% interval."""
        return abs(self.log - self.truth) <= Z80 * self.sd + 1e-12


@dataclass(frozen=True, slots=True)
class Bar:
    """What a case must reach, as fractions."""

    median: float = math.inf
    p90: float = math.inf
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"<= {self.median:.1%} / {self.p90:.0%}".replace(".0%", "%")


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, and of the JSON list."""

    case: str
    source: str
    pairs: int
    median: float | None = None
    p90: float | None = None
    coverage: float | None = None
    regret: float | None = None
    order: float | None = None
    """The share of pairs in the right order."""
    bar: str | None = None
    ok: bool | None = None

    def __str__(self) -> str:
        parts = [f"{self.case:44} {self.source:22} {self.pairs:6}"]
        if self.median is not None and self.p90 is not None:
            parts.append(f"{self.median:6.1%} {self.p90:6.1%}")
        if self.coverage is not None:
            parts.append(f"in 80%: {self.coverage:4.0%}")
        if self.regret is not None:
            parts.append(f"{self.regret:6.1%}")
        if self.order is not None:
            parts.append(f"{self.order:6.1%}")
        if self.bar is not None:
            parts.append(f"{self.bar}  {'pass' if self.ok else 'FALLS SHORT'}")
        return "  ".join(parts)


def quantiles(errors: Sequence[float]) -> tuple[float, float]:
    """Median and 90th percentile."""
    return float(np.median(errors)), float(np.quantile(errors, 0.9))


def summed(
    case: str, scored: Sequence[Scored], bar: Bar | None = None, split: bool = True, judged: bool = True
) -> list[Line]:
    """The case as a whole, by source where there are several, the simple rules on the same pairs, and its intervals.

    judged: whether these have a bar, which an ablation has not.
    """
    if not scored:
        return []
    lines = [_line(case, "all", scored, bar)]
    sources: dict[str, list[Scored]] = defaultdict(list)
    for one in scored:
        sources[one.source].append(one)
    if split and len(sources) > 1:
        lines += [_line(case, source, rows, None) for source, rows in sorted(sources.items())]
    for rule in scored[0].rules:
        median, p90 = quantiles([abs(math.expm1(one.rules[rule] - one.truth)) for one in scored])
        lines.append(Line(case, f"rule: {rule}", len(scored), median, p90))
    return lines + coverage(case, scored) if judged else lines


def coverage(case: str, scored: Sequence[Scored]) -> list[Line]:
    """The share inside the interval: of the case, of each source, of each accelerator. The bar is 75–90%, and none
    below 68%. Fewer pairs than JUDGED are shown and not judged: too few to tell 80% from 100%."""
    if not scored:
        return []
    groups: dict[str, list[Scored]] = {"all": list(scored)}
    for one in scored:
        for name in (f"source {one.source}", f"on {one.target}"):
            groups.setdefault(name, []).append(one)
    lines, lowest = [], ("", 1.0, 0)
    for name, rows in groups.items():
        share = sum(one.inside for one in rows) / len(rows)
        judged = len(rows) >= JUDGED
        bar, ok = ("75-90%", 0.75 <= share <= 0.90) if judged else (None, None)
        lines.append(Line(f"{case}, {INTERVAL}", name, len(rows), coverage=share, bar=bar, ok=ok))
        if judged and share <= lowest[1]:
            lowest = (name, share, len(rows))
    if lowest[0]:
        name, share, pairs = lowest
        lines.append(
            Line(f"{case}, {INTERVAL}", f"lowest: {name}", pairs, coverage=share, bar=">= 68%", ok=share >= 0.68)
        )
    return lines


def _line(case: str, source: str, scored: Sequence[Scored], bar: Bar | None) -> Line:
    median, p90 = quantiles([one.error for one in scored])
    share = None if math.isnan(scored[0].sd) else sum(one.inside for one in scored) / len(scored)
    if bar is None:
        return Line(case, source, len(scored), median, p90, share)
    return Line(case, source, len(scored), median, p90, share, bar=str(bar), ok=median <= bar.median and p90 <= bar.p90)


# --- jobs and pools --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A job that was measured in one place, and maybe others, and where it would be."""

    profile: Profile
    here: Placement
    targets: tuple[Placement, ...]
    seen: Mapping[Placement, float] = field(default_factory=dict)
    batch: Batch = Batch.PER_CHIP


def profile(
    chips: int, rate: float, readings: Mapping[Field, float] | None = None, traits: ModelTraits | None = None
) -> Profile:
    """A complete profile, without noise."""
    made = {name: Reading(value, value, value, Quality.MEASURED) for name, value in (readings or {}).items()}
    made[Field.SAMPLES_PER_SECOND] = Reading(rate, rate, rate, Quality.MEASURED)
    return Profile(
        RevisionKey("b", "b", 1), chips, Steadiness.STEADY, 300.0, 1.0, 0.0, 1, 1, made, traits or ModelTraits()
    )


def pool(name: str, chip: Accelerator, per_node: int = 8, inside: Link | None = None) -> Pool:
    """A pool with the links of its chip."""
    price = Price(chip.list_price.on_demand)
    between = chip.inter_link if chip.inter_link else Link(LinkKind.ETHERNET, 5e9)
    return Pool(name, chip, per_node, "nvidia.com/gpu", {}, inside or chip.intra_link, between, price, 4096, 4096)


Answers = list[list[tuple[float, float] | None]]
"""(log rate, sd) of each target of each question, None where it is not predicted."""


@dataclass(frozen=True, slots=True)
class Posed:
    """Questions as a model takes them, to be asked of several."""

    jobs: Features
    machines: Machines
    rows: Destinations

    @classmethod
    def of(cls, pools: Iterable[Pool], questions: Sequence[Question]) -> Posed:
        """All at once."""
        machines = Machines.of(pools)
        jobs = features(
            [question.profile for question in questions],
            [question.here for question in questions],
            [question.batch for question in questions],
            machines,
            {number: question.seen for number, question in enumerate(questions) if question.seen},
        )
        rows = [(number, target) for number, question in enumerate(questions) for target in question.targets]
        return cls(jobs, machines, Destinations.of(rows, machines))

    def answers(self, predictor: Predictor) -> Answers:
        """In one call."""
        prediction = predictor.predict(self.jobs, self.machines, self.rows)
        found: Answers = [[] for _ in self.jobs.chips]
        columns = zip(self.rows.job, prediction.missing, prediction.median, prediction.sd, strict=True)
        for job, missing, median, sd in columns:
            found[job].append((math.log(median), float(sd)) if missing == Missing.NOTHING else None)
        return found


def answers(predictor: Predictor, pools: Iterable[Pool], questions: Sequence[Question]) -> Answers:
    """Of questions that are asked once."""
    return Posed.of(pools, questions).answers(predictor)
