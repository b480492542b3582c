"""An evaluation: every placement of every job of a fleet, in columns, and one job's part of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rightpool.api.placement import Placement
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.tenant import tenant_of
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.offers import Offers, Running
from rightpool.planning.offers.pool_gates import home_vendor, placed_vendor
from rightpool.planning.offers.register import Register
from rightpool.planning.offers.rejection import Rejection
from rightpool.planning.offers.scores import useful_share
from rightpool.planning.offers.shape import Shape
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.planning.work.outlook import Outlook, interruption_seconds
from rightpool.prediction.columns import floats


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationBatch:
    """Evaluations that were made for one plan."""

    size: int
    """How many jobs they are of."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What evaluating some jobs of a fleet together gave. It is kept whole while one of its jobs is kept from it."""

    register: Register
    """What the numbers in the columns stand for."""
    running: Running
    """Of the jobs that were measured."""
    now: float
    """Unix seconds when it was made."""
    batch: EvaluationBatch
    """What it was made with."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """One job's part of an evaluation. Of one that was not measured, by prices and specifications alone."""

    evaluation: Evaluation
    """Of the whole fleet, which this is a part of."""
    job: Job
    """As it was evaluated."""
    intent: Intent
    """What a decision would be for."""
    until: float
    """Unix seconds until which time alone changes nothing."""
    decision: Decision | None
    """Where none of the placements is decided on; None where `select` finds it from the columns."""

    offers: Offers
    """Where it could be, among those of other jobs."""
    entries: range
    """Its rows, the best first."""
    wanted: Sequence[int] = ()
    """Rows that would be acted on, in order of preference."""
    places: tuple[Placement, ...] = ()
    """Where these are."""
    shown: bool = True
    """Whether where it is counts as a candidate, too."""
    disallowed: Rejection | None = None
    """Why the user does not allow where a job is that was not measured."""
    faded: float | None = None
    """Its rate ÷ what it would be, were its pool as it was when the job was verified there; None of one that was not
    measured."""

    def placement(self, entry: int) -> Placement:
        """Where an entry is."""
        return self.evaluation.register.placements[int(self.offers.option[entry])]

    def saving(self, entry: int) -> float:
        """Share of the current score that an entry saves; 0 where nothing was measured."""
        return float(self.offers.saving[entry])

    def candidate(self, entry: int) -> Candidate:
        """One entry, with what rules it out whatever room there is."""
        return self._unmeasured(self.placement(entry), self.evaluation.register.kept(int(self.offers.gate[entry])))

    def made_current(self) -> Candidate | None:
        """What `current` gives, made anew."""
        revision = self.job.state.revision
        return self._unmeasured(revision.placement, self.disallowed) if self.shown and revision is not None else None

    def _unmeasured(self, placement: Placement, rejection: Rejection | None) -> Candidate:
        vendor, home = self.vendors(placement)
        price, chip = self.price(placement), self.chip(placement)
        return Candidate(
            placement, None, price, None, rejection=rejection, vendor=vendor, chip=chip, template_vendor=home
        )

    def current(self) -> Candidate | None:
        """Where the job is; None before its first start, and where its pool is not known."""
        return _current(self)

    def best(self) -> Candidate | None:
        """The best other placement that passes all gates; None where none does, or nothing was measured."""
        return None

    @property
    def unreachable(self) -> JobTarget | None:
        """The target that is missed where the job is and that no placement holds surely enough; None where none is."""
        return None

    @property
    def outlook(self) -> Outlook | None:
        """What the rest of the job looks like; None where nothing was measured."""
        return None

    @property
    def nears(self) -> bool:
        """Whether what is wanted comes nearer to a target that is unreachable, and meets none."""
        return False

    @property
    def hour(self) -> float:
        """Dollars that an hour of the job is worth now, time included; 0 where that is not known."""
        return 0.0

    def price(self, placement: Placement) -> float | None:
        """Dollars an hour of a placement; None where its pool or the price is not known."""
        machines = self.evaluation.register.machines
        place = machines.index.get(placement.pool)
        return None if place is None else machines.pools[place].price.hourly(placement)

    def useful(self, placement: Placement) -> float:
        """Share of the time that interruptions leave there; 1 where the pool is not known."""
        register = self.evaluation.register
        if placement.pool not in register.machines.index:
            return 1.0
        often = register.interruptions_of(placement, tenant_of(self.job))
        if not often:
            return 1.0
        return float(useful_share(floats(often), floats(interruption_seconds(self.job))))

    def chip(self, placement: Placement) -> str | None:
        """Key of its chips in the catalog; None where its pool is not known."""
        machines = self.evaluation.register.machines
        place = machines.index.get(placement.pool)
        return None if place is None else machines.pools[place].accelerator.key

    def vendors(self, placement: Placement) -> tuple[str | None, str | None]:
        """Who makes the chips of a placement, and, where a variant is used there, whose the template itself is taken to
        run on."""
        machines, job = self.evaluation.register.machines, self.job
        place = machines.index.get(placement.pool)
        if place is None:
            return None, None
        there = machines.pools[place].accelerator.vendor
        if job.variant(there.name) is None:
            return there.name, None
        ref = job.state.revision
        current = (
            None if ref is None or ref.placement.pool not in machines.index else machines.index[ref.placement.pool]
        )
        placed = placed_vendor(ref, None if current is None else machines.pools[current])
        home = home_vendor(Shape.of(job), machines.pools, placed)
        return there.name, None if home == there else home.name


# The texts of one status ask for it about eight times in a row. Kept of a few jobs alone: it is larger than its row.
@lru_cache(maxsize=4)
def _current(evaluated: Evaluated) -> Candidate | None:
    return evaluated.made_current()
