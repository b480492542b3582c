"""Candidates in words: where they are, their throughput, cost and verdict."""

from collections.abc import Iterable, Sequence
from typing import Final

from rightpool.api.choices import Objective
from rightpool.api.wording import dollars, how_many, number, place, share
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.pool_rejection import PoolNotAllowed
from rightpool.planning.offers.rejection import (
    Compared,
    OtherChosen,
    RejectionReason,
    TargetMissed,
)
from rightpool.prediction.predictor import Origin

# Pools named in one message; the rest is in the list of candidates.
MOST_POOLS: Final = 6

# Below this share of useful time interruptions are worth a word; below this share of a healthy rate, a fault.
NOTEWORTHY: Final = 0.99
_WHENCE: Final = {
    Origin.MEASURED_BEFORE: "measured there before",
    Origin.MEASURED_IN_TRIAL: "measured there, in a trial",
}


def predicted(candidate: Candidate) -> str:
    """Predicted 1180 samples/s for $0.40 per million.

    Where the job has been before: 1180 samples/s by what was measured there. The job or its surroundings may be slower
    or faster by now, so that the number need not be one that was measured.
    """
    rate = candidate.throughput
    if rate is None:
        return "can't be predicted"
    if candidate.size is not None:
        replicas = how_many(candidate.placement.replicas, "replica")
        held = f"{replicas} keep the limit with {share(candidate.size.probability)}"
        how = _WHENCE.get(candidate.origin, "predicted")
        return f"{how}: {held}, {_per_million_requests(candidate)}"
    text = f"{number(rate.median)} {candidate.unit.plural}/s"
    if candidate.origin in _WHENCE:
        text += " by what was measured there"
        text += ", in a trial," if candidate.origin is Origin.MEASURED_IN_TRIAL else ""
    else:
        text = f"predicted {text}"
    if candidate.cost_per_million is not None:
        text += f" for {dollars(candidate.cost_per_million.median)} per million{_steps(candidate)}"
        if candidate.useful < NOTEWORTHY:
            text += f", {share(1.0 - candidate.useful)} of the time lost to interruptions"
    return text


def measured(current: Candidate) -> str:
    """Now 1040 samples/s for $0.62 per million.

    Where a fault throttles the chips: … (throttled at 58%: healthy ones would give 1790).
    """
    rate = current.throughput
    if current.size is not None:
        return f"now {how_many(current.placement.replicas, 'replica')}, {_per_million_requests(current)}"
    known = number(rate.median) if rate else "an unknown rate of"
    text = f"now {known} {current.unit.plural}/s"
    if current.cost_per_million is not None:
        text += f" for {dollars(current.cost_per_million.median)} per million{_steps(current)}"
    if rate is not None and current.healthy is not None and rate.median < NOTEWORTHY * current.healthy:
        held = share(rate.median / current.healthy)
        text += f" (throttled at {held}: healthy ones would give {number(current.healthy)})"
    return text


def _per_million_requests(candidate: Candidate) -> str:
    cost = candidate.cost_per_million
    return "at an unknown price" if cost is None else f"{dollars(cost.median)} per million {candidate.unit.plural}"


def _steps(candidate: Candidate) -> str:
    """A million of what, where it is not samples."""
    return "" if candidate.unit is WorkUnit.SAMPLES else f" {candidate.unit.plural}"


def compared(candidate: Candidate, now: float | None, objective: Objective) -> str:
    """One candidate against where the job is, by how much and why. now: throughput there; None where that is not
    known."""
    return f"{difference(candidate, now, objective)}; {predicted(candidate)}"


def difference(candidate: Candidate, now: float | None, objective: Objective) -> str:
    """1 chip of dev: 36% less than now, probability 99%."""
    text = f"{place(candidate.placement)}: {_share(candidate, now, objective)}"
    if candidate.probability is not None and (candidate.saving or 0.0) > 0.0:
        sure = "over 99%" if candidate.probability >= 0.995 else share(candidate.probability)
        text += f", probability {sure}"
    return text


def _share(candidate: Candidate, now: float | None, objective: Objective) -> str:
    """36% less than now; what the share is of depends on the objective."""
    saving, rate = candidate.saving or 0.0, candidate.throughput
    if objective is Objective.MINIMIZE_TIME:
        if now is None or rate is None:
            return "not comparable with now"
        gain = rate.median / now - 1.0
        return f"{share(abs(gain))} {'faster' if gain >= 0.0 else 'slower'} than now"
    what = "in cost and time together " if objective is Objective.BALANCED else ""
    return f"{share(abs(saving))} {what}{'less' if saving >= 0.0 else 'more'} than now"


def verdict_text(candidate: Candidate) -> str:
    """What rules a candidate out, or why another one is better; nothing for one that is eligible."""
    rejection = candidate.rejection
    if rejection is None:
        return ""
    if isinstance(rejection, Compared):
        return compared(candidate, rejection.now, rejection.objective)
    if isinstance(rejection, OtherChosen) and candidate.throughput is not None:
        return f"{place(candidate.placement)} ranks after {place(rejection.taken)}; {predicted(candidate)}"
    return rejection.text()


def _placed_text(candidate: Candidate) -> str:
    """What rules a candidate out, with where it is."""
    text = verdict_text(candidate)
    return f"{place(candidate.placement)}: {text}" if isinstance(candidate.rejection, TargetMissed) else text


def by_pool(candidates: Iterable[Candidate]) -> str:
    """Each pool once, with what rules out its best candidate. Pools that placement.pools.allow leaves out come last, in
    one clause, since there may be many of them and the user knows."""
    first: dict[str, Candidate] = {}
    for candidate in candidates:
        if candidate.rejection is not None:
            first.setdefault(candidate.placement.pool, candidate)
    if not first:
        return "no pool is known: create an AcceleratorPool, or label the nodes"

    def rank(name: str) -> tuple[bool, str]:
        rejection = first[name].rejection
        return rejection is not None and rejection.reason is RejectionReason.POOL_DENIED, name

    left_out = [name for name in sorted(first) if isinstance(first[name].rejection, PoolNotAllowed)]
    pools: dict[str, list[str]] = {}  # by text: what rules out all of them, such as a budget, names none
    for name in sorted(first.keys() - left_out, key=rank):
        pools.setdefault(_placed_text(first[name]), []).append(name)
    shown = list(pools)[:MOST_POOLS]
    rest = sum(map(len, list(pools.values())[MOST_POOLS:]))
    if rest:
        shown.append(f"and {rest} more {'pool' if rest == 1 else 'pools'}")
    if len(left_out) == 1:
        shown.append(_placed_text(first[left_out[0]]))
    elif left_out:
        shown.append(f"{some(left_out)} are not in placement.pools.allow: add those that may be used")
    return "; ".join(shown)


def some(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:MOST_POOLS])
    return shown if len(names) <= MOST_POOLS else f"{shown} and {len(names) - MOST_POOLS} more"
