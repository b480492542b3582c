"""What serving requests would take at each placement of a job: `explain --requests-per-second R --p99 SECONDS`.

A request is one sample of the measured program, done as the program does it: where it trains, the backward pass counts
as well. The batch is that of the program, the rate of each placement that of its candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from rightpool.api.choices import Batch
from rightpool.api.wording import chips, moment, number, place, pool_of
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.documents import place_document
from rightpool.cli.explained import Demand, Explanation, ServedRange, Serving, ServingCandidate, ServingVerdict
from rightpool.cli.table import NOTHING, Column, Page, dollar_cell
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.targets.registry import TARGETS
from rightpool.prediction.columns import floats
from rightpool.prediction.serving import Ends, Server, fixed_shares
from rightpool.prediction.step_shares import step_shares
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field

# A candidate that is ruled out for one of these would serve nevertheless: they compare it with staying, or are about
# the job's own targets, or about what is free at this moment.
_STILL_SERVES: Final = frozenset(
    {
        RejectionReason.NO_CAPACITY,
        RejectionReason.KEPT_FREE,
        RejectionReason.SUSPECTED,
        RejectionReason.AVOIDED,
        *(target.reason for target in TARGETS),
        RejectionReason.NOT_BETTER,
        RejectionReason.BELOW_MIN_SAVINGS,
        RejectionReason.UNCERTAIN,
        RejectionReason.DOES_NOT_PAY_BACK,
    }
)
_COLUMNS: Final = (
    Column(""),
    Column("POOL"),
    Column("CHIPS", right=True),
    Column("SERVES/S", right=True),
    Column("80% INTERVAL", drop=3),
    Column("NEEDED", right=True),
    Column("P50", right=True, drop=2),
    Column("P99", right=True),
    Column("80% INTERVAL", drop=1),
    Column("P(HOLDS)", right=True),
    Column("$/H", right=True),
    Column("$/M REQUESTS", right=True),
    Column("VERDICT", wraps=True),
)


def serving(found: Explanation, demand: Demand) -> Serving:
    """What serving would take at the job's placement and at each candidate's."""
    profile = found.job.observed.profile
    if profile is None or profile.value(Field.SAMPLES_PER_SECOND) is None:
        steps = profile is not None and profile.unit is WorkUnit.STEPS
        refusal = ServingVerdict.STEPS_NOT_REQUESTS if steps else ServingVerdict.RATE_UNKNOWN
        return Serving(demand, None, None, refusal, ())
    batch = _batch(found, profile)
    if batch is None:
        return Serving(demand, None, None, ServingVerdict.BATCH_UNKNOWN, ())
    least, most = _growth(profile)
    current = found.assessment.current
    asked = ([] if current is None else [current]) + list(found.assessment.candidates)
    by_batch: dict[int, list[Candidate]] = {}
    answers = []
    for candidate in asked:
        why_not = _refusal(candidate)
        if why_not is not None:
            answers.append(ServingCandidate(candidate, why_not))
            continue
        grown = candidate.placement.chips / profile.chips if found.job.spec.batch is Batch.PER_CHIP else 1.0
        by_batch.setdefault(max(1, round(batch * grown)), []).append(candidate)
    for size, candidates in by_batch.items():
        pools = [found.pools.get(one.placement.pool) for one in candidates]
        reach = [0 if pool is None else pool.reach for pool in pools]  # one that is gone gives nothing
        answers += _served(Server.of(size, fixed_shares(size, least, most)), candidates, reach, demand)
    answers.sort(key=_rank)
    shares = fixed_shares(batch, least, most)
    return Serving(demand, batch, (shares[0], shares[-1]), None, tuple(answers))


def _range(ends: Ends, row: int) -> ServedRange:
    """One row of columns."""
    return ServedRange(float(ends.low[row]), float(ends.median[row]), float(ends.high[row]))


def _served(
    server: Server, candidates: Sequence[Candidate], reach: Sequence[int], demand: Demand
) -> list[ServingCandidate]:
    rates = [one.throughput for one in candidates if one.throughput is not None]
    medians, sds = floats([rate.median for rate in rates]), floats([rate.sd for rate in rates])
    served = server.serve(medians, sds, demand.requests, demand.limit)
    found = []
    for row, (candidate, most) in enumerate(zip(candidates, reach, strict=True)):
        alone, servable = _range(served.alone, row), _range(served.capacity, row)
        if not np.isfinite(served.replicas[row]):
            found.append(ServingCandidate(candidate, ServingVerdict.TOO_SLOW_ALONE, servable, alone=alone, reach=most))
            continue
        needed = int(served.replicas[row])
        fits = needed * candidate.placement.chips <= most
        found.append(
            ServingCandidate(
                candidate,
                ServingVerdict.HOLDS if fits else ServingVerdict.POOL_TOO_SMALL,
                servable,
                needed,
                _range(served.median_latency, row),
                _range(served.tail_latency, row),
                alone,
                float(served.probability[row]),
                most,
            )
        )
    return found


def _batch(found: Explanation, profile: Profile) -> int | None:
    """Of the measured program, all chips together."""
    samples = profile.traits.batch or found.job.spec.samples_per_step(profile.chips)
    rate, seconds = profile.value(Field.SAMPLES_PER_SECOND), profile.value(Field.STEP_SECONDS)
    if samples is None and rate and seconds:
        samples = rate * seconds
    return max(1, round(samples)) if samples else None


def _growth(profile: Profile) -> tuple[float, float]:
    """Shares of a step: what surely does not grow with the batch, and what surely grows with it is missing from.

    A chip waits for its host as long for a small batch, as far as it does not wait for data. Matrix units work as long
    as there are samples.
    """
    shares = step_shares([profile], np.array([profile.chips]))
    matrix = profile.value(Field.MATRIX_ACTIVE) or 0.0
    return max(0.0, float(shares.host[0] - shares.unsplit[0])), max(0.0, 1.0 - matrix)


def _refusal(candidate: Candidate) -> ServingVerdict | None:
    if candidate.rejection is not None and candidate.rejection.reason not in _STILL_SERVES:
        return ServingVerdict.RULED_OUT
    if candidate.throughput is None:
        return ServingVerdict.RATE_UNKNOWN
    return None


def _rank(served: ServingCandidate) -> tuple[bool, float]:
    cost = served.cost()
    return served.verdict is not ServingVerdict.HOLDS, math.inf if cost is None else cost


# --- in words --------------------------------------------------------------------------------------------------------

_REFUSALS: Final = {
    ServingVerdict.RATE_UNKNOWN: "no rate of the job is measured where it is: see above",
    ServingVerdict.STEPS_NOT_REQUESTS: "the job is measured in steps: declare progress.samplesPerStep, so that "
    "requests can be counted",
    ServingVerdict.BATCH_UNKNOWN: "the batch of the program is not known: declare progress.samplesPerStep",
}


def print_serving(page: Page, served: Serving) -> None:
    """A table of all placements, and what is assumed."""
    demand = served.demand
    page.heading(f"Would serve {number(demand.requests)} requests/s, 99% within {_time(demand.limit)}")
    if served.refusal is not None:
        page.indented(_REFUSALS[served.refusal])
        return
    rows = []
    for rank, one in enumerate(served.candidates):
        if one.verdict in (ServingVerdict.RULED_OUT, ServingVerdict.RATE_UNKNOWN):
            continue
        rows.append(_row("→" if rank == 0 and one.verdict is ServingVerdict.HOLDS else "", one, demand))
    if not rows:
        page.indented("no placement has a rate that is known: see the verdicts above")
        return
    page.table(_COLUMNS, rows, indented=True)
    reasons = [
        (f"{pool_of(one.candidate.placement)} {one.candidate.placement.chips}", message)
        for one in served.candidates
        if one.servable is not None and (message := _message(one, demand)) is not None
    ]
    if reasons:
        page.line()
        page.pairs(reasons)
    page.line()
    assert served.batch is not None and served.fixed is not None
    low, high = served.fixed
    fixed = f"{low:.0%} of a step are" if high - low < 0.005 else f"{low:.0%} to {high:.0%} of a step are"
    page.indented(
        f"a request is a sample of the measured program; batches are of up to {served.batch}, as measured, and start "
        f"as soon as the program is free; {fixed} taken not to grow with the batch; requests come at random (Poisson) "
        "and are shared evenly; a replica is one such placement, and so many are needed that the limit holds with 90%",
        "dim",
    )


def _row(mark: str, one: ServingCandidate, demand: Demand) -> list[str]:
    cost = one.cost()
    placement = one.candidate.placement
    return [
        mark,
        pool_of(placement),
        str(placement.chips),
        NOTHING if one.servable is None else number(one.servable.median),
        NOTHING if one.servable is None else f"{number(one.servable.low)}–{number(one.servable.high)}",
        NOTHING if one.needed is None else str(one.needed),
        NOTHING if one.half is None else _time(one.half.median),
        NOTHING if one.tail is None else _time(one.tail.median),
        NOTHING if one.tail is None else f"{_time(one.tail.low)}–{_time(one.tail.high)}",
        NOTHING if one.probability is None else f"{one.probability:.2f}",
        NOTHING if cost is None else f"{cost:.2f}",
        dollar_cell(one.cost_of_million(demand)),
        one.verdict.value,
    ]


def _message(one: ServingCandidate, demand: Demand) -> str | None:
    placement = one.candidate.placement
    if one.verdict is ServingVerdict.TOO_SLOW_ALONE:
        assert one.alone is not None
        low, high = _time(one.alone.low), _time(one.alone.high)
        return (
            f"one request by itself takes {_time(one.alone.median)} ({low} to {high}), and may wait for another: "
            f"no number of replicas keeps 99% within {_time(demand.limit)} with 90% probability"
        )
    if one.verdict is ServingVerdict.POOL_TOO_SMALL:
        assert one.needed is not None and one.servable is not None and one.reach is not None
        fit = one.reach // placement.chips
        busy = math.inf if fit == 0 else demand.requests / (fit * one.servable.low)
        much = "" if math.isinf(busy) else f", which would get {busy:.1f} times what they serve"
        wanted = f"needs {one.needed} replicas of {place(placement)}"
        return f"{wanted}, and the pool has {chips(one.reach)}: {fit} replicas{much}"
    if one.verdict is ServingVerdict.RULED_OUT and one.candidate.rejection is not None:
        return f"ruled out: {one.candidate.rejection.reason.value}"
    if one.verdict is ServingVerdict.RATE_UNKNOWN:
        return "no rate can be predicted there"
    return None


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "∞"
    return moment(seconds)


# --- as JSON ---------------------------------------------------------------------------------------------------------


def serving_document(served: Serving) -> dict[str, Any]:
    """The object that the head of `explain` describes."""
    return {
        "requestsPerSecond": served.demand.requests,
        "p99Limit": served.demand.limit,
        "batch": served.batch,
        "reason": None if served.refusal is None else served.refusal.value,
        "message": None if served.refusal is None else _REFUSALS[served.refusal],
        "candidates": [_document(one, served.demand) for one in served.candidates],
    }


def _document(one: ServingCandidate, demand: Demand) -> dict[str, Any]:
    return {
        **place_document(one.candidate.placement),
        "servable": None if one.servable is None else one.servable.document,
        "replicasNeeded": one.needed,
        "p50": None if one.half is None else one.half.document,
        "p99": None if one.tail is None else one.tail.document,
        "alone": None if one.alone is None else one.alone.document,
        "probability": one.probability,
        "costPerHour": one.cost(),
        "costPerMillionRequests": one.cost_of_million(demand),
        "verdict": one.verdict.value,
        "message": _message(one, demand),
    }
