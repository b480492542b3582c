"""Jobs that run and have a complete profile: every placement of all of them, in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rightpool.api.choices import Objective
from rightpool.api.ledger import Outcome
from rightpool.api.placement import Placement
from rightpool.api.units import HOUR
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.tenant import tenant_of
from rightpool.planning.judge.crowding import Crowding
from rightpool.planning.offers.evaluation import Running
from rightpool.planning.offers.experience import Experience, forced_from, measured_before, waiting_for
from rightpool.planning.offers.flops import flops_per_unit
from rightpool.planning.offers.gates import GATES, MAY_BE_MISSED, TARGET_CODES, TIMED, avoided
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.offers import SURE, Numbers, Offers
from rightpool.planning.offers.register import FIRST_COMPARED, FIRST_KEPT, NONE, Register
from rightpool.planning.offers.rejection import CurrentPriceUnknown, RejectionReason
from rightpool.planning.offers.repair import approaching, least_elsewhere, relax, repairing
from rightpool.planning.offers.rows import numbers_of, row_index_of, row_rates
from rightpool.planning.offers.scores import (
    payback,
    saving,
    saving_over,
    score,
    useful_share,
    value_for_deadline,
    value_for_time,
)
from rightpool.planning.offers.shape import Shape
from rightpool.planning.offers.targets.target import EVEN
from rightpool.planning.work.fading import Faded
from rightpool.prediction.columns import Bools, Floats, Ints, first_of_each, largest_of_each, or_nan
from rightpool.prediction.cost import MILLION, probability_cheaper
from rightpool.prediction.precision import dense_peak, lacks
from rightpool.prediction.predictor import Predictor

# A move must be better at all with this probability.
MIN_PROBABILITY = 0.8
# What was decided and waits, for approval or a save, is dropped only when clearly less of it is left: no flapping.
WAITING_SHARE = 0.5

_OBJECTIVES = tuple(Objective)
_NOTHING = Faded()
_UNPREDICTABLE = 1 + next(code for code, gate in enumerate(GATES) if gate.reason is RejectionReason.NOT_PREDICTABLE)


def evaluate_running(
    jobs: Sequence[Job],
    shapes: Sequence[Shape],
    register: Register,
    predictor: Predictor,
    now: float,
    faded: Faded = _NOTHING,
    crowded: Mapping[str, Crowding] = MappingProxyType({}),
) -> Running:
    """The columns of these jobs, whose pools must be among the machines of the register. faded: what pools make
    of rates since they are slower; crowded: by pool, what it leaves of the rate of a job that comes."""
    pools = {pool.name: pool for pool in register.machines.pools}
    seen = {place: seen for place, job in enumerate(jobs) if (seen := measured_before(job, now, pools))}
    with np.errstate(all="ignore"):
        return _Columns(jobs, shapes, register, predictor, now, seen, faded, crowded).running()


class _Columns:
    """The columns in the making."""

    def __init__(
        self,
        jobs: Sequence[Job],
        shapes: Sequence[Shape],
        register: Register,
        predictor: Predictor,
        now: float,
        seen: Mapping[int, dict[Placement, Experience]],
        faded: Faded,
        crowded: Mapping[str, Crowding],
    ) -> None:
        self.jobs, self.register, self.now, self.seen = jobs, register, now, seen
        self.machines = register.machines
        index = row_index_of(jobs, shapes, register)
        self.places, self.home, self.here = index.places, index.home, index.here
        self.waiting = np.array([_number(waiting_for(job), register) for job in jobs], dtype=np.int64)
        self.forced_from = np.array([_number(forced_from(job), register) for job in jobs], dtype=np.int64)
        self.job, self.option = index.job, index.option
        self.options = register.options(now)
        self.tenants, self.often = self._interruptions()
        rates = row_rates(jobs, index, self.options, self.seen, register, predictor, faded, crowded)
        self.prediction, self.noise = rates.prediction, rates.noise
        self.numbers = numbers_of(jobs, rates.rates, self.options.price[self.here], self.home, now)
        self.precision, self.lacking, self.peaks = self._precisions()
        flops = or_nan([flops_per_unit(job) for job in jobs])
        # FLOPs above the peak of the chips where a job is say nothing of other chips either.
        most = self.options.chips[self.here] * self.peaks[self.precision, self.home] / flops
        self.flops = np.where(rates.rates > most, np.nan, flops)
        table = self._table(self.job, self.option, index.gate, rates.predicted, rates.efficiency)
        tried, left = self._been_through()
        unsupported = table.unsupported & ~rates.other_program
        self.rows = replace(table, seen=rates.seen, unsupported=unsupported, avoided=tried, left=left)
        everyone = np.arange(len(jobs))
        self.staying = replace(
            self._table(everyone, self.here, index.current, rates.current_predicted, rates.current_efficiency),
            least=np.full(len(jobs), MAY_BE_MISSED),
            restart=np.zeros(len(jobs)),
        )
        self._gates()

    def _interruptions(self) -> tuple[Ints, Floats]:
        """The number of each job's tenant; and how often a day jobs of each are taken away, by market."""
        tenants: dict[str, int] = {}
        own = [tenants.setdefault(tenant_of(job), len(tenants)) for job in self.jobs]
        by_market = dict(zip(self.options.market.tolist(), self.register.placements, strict=True))
        often = [
            [self.register.interruptions_of(by_market[market], tenant) for market in range(len(by_market))]
            for tenant in tenants
        ]
        return np.array(own, dtype=np.int64), np.array(often, dtype=np.float64).reshape(len(tenants), len(by_market))

    # --- gates -------------------------------------------------------------------------------------------------------

    def _table(self, job: Ints, option: Ints, gate: Ints, predicted: Ints, efficiency: Floats) -> Offers:
        """Where jobs would be, with all but what they have been through there and how these compare."""
        options, pools = self.options, self.machines.pools
        pool, price, home = options.pool[option], options.price[option], self.home[job]
        keys = {pool.accelerator.key: number for number, pool in enumerate(pools)}
        chip = np.array([keys[pool.accelerator.key] for pool in pools], dtype=np.int64)
        memory = np.array([pool.accelerator.memory_bytes for pool in pools], dtype=np.float64)
        # A spot offer carries what being interrupted costs: the recoveries of its hours.
        useful = useful_share(self.often[self.tenants[job], options.market[option]], self.numbers.recovery[job])
        rate = np.where(predicted < 0, np.nan, self.prediction.median[predicted] * useful)
        rate = np.where(np.isinf(rate), np.nan, rate)  # no number of a job
        unknown, no = np.full(len(job), np.nan), np.zeros(len(job), dtype=np.bool_)
        return Offers(
            numbers=self.numbers,
            job=job,
            option=option,
            gate=gate,
            predicted=predicted,
            pool=pool,
            chips=options.chips[option],
            price=price,
            memory=memory[pool],
            home_memory=memory[home],
            same_chip=chip[pool] == chip[home],
            seen=no,
            unsupported=self.lacking[self.precision[job], pool],
            avoided=no,
            left=no,
            rate=rate,
            sd=np.where(predicted < 0, np.nan, self.prediction.sd[predicted]),
            shared=np.where(predicted < 0, np.nan, self.prediction.shared[predicted]),
            least=np.full(len(job), EVEN),
            cost=_cost(price, np.minimum(rate, self.numbers.demand[job])),
            efficiency=efficiency,
            full=options.chips[option] * self.peaks[self.precision[job], pool] / self.flops[job] * useful,
            restart=self.numbers.restart[job],
            score=unknown,
            saving=unknown,
            probability=unknown,
            lasting=unknown,
            sure=unknown,
        )

    def _gates(self) -> None:
        """What rules rows out, and what the spec has against where jobs are."""
        here, gate, current = self.staying, self.rows.gate, self.staying.gate
        holds: dict[int, Bools] = {}
        for code, asked in enumerate(GATES, 1):
            rows = self.rows
            if asked.target is not None:
                missed = asked.rejects(here)
                current = np.where((current == NONE) & missed, code, current)
                holds[code] = ~missed
                rows = replace(rows, least=least_elsewhere(asked.target, ~missed, rows.job))
            gate = np.where((gate == NONE) & asked.rejects(rows), code, gate)
        self.rows, self.staying = replace(self.rows, gate=gate), replace(here, gate=current)
        self.worth, self.worth_here = self.rows.worth, here.worth
        self.relaxed = relax(self.rows, self.staying, holds, self._repaired)

    def _repaired(self, numbers: Numbers, rows: Ints, broken: Ints) -> Ints:
        """The jobs whose broken target one of these rows repairs."""
        offered = self._offered(self.rows, numbers, rows)
        repaired: Ints = offered.job[repairing(offered, self.staying, broken)]
        return repaired

    def _offered(self, table: Offers, numbers: Numbers, rows: Ints) -> Offers:
        """Some of the rows, with how sure a repair has to be."""
        some = table.of(rows, numbers)
        waits = some.option == self.waiting[some.job]
        return replace(some, least=MIN_PROBABILITY * np.where(waits, WAITING_SHARE, 1.0))

    def _precisions(self) -> tuple[Ints, NDArray[np.bool_], NDArray[np.float64]]:
        """Each job's precision by number, and for each number and pool whether its chips lack it, and their FLOP/s in
        it; NaN where not known."""
        numbers: dict[str | None, int] = {None: 0}
        profiles = (job.observed.profile for job in self.jobs)
        own = [
            numbers.setdefault(None if profile is None else profile.traits.precision, len(numbers))
            for profile in profiles
        ]
        chips = [pool.accelerator for pool in self.machines.pools]
        lacking = [[lacks(chip, precision) for chip in chips] for precision in numbers]
        peaks = or_nan([dense_peak(chip, precision) for precision in numbers for chip in chips])
        shape = len(numbers), len(chips)
        return np.array(own, dtype=np.int64), np.array(lacking, dtype=np.bool_).reshape(shape), peaks.reshape(shape)

    def _been_through(self) -> tuple[Bools, Bools]:
        """Of each row, whether it was tried and left, and whether it was left while its scaling is only guessed."""
        tried, left = np.zeros(len(self.job), dtype=np.bool_), np.zeros(len(self.job), dtype=np.bool_)
        for number, job in enumerate(self.jobs):
            seen = self.seen.get(number) if job.spec.targets.min_scaling_efficiency is not None else None
            if not job.state.avoid and not seen:
                continue
            low, high = np.searchsorted(self.job, [number, number + 1])
            places = [self.register.placements[option] for option in self.option[low:high].tolist()]
            undone = {(entry.pool, entry.chips) for entry in avoided(job, self.now)}
            tried[low:high] = [(place.pool, place.chips) in undone for place in places]
            if seen:
                away = {entry.source for entry in job.state.history if entry.outcome is Outcome.VERIFIED}
                known = {place.pool for place in (*seen, self.places[number]) if place.chips == 1}
                left[low:high] = [place.chips > 1 and place in away and place.pool not in known for place in places]
        return tried, left

    # --- scores ------------------------------------------------------------------------------------------------------

    def running(self) -> Running:
        """Score, sort, and say what would be taken."""
        numbers, job, count = self.numbers, self.job, len(self.jobs)
        unpriced = np.isnan(numbers.price) & numbers.needs_price
        held = np.array(
            [
                self.register.code(CurrentPriceUnknown(place.pool)) if no else NONE
                for place, no in zip(self.places, unpriced, strict=True)
            ],
            dtype=np.int64,
        )
        self.gate = np.where(self.relaxed.gate == NONE, held[job], self.relaxed.gate)
        here = np.where(np.isnan(numbers.price), 0.0, numbers.price)
        rows = self.rows
        dearest = largest_of_each(job, rows.price, count)
        dearest = np.where(np.isnan(dearest), here, dearest)
        there = np.where(np.isnan(rows.price), dearest[job], rows.price)
        value = self._values(here, there)
        value = np.where(unpriced, 0.0, value)
        current_score = score(value, here, self.worth_here)
        scores = np.where(unpriced[job], np.nan, score(value[job], there, self.worth))
        savings = saving(scores, current_score[job])
        savings = np.where(np.isnan(scores), np.nan, savings)
        probability = np.full(len(job), np.nan)
        sure = np.full(len(job), np.nan)
        possible = np.flatnonzero(self.gate == NONE)
        if possible.size:
            # Both rates are of one job at one time: how it varies by itself changes nothing about which is cheaper.
            own = job[possible]
            ratio = rows.sd[possible] ** 2 + self.noise[own] ** 2 - 2.0 * rows.shared[possible]
            ratio = np.where(ratio > 1e-18, ratio, 0.0)
            worth, worth_here = self.worth[possible], self.worth_here[own]
            probability[possible] = probability_cheaper(
                worth, value[own] + there[possible], worth_here, value[own] + here[own], ratio
            )
            sure[possible] = worth * np.exp(-SURE * np.sqrt(ratio))
        offers = replace(
            rows,
            gate=self.gate,
            score=scores,
            saving=savings,
            probability=probability,
            lasting=self._lasting(value, savings),
            sure=sure,
        )
        order = np.lexsort((np.where(np.isnan(scores), np.inf, scores), job))
        self.strict = rows.gate[order]
        self.staying = replace(
            self.staying,
            score=np.where(unpriced, np.nan, current_score),
            saving=np.where(unpriced, np.nan, 0.0),
            sure=np.where(unpriced, np.nan, self.worth_here),
        )
        intents = self._intents(unpriced)
        return self._chosen(offers.of(order), intents, unpriced, value, here)

    def _values(self, here: Floats, there: Floats) -> Floats:
        """What an hour of each job is worth, by its objective."""
        objective = np.array([_OBJECTIVES.index(job.spec.targets.objective) for job in self.jobs], dtype=np.int64)
        job, rate = self.job, self.worth
        late = np.isin(self.gate, TIMED)
        offered = ~np.isnan(rate) & ((self.gate == NONE) | late)
        dearest = largest_of_each(job, np.where(offered, there, np.nan), len(self.jobs))
        value = np.where(
            objective == _OBJECTIVES.index(Objective.MINIMIZE_TIME),
            value_for_time(np.where(np.isnan(dearest), here, dearest), here),
            # Balanced: what the job costs now, so that twice the speed may cost three times as much.
            np.where(objective == _OBJECTIVES.index(Objective.BALANCED), here, 0.0),
        )
        in_time = self.relaxed.in_time
        missed = ~in_time
        missed[job[offered & late]] = True
        cheapest = objective == _OBJECTIVES.index(Objective.MINIMIZE_COST)
        for number in np.flatnonzero(missed & cheapest).tolist():
            low, high = np.searchsorted(job, [number, number + 1])
            chosen = low + np.flatnonzero(offered[low:high])
            value[number] = value_for_deadline(
                np.append(rate[chosen], self.worth_here[number]),
                np.append(there[chosen], here[number]),
                np.append(~late[chosen], in_time[number]),
            )
        return value

    def _lasting(self, value: Floats, savings: Floats) -> Floats:
        """What each row saves over the horizon, where it saves `savings` now. Another size at the same price of a chip
        saves as much whatever that price does."""
        options, numbers, job = self.options, self.numbers, self.job
        doubt = np.hypot(options.varies[self.option], options.varies[self.here][job])
        usual = score(value[job], options.usual[self.option], self.worth) * np.exp(SURE * doubt)
        usual_here = score(value, options.usual[self.here], self.worth_here)
        over = saving_over(
            savings,
            saving(usual, usual_here[job]),
            options.lasts[self.option],
            options.lasts[self.here][job],
            numbers.horizon[job],
            self._least(self.option) * np.where(self.option == self.waiting[job], WAITING_SHARE, 1.0),
        )
        return np.where(options.market[self.option] == options.market[self.here][job], savings, over)

    def _least(self, option: Ints) -> Floats:
        """The share of its cost that each row has to save. Who had to go was there by choice."""
        return np.where(option == self.forced_from[self.job], 0.0, self.numbers.savings[self.job])

    def _intents(self, unpriced: Bools) -> list[Intent]:
        gate = self.relaxed.current
        numbers = np.where(gate == NONE, 0, np.where(gate < FIRST_KEPT, 1, 2))
        kinds = (Intent.SAVE, Intent.REPAIR, Intent.LEAVE, Intent.NONE)
        return [kinds[number] for number in np.where(unpriced, 3, numbers).tolist()]

    # --- what would be taken -----------------------------------------------------------------------------------------

    def _chosen(
        self,
        offers: Offers,
        intents: list[Intent],
        unpriced: Bools,
        value: Floats,
        here: Floats,
    ) -> Running:
        numbers, count = self.numbers, len(self.jobs)
        job = offers.job
        last = np.cumsum(np.bincount(job, minlength=count)).tolist()
        eligible = offers.gate == NONE
        slack = np.where(offers.option == self.waiting[job], WAITING_SHARE, 1.0)
        saves = np.array([intent is Intent.SAVE for intent in intents], dtype=np.bool_)[job]
        leaves = np.array([intent is Intent.LEAVE for intent in intents], dtype=np.bool_)[job]
        repairs = np.array([intent is Intent.REPAIR for intent in intents], dtype=np.bool_)[job]
        paid = np.where(offers.price > 0.0, offers.price, here[job])
        gain, cost = payback(value[job], here[job], paid, offers.lasting, numbers.horizon[job], numbers.restart[job])
        least = self._least(offers.option)
        pays = (
            (offers.saving >= least * slack)
            & (offers.saving > 0.0)
            & (offers.probability >= MIN_PROBABILITY * slack)
            & (gain > cost)
        )
        relaxed = self.relaxed

        nearer = np.flatnonzero(eligible & saves & (relaxed.unreachable != NONE)[job])
        nearer = nearer[approaching(self._offered(offers, numbers, nearer), self.staying, relaxed.unreachable)]
        nears = np.zeros(count, dtype=np.bool_)
        nears[job[nearer]] = True
        intents = [Intent.REPAIR if near else intent for near, intent in zip(nears.tolist(), intents, strict=True)]
        wanted = eligible & ((saves & pays & ~nears[job]) | leaves)
        rows = np.flatnonzero(wanted)
        chosen = np.flatnonzero(eligible & repairs)
        chosen = chosen[repairing(self._offered(offers, relaxed.numbers, chosen), self.staying, relaxed.current)]
        taken = np.concatenate((chosen, nearer))
        wanted[taken] = True
        rows = np.concatenate((rows, taken))
        rows = rows[np.argsort(job[rows], kind="stable")]
        few, weak = offers.saving < least, offers.probability < MIN_PROBABILITY
        worse = ~saves | ~(offers.saving > 0.0)
        why = FIRST_COMPARED + np.where(worse, 0, np.where(few, 1, np.where(weak, 2, 3)))
        unsure = eligible & ~few & weak
        ends = np.cumsum(np.bincount(job[rows], minlength=count)).tolist()
        listed = rows.tolist()
        places = [self.register.placements[option] for option in offers.option[rows].tolist()]
        parts = list(zip([0, *ends], ends, strict=False))
        unknown = np.zeros(count, dtype=np.bool_)
        unknown[job[offers.gate == _UNPREDICTABLE]] = True
        idle = eligible & ~wanted
        gate = np.where(idle, np.where(self.strict == NONE, why, self.strict), offers.gate)
        return Running(
            prediction=self.prediction,
            offers=replace(offers, gate=gate),
            current=self.staying,
            rows=[range(begin, end) for begin, end in zip([0, *last], last, strict=False)],
            intents=intents,
            unpriced=unpriced,
            value=value,
            best=first_of_each(job, eligible, count),
            unsure=first_of_each(job, unsure, count),
            hour=np.where(unpriced, 0.0, np.minimum(value, here) + here),
            unreachable=[TARGET_CODES.get(code) for code in relaxed.unreachable.tolist()],
            nears=nears,
            holding=first_of_each(job, self.strict == NONE, count),
            unknown=unknown,
            wanted=[tuple(listed[begin:end]) for begin, end in parts],
            places=[tuple(places[begin:end]) for begin, end in parts],
        )


def _cost(price: Floats, rate: Floats) -> Floats:
    cost: Floats = price * (MILLION / HOUR) / rate
    return cost


def _number(place: Placement | None, register: Register) -> int:
    """A placement's number in the register; -1 for none and for one whose pool is gone."""
    return -1 if place is None or place.pool not in register.machines.index else register.option(place)
