"""A history of jobs as a fleet that can be played again: with the pools, prices and policy of then, or with others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, NamedTuple

from pydantic import ValidationError

from rightpool.api.choices import Objective
from rightpool.api.ended_job import EndedJob, Stay, why
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import Catalog, UnknownAcceleratorError
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Predictor
from rightpool.simulation.chips import SimulatedPool
from rightpool.simulation.history_rates import Draw, HistoryRates, JobRates
from rightpool.simulation.planned_rounds import PlannedRounds
from rightpool.simulation.rounds import RoundJob, play

ROUND: Final = 60
"""Seconds."""
PLAN_SECONDS: Final = 600
"""After which is planned again where nothing has happened; longer while plans change nothing."""
USUAL_RESTART: Final = 120.0
"""Seconds that a restart takes where no job of the history tells."""
LONGER: Final = 4
"""A history is played for so many times its length at most."""
_TEMPLATE: Final = {"spec": {"containers": [{"name": "main"}]}}


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a history is played with."""

    pools: Mapping[str, Pool]
    """By name, with all chips that jobs of the history may have."""
    policy: PlacementPolicySpec
    """That of the cluster."""
    objective: Objective | None = None
    """Of all jobs; None: each has its own."""


class LeftOut(NamedTuple):
    """A record that can't be played."""

    job: str
    """NAMESPACE/NAME."""
    why: str
    """What is wrong."""


@dataclass(slots=True)
class HistoryWork:
    """What a job of the history has to do."""

    rates: JobRates
    """How fast it is."""
    spec: ProfiledJobSpec
    """What its user wants."""
    units: float
    """Of work."""
    restart: int
    """Seconds."""

    @property
    def ends(self) -> Sequence[float]:
        """It has one epoch."""
        return (self.units,)

    def tune(self, place: Placement, epoch: int) -> None:
        """Its rate is that of the batch that it makes."""

    def rate(self, place: Placement, epoch: int) -> float:
        """As measured, or predicted."""
        return self.rates.true(place)


@dataclass(slots=True)
class HistoryFacts:
    """What the operator is told of the jobs."""

    model: HistoryRates
    """The model of its plan."""
    objective: Objective | None
    """Of all jobs; None: each has its own."""

    def key(self, job: RoundJob) -> JobKey:
        """By its name, which is the only one of its kind."""
        namespace, name = job.name.split("/", 1)
        return JobKey(namespace, name)

    def spec(self, job: RoundJob) -> ProfiledJobSpec:
        """As its user wrote it, but for the objective."""
        spec = work_of_history(job).spec
        if self.objective is None:
            return spec
        targets = spec.targets.model_copy(update={"objective": self.objective})
        return spec.model_copy(update={"targets": targets})

    def program(self, job: RoundJob) -> str:
        """No record tells which jobs run the same."""
        return job.name

    def throughput(self, job: RoundJob) -> float:
        """By which the model knows it."""
        assert job.place is not None
        return self.model.know(work_of_history(job).rates, job.place)

    def done(self, job: RoundJob) -> int:
        """Whole units."""
        return round(job.progress)


@dataclass(slots=True)
class History:
    """Jobs with what is true of them."""

    records: tuple[EndedJob, ...]
    """Those that can be played, in the order of their arrival."""
    names: tuple[str, ...]
    """Of each; the second job of a name is NAME~2."""
    specs: tuple[ProfiledJobSpec, ...]
    """Of each."""
    homes: tuple[Stay, ...]
    """Where each was measured, by the names of the machines."""
    machines: Machines
    """All pools that jobs were in, and that there are."""
    left_out: tuple[LeftOut, ...]
    """Those that can't be played."""
    restart: float
    """Seconds that a restart takes a job that has never told."""

    @property
    def began(self) -> float:
        """Unix seconds of the first round."""
        return math.floor(self.records[0].arrived / ROUND) * float(ROUND)

    @property
    def seconds(self) -> float:
        """From the first arrival to the last end."""
        return max(record.ended for record in self.records) - self.began

    def works(self, model: Predictor, draw: Draw, *, by_home: bool = False) -> list[HistoryWork]:
        """What each job has to do. by_home: with nothing measured but at home."""
        found = []
        for record, name, spec, home in zip(self.records, self.names, self.specs, self.homes, strict=True):
            rates = JobRates(name, record, home, self.machines, model, draw, by_home)
            known = JobRates(name, record, home, self.machines, model, lambda _: 0.0)
            units = float(record.work or 0) if home.rate else 0.0
            units = units or sum(known.true(stay.placement) * (stay.seconds - stay.lost) for stay in record.stays)
            restart = self.restart if record.restart is None else record.restart
            found.append(HistoryWork(rates, spec, max(units, 1e-6), max(1, round(restart))))
        return found

    def played(
        self, scenario: Scenario, model: Predictor, draw: Draw, decider: Callable[[Predictor], Callable[[Fleet], Plan]]
    ) -> list[RoundJob]:
        """All jobs, as the operator would have placed them."""
        jobs = [
            RoundJob(name, math.ceil(record.arrived - self.began), work)
            for name, record, work in zip(self.names, self.records, self.works(model, draw), strict=True)
        ]
        facts = HistoryFacts(HistoryRates(), scenario.objective)
        pools = {name: SimulatedPool(pool) for name, pool in scenario.pools.items()}
        decide = decider(facts.model)
        rounds = PlannedRounds(facts, decide, scenario.policy, pools, self.began, PLAN_SECONDS, slower=True)
        chips = {name: pool.total for name, pool in scenario.pools.items()}
        play(jobs, chips, rounds, ROUND, lambda: rounds.due, round(LONGER * self.seconds) + ROUND)
        return jobs


def history_of(records: Iterable[EndedJob], pools: Mapping[str, Pool], catalog: Catalog) -> History:
    """The history of these jobs. pools: those that there are, whose chips are looked up for names alone. catalog: for
    chips of pools that are not there any more."""
    known = dict(pools)
    kept: list[tuple[EndedJob, ProfiledJobSpec, Stay]] = []
    left_out: list[LeftOut] = []
    for record in sorted(records, key=lambda record: (record.arrived, record.job)):
        try:
            stays = tuple(replace(stay, placement=_place(stay, known, catalog)) for stay in record.stays)
            record = replace(record, stays=stays)
            kept.append((record, _spec(record), _home(record)))
        except (ValueError, UnknownAcceleratorError) as error:
            left_out.append(LeftOut(record.job, why(error) if isinstance(error, ValueError) else str(error)))
    times: dict[str, int] = {}
    names = []
    for record, _, _ in kept:
        times[record.job] = times.get(record.job, 0) + 1
        names.append(record.job if times[record.job] == 1 else f"{record.job}~{times[record.job]}")
    restarts = [record.restart for record, _, _ in kept if record.restart]
    return History(
        records=tuple(record for record, _, _ in kept),
        names=tuple(names),
        specs=tuple(spec for _, spec, _ in kept),
        homes=tuple(home for _, _, home in kept),
        machines=Machines.of(known.values()),
        left_out=tuple(left_out),
        restart=median(restarts) if restarts else USUAL_RESTART,
    )


def work_of_history(job: RoundJob) -> HistoryWork:
    """What such a job has to do."""
    assert isinstance(job.work, HistoryWork)
    return job.work


def _place(stay: Stay, known: dict[str, Pool], catalog: Catalog) -> Placement:
    """The place, in a pool with the chips that it had then, which is made where there is none."""
    pool = known.get(stay.placement.pool)
    if pool is not None and stay.chip in (None, pool.accelerator.key):
        return stay.placement
    if stay.chip is None:
        raise ValueError(f"there is no pool {stay.placement.pool}: name its chip in stays.chip")
    name = f"{stay.placement.pool} ({stay.chip})"
    if name not in known:
        chip = catalog.get(stay.chip)
        node = max(8, stay.placement.chips_per_replica)
        links = chip.intra_link, chip.inter_link
        known[name] = Pool(name, chip, node, chip.vendor.name, {}, *links, Price(), 0, 0)
    return replace(stay.placement, pool=name)


def _home(record: EndedJob) -> Stay:
    """The last place where it was measured, else the one where it was longest."""
    measured = [stay for stay in record.stays if stay.rate]
    return measured[-1] if measured else max(record.stays, key=lambda stay: stay.seconds)


def _spec(record: EndedJob) -> ProfiledJobSpec:
    first = record.stays[0].placement
    replicas = record.replicas or first.replicas
    chips = record.chips or first.chips
    if chips % replicas:
        raise ValueError(f"{chips} chips in {replicas} pods are not as many in each: correct chips or replicas")
    job = {"chipsPerReplica": chips // replicas, "replicas": replicas, "template": _TEMPLATE}
    try:
        return ProfiledJobSpec.model_validate({**record.spec, "workload": {"job": job}})
    except ValidationError as error:
        raise ValueError(f"spec.{why(error)}") from None


def charged(pools: Mapping[str, Pool], place: Placement) -> float | None:
    """Dollars an hour of a place; None where the pool or its price is not known."""
    pool = pools.get(place.pool)
    if pool is None:
        return None
    price = pool.price.of(place.capacity)
    if price is None and place.capacity is CapacityType.SPOT:
        price = pool.price.on_demand
    return None if price is None else price * place.chips
