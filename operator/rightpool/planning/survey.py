"""A survey: everywhere one job could be, judged by everything but the room that the pools have at this moment.

It is the costly part of an assessment and changes only when the job, its profile or the machines do. What is chosen
from it, in assess.py, changes with every chip that is taken or freed, and costs next to nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.hardware.placement import Placement, hourly_cost
from rightpool.hardware.pool import Pool
from rightpool.planning import gates, messages
from rightpool.planning.candidate import Candidate, Rejection, RejectionReason
from rightpool.planning.decision import Action, Decision
from rightpool.planning.ledger import Outcome
from rightpool.planning.migration import Phase
from rightpool.planning.progress import DEADLINE_MARGIN, Outlook, outlook
from rightpool.planning.scoring import Offer, payback, saving, score, value_of_time
from rightpool.planning.sizes import nearest, sizes
from rightpool.planning.snapshot import JobState
from rightpool.prediction.cost import HOUR, MILLION, cost_per_million, probability_cheaper
from rightpool.prediction.estimate import Estimate
from rightpool.prediction.predict import Predictor, Unpredictable

# A move must be better at all with this probability.
MIN_PROBABILITY: Final = 0.8
# What was decided and waits, for approval or a save, is dropped only when clearly less of it is left: no flapping.
WAITING_SHARE: Final = 0.5

_BROKEN_TARGETS: Final = {
    RejectionReason.COST_PER_HOUR: (Reason.MAX_COST_PER_HOUR_EXCEEDED, Reason.COST_TARGET_UNREACHABLE),
    RejectionReason.COST_PER_SAMPLE: (Reason.MAX_COST_PER_MILLION_SAMPLES_EXCEEDED, Reason.COST_TARGET_UNREACHABLE),
    RejectionReason.BUDGET: (Reason.BUDGET_EXCEEDED, Reason.OVER_BUDGET),
    RejectionReason.DEADLINE: (Reason.DEADLINE_MISSED, Reason.DEADLINE_UNREACHABLE),
    RejectionReason.SCALING: (Reason.MIN_SCALING_EFFICIENCY_MISSED, Reason.POOR_SCALING),
}


class Intent(StrEnum):
    """What an action would be for."""

    START = "Start"  # the job has no place yet
    UPDATE = "Update"  # the user changed the workload
    LEAVE = "Leave"  # the user no longer allows where it is
    REPAIR = "Repair"  # a declared target is missed where it is
    SAVE = "Save"  # it is better elsewhere
    NONE = "None"  # nothing may be begun


def demanded(job: JobState, intent: Intent) -> bool:
    """Whether the user's own edit asks for it. A place that is left because somebody changed its pool is not."""
    return intent is Intent.UPDATE or (intent is Intent.LEAVE and job.edited)


@dataclass(frozen=True, slots=True)
class Survey:
    """candidates: by score, the best first; each with the gate that rules it out, room aside.

    wanted: indexes of candidates that would be acted on, in order of preference. otherwise: the decision where none is
    wanted, or where nothing may be begun. current: None before the first start, and where nothing is measured.
    reason: of the action, where one is taken. hour: dollars that an hour of the job is worth now, time included.
    """

    intent: Intent
    current: Candidate | None
    candidates: tuple[Candidate, ...]
    wanted: tuple[int, ...]
    otherwise: Decision
    hour: float = 0.0


@dataclass(slots=True)
class _Entry:
    """A Candidate in the making: the same fields, judged step by step."""

    placement: Placement
    samples_per_second: Estimate | None
    cost_per_hour: float | None
    cost_per_million: Estimate | None
    scaling_efficiency: float | None
    rejection: Rejection | None
    score: float | None = None
    saving: float | None = None
    probability: float | None = None

    def freeze(self) -> Candidate:
        return Candidate(
            self.placement,
            self.samples_per_second,
            self.cost_per_hour,
            self.cost_per_million,
            self.scaling_efficiency,
            self.score,
            self.saving,
            self.probability,
            self.rejection,
        )


def survey_running(job: JobState, pools: Mapping[str, Pool], now: float) -> Survey:
    """The survey of a job that runs and has a complete profile. Its pool must be among `pools`."""
    return _RunningSurvey(job, pools, now).result()


class _RunningSurvey:
    """One job's survey in the making: who is asked about everything that the steps below share."""

    def __init__(self, job: JobState, pools: Mapping[str, Pool], now: float) -> None:
        assert job.ref is not None and job.profile is not None
        self.job, self.spec, self.pools, self.now = job, job.spec, pools, now
        self.here = job.ref.placement
        self.home = pools[self.here.pool]
        self.source = (self.here.chips, self.home)
        self.seen = _measured_before(job)
        self.predictor = Predictor(job.profile, (self.here, self.home), job.spec.elasticity.batch, seen=self.seen)
        self.rate = self.predictor.current
        self.ahead: Outlook = outlook(job, self.rate, now)
        self.need = gates.needed_memory(job.spec, job.profile)
        self.vendor = gates.home_vendor(pools.values(), self.home)
        self.price = hourly_cost(self.here, self.home)

    def result(self) -> Survey:
        """Judge the current placement, then all others, then say which would be taken."""
        current = self._current()
        entries = [entry for name in sorted(self.pools) for entry in self._pool(self.pools[name])]
        if current.cost_per_hour is None and gates.needs_price(self.spec):
            return self._unpriced(current, entries)
        value = self._scored(current, entries)
        entries.sort(key=lambda entry: (entry.score is None, entry.score or 0.0, entry.placement))
        intent = self._intent(current)
        wanted = self._wanted(intent, current, entries, value)
        otherwise = self._otherwise(intent, current, entries, value) if not wanted else messages.undecided()
        self._reject_the_rest(intent, current, entries, wanted)
        candidates = tuple(entry.freeze() for entry in entries)
        hour = min(value, self.price or 0.0) + (self.price or 0.0)
        return Survey(intent, current.freeze(), candidates, tuple(wanted), otherwise, hour)

    def _current(self) -> _Entry:
        cost = None if self.price is None else cost_per_million(self.rate, self.price)
        efficiency = self._efficiency(self.rate, self.here, self.predictor.one_chip(self.home))
        rejection = (
            gates.pool_gate(self.spec, self.home, self.vendor)
            or gates.capacity_type_gate(self.spec, self.home, self.here.capacity)
            or gates.bounds_gate(self.spec, self.here.chips)
            or gates.hourly_gate(self.spec, self.price)
            or gates.target_gate(self.spec, self.ahead, self.rate, self.price, cost, efficiency, 0.0)
        )
        return _Entry(self.here, self.rate, self.price, cost, efficiency, rejection)

    def _pool(self, pool: Pool) -> list[_Entry]:
        """One entry where the pool as a whole is out, else one for each size and way to buy."""
        job, spec = self.job, self.spec
        denied = gates.pool_gate(spec, pool, self.vendor) or gates.node_selector_gate(spec, pool)
        if denied is not None:
            return [] if pool is self.home else [_bare(nearest(job, pool), pool, denied)]
        offered = sizes(job, pool)
        if not offered:
            return [] if pool is self.home else [_bare(nearest(job, pool), pool, gates.no_size(spec, pool))]
        alone = self.predictor.one_chip(pool)
        entries: list[_Entry] = []
        for capacity in gates.capacity_types(spec):
            unsold = gates.capacity_type_gate(spec, pool, capacity)
            if unsold is not None:
                if len(gates.capacity_types(spec)) == 1:
                    entries.append(_bare(nearest(job, pool, capacity), pool, unsold))
                continue
            for count, pods in offered:
                placement = Placement(pool.name, count, pods, capacity)
                if pool is not self.home or placement != self.here:
                    entries.append(self._entry(placement, pool, alone))
        return entries

    def _entry(self, placement: Placement, pool: Pool, alone: float | None) -> _Entry:
        spec = self.spec
        price = hourly_cost(placement, pool)
        rejection = (
            gates.memory_gate(
                spec, self.need, self.source, placement.chips, pool, bool(self.seen) and placement in self.seen
            )
            or gates.price_gate(spec, pool, price, first_start=False)
            or gates.hourly_gate(spec, price)
        )
        if rejection is None and spec.targets.min_scaling_efficiency is not None and self.seen:
            rejection = self._left_before(placement)
        if rejection is None and self.job.avoid:
            rejection = gates.avoided_gate(self.job, placement, self.now)
        rate = self.predictor.at(placement, pool)
        if isinstance(rate, Unpredictable):
            unpredictable = rejection or Rejection(RejectionReason.NOT_PREDICTABLE, rate.message)
            return _Entry(placement, None, price, None, None, unpredictable)
        cost = None if price is None else cost_per_million(rate, price)
        efficiency = self._efficiency(rate, placement, alone)
        if rejection is None:
            rejection = gates.target_gate(spec, self.ahead, rate, price, cost, efficiency, self.ahead.restart)
        return _Entry(placement, rate, price, cost, efficiency, rejection)

    def _left_before(self, placement: Placement) -> Rejection | None:
        """Whether the job left this placement while how it scales there is only guessed.

        Rates and costs that were measured are the same from either side. The efficiency is not: it rests on the rate of
        one chip, which is told by the communication seen there and forgotten here. Going back on a guess would only
        lead to leaving again.
        """
        if placement.chips == 1 or not any(
            entry.source == placement and entry.outcome is Outcome.VERIFIED for entry in self.job.history
        ):
            return None
        known = any(place.pool == placement.pool and place.chips == 1 for place in (*self.seen, self.here))
        if known:
            return None
        return Rejection(
            RejectionReason.SCALING,
            f"the job was moved away from {messages.place(placement)}, and whether targets.minScalingEfficiency holds "
            "there is not known better than then",
        )

    @staticmethod
    def _efficiency(rate: Estimate, placement: Placement, alone: float | None) -> float | None:
        return None if alone is None else rate.median / (placement.chips * alone)

    def _scored(self, current: _Entry, entries: list[_Entry]) -> float:
        """Fill in score, saving and probability; returns the value of time, dollars an hour."""
        here = current.cost_per_hour or 0.0
        known = [entry.cost_per_hour for entry in entries if entry.cost_per_hour is not None]
        dearest = max(known, default=here)
        offers = [Offer(self.rate.median, here, self.ahead.meets_deadline(self.rate.median, 0.0))]
        for entry in entries:
            late = entry.rejection is not None and entry.rejection.reason is RejectionReason.DEADLINE
            if entry.samples_per_second is not None and (entry.rejection is None or late):
                offers.append(
                    Offer(
                        entry.samples_per_second.median,
                        dearest if entry.cost_per_hour is None else entry.cost_per_hour,
                        not late,
                    )
                )
        value = value_of_time(self.spec.targets.objective, offers, here)
        current.score = score(value, here, self.rate.median)
        current.saving, current.probability = 0.0, None
        for entry in entries:
            if entry.samples_per_second is None:
                continue
            there = dearest if entry.cost_per_hour is None else entry.cost_per_hour
            entry.score = score(value, there, entry.samples_per_second.median)
            entry.saving = saving(entry.score, current.score)
            if entry.rejection is None:
                noise = self.rate.sd
                entry.probability = probability_cheaper(
                    entry.samples_per_second, value + there, self.rate, value + here, noise
                )
        return value

    def _intent(self, current: _Entry) -> Intent:
        if current.rejection is None:
            return Intent.SAVE
        return Intent.REPAIR if current.rejection.reason in _BROKEN_TARGETS else Intent.LEAVE

    def _wanted(self, intent: Intent, current: _Entry, entries: list[_Entry], value: float) -> list[int]:
        """Indexes of what would be taken; every other candidate gets the reason why not."""
        least = float(self.spec.adaptation.min_savings)
        waiting = _waiting_for(self.job)
        if intent is Intent.REPAIR:
            return self._repairing(current, entries, waiting)
        wanted: list[int] = []
        for index, entry in enumerate(entries):
            if entry.rejection is not None:
                continue
            slack = WAITING_SHARE if waiting == entry.placement else 1.0
            if intent is Intent.LEAVE or self._pays(entry, value, least * slack, MIN_PROBABILITY * slack):
                wanted.append(index)
        return wanted

    def _reject_the_rest(self, intent: Intent, current: _Entry, entries: list[_Entry], wanted: list[int]) -> None:
        taken = set(wanted)
        for index, entry in enumerate(entries):
            if entry.rejection is None and index not in taken:
                message = messages.comparison(current, entry, self.spec.targets.objective)
                entry.rejection = Rejection(self._why_not(intent, entry), message)

    def _why_not(self, intent: Intent, entry: _Entry) -> RejectionReason:
        saved = entry.saving or 0.0
        if intent is not Intent.SAVE or saved <= 0.0:
            return RejectionReason.NOT_BETTER
        if saved < float(self.spec.adaptation.min_savings):
            return RejectionReason.BELOW_MIN_SAVINGS
        if (entry.probability or 0.0) < MIN_PROBABILITY:
            return RejectionReason.UNCERTAIN
        return RejectionReason.DOES_NOT_PAY_BACK

    def _pays(self, entry: _Entry, value: float, least: float, probability: float) -> bool:
        assert entry.saving is not None
        return (
            entry.saving >= least
            and entry.saving > 0.0
            and (entry.probability or 0.0) >= probability
            and self._payback_pays(entry, value)
        )

    def _payback_pays(self, entry: _Entry, value: float) -> bool:
        prices = (self.price or 0.0, entry.cost_per_hour or self.price or 0.0)
        return payback(value, prices, entry.saving or 0.0, self.ahead.horizon, self.ahead.restart).pays

    def _repairing(self, current: _Entry, entries: list[_Entry], waiting: Placement | None) -> list[int]:
        """First what holds the broken target surely enough, the best score first; then what surely comes nearer to it.

        The gates have seen to it that the target holds at the median of whatever is eligible.
        """
        assert current.rejection is not None
        broken = current.rejection.reason
        sure: list[int] = []
        nearer: list[tuple[float, int]] = []
        for index, entry in enumerate(entries):
            if entry.rejection is not None:
                continue
            least = MIN_PROBABILITY * (WAITING_SHARE if waiting == entry.placement else 1.0)
            holds = self._holds(broken, entry)
            if holds >= least:
                sure.append(index)
            elif self._nearer(broken, entry) >= least:
                nearer.append((-holds, index))
        return sure + [index for _, index in sorted(nearer)]

    def _holds(self, broken: RejectionReason, entry: _Entry) -> float:
        """P(the target that is missed now holds there)."""
        rate, price, ahead = entry.samples_per_second, entry.cost_per_hour or 0.0, self.ahead
        assert rate is not None
        if broken is RejectionReason.DEADLINE and ahead.samples_left is not None and ahead.time_left is not None:
            time = ahead.time_left - ahead.restart
            return rate.probability_above(ahead.samples_left * DEADLINE_MARGIN / time) if time > 0.0 else 0.0
        most = self.spec.targets.max_cost_per_million_samples
        if broken is RejectionReason.COST_PER_SAMPLE and most:
            return rate.probability_above(price / HOUR * MILLION / float(most))
        if broken is RejectionReason.BUDGET and ahead.samples_left is not None and ahead.budget_left is not None:
            money = ahead.budget_left - price * ahead.restart / HOUR
            return rate.probability_above(price / HOUR * ahead.samples_left / money) if money > 0.0 else 0.0
        return 1.0

    def _nearer(self, broken: RejectionReason, entry: _Entry) -> float:
        """P(what the target limits is better there than here)."""
        assert entry.samples_per_second is not None
        here = there = 1.0
        if broken is not RejectionReason.DEADLINE:
            here, there = self.price or 0.0, entry.cost_per_hour or 0.0
        return probability_cheaper(entry.samples_per_second, there, self.rate, here, self.rate.sd)

    def _otherwise(self, intent: Intent, current: _Entry, entries: list[_Entry], value: float) -> Decision:
        eligible = [entry for entry in entries if entry.rejection is None]
        best = eligible[0].freeze() if eligible else None
        now = current.freeze()
        if intent is Intent.LEAVE:
            assert current.rejection is not None
            message = messages.stuck(current.rejection, [entry.freeze() for entry in entries])
            return Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL, message)
        if intent is Intent.REPAIR:
            assert current.rejection is not None
            unreachable = _BROKEN_TARGETS[current.rejection.reason][1]
            message = messages.unreachable(now, best, [entry.freeze() for entry in entries])
            return Decision(Action.HOLD, unreachable, message, best, _BROKEN_TARGETS[current.rejection.reason][0])
        if best is None:
            unknown = any(e.rejection and e.rejection.reason is RejectionReason.NOT_PREDICTABLE for e in entries)
            reason = Reason.NOT_PREDICTABLE if unknown else Reason.CHEAPEST
            return Decision(Action.KEEP, reason, messages.alone(now, [entry.freeze() for entry in entries]))
        assert best.saving is not None
        least = float(self.spec.adaptation.min_savings)
        objective = self.spec.targets.objective
        if best.saving <= 0.0:
            return Decision(Action.KEEP, Reason.CHEAPEST, messages.best_already(now, best, objective))
        if best.saving < least:
            return Decision(Action.KEEP, Reason.BELOW_MIN_SAVINGS, messages.too_little(now, best, objective, least))
        unsure = next(
            (e for e in eligible if (e.saving or 0.0) >= least and (e.probability or 0.0) < MIN_PROBABILITY), None
        )
        if unsure is not None:
            candidate = unsure.freeze()
            message = messages.uncertain(now, candidate, objective, MIN_PROBABILITY)
            purpose = better(now, candidate, objective)
            return Decision(Action.HOLD, Reason.UNCERTAIN_SAVING, message, candidate, purpose)
        prices = (self.price or 0.0, best.cost_per_hour or 0.0)
        bill = payback(value, prices, best.saving, self.ahead.horizon, self.ahead.restart)
        message = messages.does_not_pay_back(now, best, objective, bill, self.ahead)
        return Decision(Action.KEEP, Reason.DOES_NOT_PAY_BACK, message)

    def _unpriced(self, current: _Entry, entries: list[_Entry]) -> Survey:
        unknown = Rejection(
            RejectionReason.PRICE_UNKNOWN,
            f"{self.home.name}, where the job runs, has no price to compare with: set its spec.price",
        )
        for entry in entries:
            entry.rejection = entry.rejection or unknown
        entries.sort(key=lambda entry: entry.placement)
        decision = Decision(Action.HOLD, Reason.PRICE_UNKNOWN, unknown.message)
        return Survey(Intent.NONE, current.freeze(), tuple(entry.freeze() for entry in entries), (), decision)


def action_reason(survey: Survey, candidate: Candidate, objective: Objective) -> Reason:
    """Why the candidate is taken, in one word."""
    current = survey.current
    if current is not None and current.rejection is not None and current.rejection.reason in _BROKEN_TARGETS:
        return _BROKEN_TARGETS[current.rejection.reason][0]
    if survey.intent is Intent.UPDATE:
        return Reason.UPDATING
    if survey.intent is Intent.LEAVE:
        return Reason.NOT_ALLOWED_ANY_MORE
    return better(current, candidate, objective)


def better(current: Candidate | None, candidate: Candidate, objective: Objective) -> Reason:
    """What a candidate has over the current placement, in one word."""
    same_pool = current is not None and current.placement.pool == candidate.placement.pool
    if current is not None and current.cost_per_million is not None and candidate.cost_per_million is not None:
        if candidate.cost_per_million.median >= current.cost_per_million.median:
            return Reason.FASTER_PLACEMENT_MEETS_TARGETS
    elif objective is Objective.MINIMIZE_TIME:
        return Reason.FASTER_PLACEMENT_MEETS_TARGETS
    return Reason.CHEAPER_SIZE_MEETS_TARGETS if same_pool else Reason.CHEAPER_POOL_MEETS_TARGETS


def _bare(placement: Placement, pool: Pool, rejection: Rejection) -> _Entry:
    return _Entry(placement, None, hourly_cost(placement, pool), None, None, rejection)


def _waiting_for(job: JobState) -> Placement | None:
    """Where a migration that has not left yet is to go."""
    migration = job.migration
    if migration is None or migration.phase not in (Phase.PLANNED, Phase.CHECKPOINTING):
        return None
    return migration.target.placement


def _measured_before(job: JobState) -> dict[Placement, float]:
    """Samples/s that this job was measured at on other placements. The newest counts; an edit by the user ends it."""
    seen: dict[Placement, float] = {}
    for entry in job.history:
        if entry.action == Action.UPDATE:
            seen.clear()
            continue
        if entry.baseline_samples_per_second:
            seen[entry.source] = entry.baseline_samples_per_second
        if entry.realised_samples_per_second and entry.outcome in (Outcome.VERIFIED, Outcome.ROLLED_BACK):
            seen[entry.target] = entry.realised_samples_per_second
    return seen
