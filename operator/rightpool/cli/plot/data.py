"""What a picture of an explanation shows, as numbers. What is not known is left out, and a note says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rightpool.api.placement import Placement
from rightpool.api.trace import TraceMemory, TraceSpread
from rightpool.api.units import HOUR
from rightpool.api.wording import short_place
from rightpool.cli.candidate_kinds import with_kinds
from rightpool.cli.explained import Explanation
from rightpool.cli.roofline import RooflinePlot, roofline_of
from rightpool.cli.step_parts import StepPart, step_parts
from rightpool.cli.timeline import Stretch, rate_now, stretches
from rightpool.cli.trace_summary import traced_memory
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.offers.candidate import Candidate
from rightpool.prediction.cost import MILLION
from rightpool.prediction.predictor import Origin


@dataclass(frozen=True, slots=True)
class SizeRate:
    """Throughput at one size."""

    chips: int
    """How many, of all pods."""
    median: float
    """Units of work a second."""
    low: float
    """See `high`."""
    high: float
    """80% interval."""
    observed: bool
    """Whether it was measured, now or before."""


@dataclass(frozen=True, slots=True)
class PlotOffer:
    """What a million units of work take at a placement."""

    where: str
    """The placement, for a reader."""
    hours: float
    """That a million units of work take."""
    dollars: float
    """That they cost."""
    low: float
    """See `high`."""
    high: float
    """80% interval of dollars."""
    kind: str
    """now, target, eligible or rejected."""
    frontier: bool
    """Whether nothing here is both faster and cheaper."""


@dataclass(frozen=True, slots=True)
class Plot:
    """Everything that is drawn."""

    title: str
    """The job and where it runs, above all diagrams."""
    unit: str
    """What work is counted in: samples or steps."""
    roofline: RooflinePlot
    """Roofs of the chips, and the job under them."""
    sizes: Mapping[str, tuple[SizeRate, ...]]
    """Throughput by pool, in order of sizes."""
    offers: tuple[PlotOffer, ...]
    """The fastest first."""
    unpriced: int
    """Placements of which throughput or price is not known."""
    parts: tuple[StepPart, ...]
    """Of a step; empty where that is not known."""
    spread: tuple[TraceSpread, ...]
    """How ranks differ, by the newest trace of all of them, the largest part first; empty without one."""
    memory: TraceMemory | None
    """In use over the newest trace; None where it does not say."""
    stretches: tuple[Stretch, ...]
    """Throughput since the first entry of the ledger, in the unit that is counted now; the oldest first."""
    now: float
    """Unix seconds."""


def plot_of(found: Explanation) -> Plot:
    """The numbers of an explanation's picture."""
    assessment, job = found.assessment, found.job
    everywhere = [*([] if assessment.current is None else [assessment.current]), *assessment.candidates]
    offers, unpriced = offers_of(assessment.current, assessment.candidates, found.decisions[0].target)
    current = assessment.current
    return Plot(
        title=f"{job.key}: {(job.state.revision and short_place(job.state.revision.placement)) or 'not placed'}",
        unit=unit_of(job).plural,
        roofline=roofline_of(job.observed.profile, current, assessment.candidates, found.pools),
        sizes=sizes_of(everywhere),
        offers=offers,
        unpriced=unpriced,
        parts=step_parts(job.observed.profile),
        spread=spread_of(job),
        memory=traced_memory(job.state.trace),
        stretches=tuple(
            stretch
            for stretch in stretches(job, rate_now(job), found.now)
            if stretch.rate is not None and stretch.unit is unit_of(job)
        ),
        now=found.now,
    )


def spread_of(job: Job) -> tuple[TraceSpread, ...]:
    """How ranks differ; empty without a trace of all."""
    ranks = None if job.state.trace is None else job.state.trace.ranks
    return () if ranks is None else tuple(sorted(ranks.parts, key=lambda each: -each.median))


# --- sizes, and cost against time ------------------------------------------------------------------------------------


def sizes_of(everywhere: Sequence[Candidate]) -> dict[str, tuple[SizeRate, ...]]:
    """Throughput by pool; spot chips are as fast as others, and drawn once."""
    found: dict[str, dict[int, SizeRate]] = {}
    for each in everywhere:
        rate = each.throughput
        if rate is None:
            continue
        observed = each.origin is not Origin.PREDICTED
        sizes = found.setdefault(each.placement.pool, {})
        sizes.setdefault(
            each.placement.chips, SizeRate(each.placement.chips, rate.median, rate.low, rate.high, observed)
        )
    return {pool: tuple(sizes[chips] for chips in sorted(sizes)) for pool, sizes in sorted(found.items())}


def offers_of(
    current: Candidate | None, candidates: Sequence[Candidate], target: Placement | None
) -> tuple[tuple[PlotOffer, ...], int]:
    """Placements by time and cost, and how many of them lack one of the two."""
    rows = with_kinds(current, candidates, target)
    found: list[tuple[str, Candidate, float, float]] = []
    for kind, each in rows:
        rate, cost = each.throughput, each.cost_per_million
        if rate is not None and cost is not None and rate.median > 0.0 and each.useful > 0.0:
            found.append((kind, each, MILLION / (rate.median * each.useful) / HOUR, cost.median))
    found.sort(key=lambda row: (row[2], row[3]))
    offers = []
    cheapest = float("inf")
    for kind, each, hours, dollars in found:
        cost = each.cost_per_million
        assert cost is not None
        offers.append(
            PlotOffer(short_place(each.placement), hours, dollars, cost.low, cost.high, kind, dollars < cheapest)
        )
        cheapest = min(cheapest, dollars)
    return tuple(offers), len(rows) - len(found)
