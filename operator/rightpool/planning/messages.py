"""What decisions say: the numbers that they rest on and what would change them, for somebody who is tired."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.hardware.placement import CapacityType, Placement
from rightpool.planning.candidate import Candidate, Rejection, RejectionReason
from rightpool.planning.decision import Action, Decision
from rightpool.planning.progress import Outlook
from rightpool.planning.scoring import Payback
from rightpool.planning.wording import chips, dollars, number, share, span
from rightpool.prediction.estimate import Estimate

# Pools named in one message; the rest is in the list of candidates.
MOST_POOLS = 6


class Judged(Protocol):
    """A Candidate, or one in the making."""

    @property
    def placement(self) -> Placement: ...
    @property
    def samples_per_second(self) -> Estimate | None: ...
    @property
    def cost_per_million(self) -> Estimate | None: ...
    @property
    def saving(self) -> float | None: ...
    @property
    def probability(self) -> float | None: ...


def place(placement: Placement) -> str:
    """8 chips of a10g, spot."""
    spot = " (spot)" if placement.capacity is CapacityType.SPOT else ""
    return f"{chips(placement.chips)} of {placement.pool}{spot}"


def predicted(candidate: Judged, *, interval: bool = True) -> str:
    """1 chip of dev is predicted at 1180 samples/s (1010–1310) for $0.40 per million. Or: was measured at."""
    one = candidate.placement.chips == 1
    rate = candidate.samples_per_second
    if rate is None:
        return f"{place(candidate.placement)} can't be predicted"
    if rate.basis == ("measured there before",):
        known = "was measured" if one else "were measured"
    else:
        known = "is predicted" if one else "are predicted"
    text = f"{place(candidate.placement)} {known} at {number(rate.median)} samples/s"
    if rate.sd > 0.0 and interval:
        text += f" ({number(rate.low)}–{number(rate.high)})"
    if candidate.cost_per_million is not None:
        text += f" for {dollars(candidate.cost_per_million.median)} per million"
    return text


def measured(current: Candidate) -> str:
    """now 2 chips of a100 give 1040 samples/s for $0.62 per million."""
    verb = "gives" if current.placement.chips == 1 else "give"
    rate = current.samples_per_second
    text = f"{place(current.placement)} now {verb} {number(rate.median) if rate else 'an unknown rate of'} samples/s"
    if current.cost_per_million is not None:
        text += f" for {dollars(current.cost_per_million.median)} per million"
    return text


def difference(current: Judged, candidate: Judged, objective: Objective) -> str:
    """36% less than now; what the share is of depends on the objective."""
    saving = candidate.saving or 0.0
    if objective is Objective.MINIMIZE_TIME:
        here, there = current.samples_per_second, candidate.samples_per_second
        if here is None or there is None:
            return "not comparable with now"
        gain = there.median / here.median - 1.0
        return f"{share(abs(gain))} {'faster' if gain >= 0.0 else 'slower'} than now"
    what = "in cost and time together " if objective is Objective.BALANCED else ""
    return f"{share(abs(saving))} {what}{'less' if saving >= 0.0 else 'more'} than now"


def comparison(current: Judged, candidate: Judged, objective: Objective) -> str:
    """One candidate against where the job is."""
    better = (candidate.saving or 0.0) > 0.0
    text = f"{predicted(candidate, interval=better)}, {difference(current, candidate, objective)}"
    if candidate.probability is not None and better:
        sure = "over 99%" if candidate.probability >= 0.995 else share(candidate.probability)
        text += f", better with probability {sure}"
    return text


def undecided() -> Decision:
    """Stands where a wanted candidate will make the decision."""
    return Decision(Action.KEEP, Reason.SETTLED, "")


def taken(current: Candidate | None, candidate: Candidate, objective: Objective) -> str:
    """Why a move is made."""
    if current is None or candidate.samples_per_second is None:
        return f"{place(candidate.placement)}{_why_leave(current)}"
    if current.rejection is not None:
        return f"{predicted(candidate)}{_why_leave(current)}; {measured(current)}"
    return f"{comparison(current, candidate, objective)}; {measured(current)}"


def best_already(current: Candidate, best: Candidate, objective: Objective) -> str:
    """Nothing beats staying."""
    return f"nothing is better than staying: {comparison(current, best, objective)}; {measured(current)}"


def too_little(current: Candidate, best: Candidate, objective: Objective, least: float) -> str:
    """Better, and by less than the user wants to be moved for."""
    below = f"that is below adaptation.minSavings {share(least)}"
    return f"{comparison(current, best, objective)}; {below}; {measured(current)}"


def uncertain(current: Candidate, candidate: Candidate, objective: Objective, needed: float) -> str:
    """Probably better, and not surely enough."""
    return f"{comparison(current, candidate, objective)}; {share(needed)} is needed to act on it; {measured(current)}"


def does_not_pay_back(
    current: Candidate, candidate: Candidate, objective: Objective, bill: Payback, ahead: Outlook
) -> str:
    """Better, and not for long enough."""
    return (
        f"{comparison(current, candidate, objective)}; a restart of {span(ahead.restart)} costs {dollars(bill.cost)}, "
        f"more than the {dollars(bill.gain)} that it would bring in the {span(ahead.horizon)} looked at"
    )


def alone(current: Candidate, candidates: Sequence[Candidate]) -> str:
    """No other placement passes the gates."""
    if not candidates:
        return f"there is nowhere else to go; {measured(current)}"
    return f"no other placement is possible ({by_pool(candidates)}); {measured(current)}"


def unreachable(current: Candidate, best: Candidate | None, candidates: Sequence[Candidate]) -> str:
    """A target is missed here and held nowhere, or nowhere surely enough."""
    assert current.rejection is not None
    if best is not None:
        return f"{current.rejection.message} (now); {predicted(best)} holds it, and not surely enough to move"
    return f"{current.rejection.message} (now), and no other placement holds all targets: {by_pool(candidates)}"


def stuck(why: Rejection, candidates: Sequence[Candidate]) -> str:
    """Where the job is is not allowed any more, and nothing else is possible."""
    return f"{why.message}, and there is nowhere else to go: {by_pool(candidates)}"


def restarted(here: Placement, candidate: Candidate, blocked: str | None) -> str:
    """The job did not start where it was placed."""
    return f"does not start on {place(here)} ({blocked}): starts on {place(candidate.placement)}"


def waiting(best: Candidate, room: Rejection) -> str:
    """The chips are taken."""
    return f"{place(best.placement)} would be next: {room.message}"


def nowhere(allowed: Sequence[str], there: Sequence[str], candidates: Iterable[Candidate]) -> str:
    """No pool can take the job. allowed: by name, all of them where empty. there: the pools that are known."""
    if allowed and there and not set(allowed) & set(there):
        absent = f"placement.pools.allow names {_some(allowed)}, and no such pool is there"
        return f"no pool can take the job: {absent}: there are {_some(there)}"
    return f"no pool can take the job: {by_pool(candidates)}"


def _some(names: Sequence[str]) -> str:
    told = ", ".join(names[:MOST_POOLS])
    return told if len(names) <= MOST_POOLS else f"{told} and {len(names) - MOST_POOLS} more"


def by_pool(candidates: Iterable[Candidate]) -> str:
    """Each pool once, with what rules out its best candidate; those that the user does not allow anyway come last."""
    first: dict[str, Rejection] = {}
    for candidate in candidates:
        if candidate.rejection is not None:
            first.setdefault(candidate.placement.pool, candidate.rejection)
    if not first:
        return "no pool is known: create an AcceleratorPool, or label the nodes"
    order = sorted(first, key=lambda name: (first[name].reason is RejectionReason.POOL_DENIED, name))
    told = [first[name].message for name in order][:MOST_POOLS]
    rest = len(first) - len(told)
    return "; ".join(told) + (f"; and {rest} more pools" if rest else "")


def _why_leave(current: Candidate | None) -> str:
    return f"; {current.rejection.message}" if current is not None and current.rejection is not None else ""
