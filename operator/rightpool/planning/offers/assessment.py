"""An assessment: everywhere one job could be, and what is to be done about it now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rightpool.api.placement import Placement
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import Decision
from rightpool.planning.offers.evaluated import Evaluated
from rightpool.planning.offers.evidence import Limit
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.pool_gates import no_room
from rightpool.planning.offers.rejection import KeptFree, OtherChosen, SuspectedPool
from rightpool.planning.offers.shape import Shape
from rightpool.planning.offers.targets.target import JobTarget


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """The decision on one job, with the evaluation that it was taken from."""

    decision: Decision
    """Keep, or what is to be done, with the reason."""
    intent: Intent = Intent.NONE
    """What the decision is for."""
    saved_per_hour: float = 0.0
    """Dollars, time at its value included; 0 where nothing is to be done."""
    withdrawn: bool = False
    """Whether the migration that waits to begin, or for its save for too long, is not to be carried out: its target
    does not pay any more, or has no room for it."""
    evaluated: Evaluated | None = None
    """What it was chosen from; None where nothing was evaluated."""
    fits: tuple[bool, ...] = ()
    """Which of the wanted entries have room."""
    kept: tuple[bool, ...] = ()
    """Which of them would have room, were it not kept free for an older job that waits; all false where empty."""
    offers: frozenset[int] | None = None
    """Positions of the wanted entries that were given to it; None where all were."""
    given: int | None = None
    """The entry that the plan of the fleet gives a job that does not ask for it."""
    suspected: frozenset[str] = frozenset()
    """Pools that it is not moved to, because too many of the last moves there were undone."""
    waits_for: Limit | None = None
    """Why a migration that was approved does not begin yet."""
    way_back: bool | None = None
    """Of a move that has left: whether there is room where it came from. None where that was not asked."""

    def price(self, placement: Placement) -> float | None:
        """Dollars an hour of a placement today; None where that can't be known."""
        return None if self.evaluated is None else self.evaluated.price(placement)

    def useful(self, placement: Placement) -> float:
        """Share of the time there that interruptions leave."""
        return 1.0 if self.evaluated is None else self.evaluated.useful(placement)

    @property
    def crowded(self) -> bool:
        """Whether its pool is known to leave less of a rate than is predicted, as it is used now."""
        return self.evaluated is not None and self.evaluated.crowded

    @property
    def faded(self) -> float | None:
        """The job's rate ÷ what it would be, were its pool as it was at its verdict; None where that is not known."""
        return None if self.evaluated is None else self.evaluated.faded

    @property
    def current(self) -> Candidate | None:
        """Where the job is; None before its first start."""
        return None if self.evaluated is None else self.evaluated.current()

    @property
    def unreachable(self) -> JobTarget | None:
        """The target that is missed where the job is and that no placement holds surely enough; None where none is."""
        return None if self.evaluated is None else self.evaluated.unreachable

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Everywhere else, by score, the best first. One without rejection is what the decision takes, or would take.
        Made for who asks."""
        if self.evaluated is None:
            return ()
        evaluated = self.evaluated
        rooms = dict(zip(evaluated.wanted, self.fits, strict=True))
        kept = {entry for entry, so in zip(evaluated.wanted, self.kept, strict=False) if so}
        return tuple(self._candidate(evaluated, entry, rooms.get(entry), entry in kept) for entry in evaluated.entries)

    @property
    def room(self) -> tuple[object, ...]:
        """What of the fleet's room it depends on."""
        return self.fits, self.offers, self.given

    @property
    def first(self) -> Candidate | None:
        """The best of the candidates."""
        if self.evaluated is None or not self.evaluated.entries:
            return None
        return self.evaluated.candidate(self.evaluated.entries[0])

    @property
    def taken(self) -> int | None:
        """The entry that is taken."""
        if self.given is not None:
            return self.given
        return None if self.evaluated is None else first_given(self.evaluated.wanted, self.fits, self.offers)

    def _candidate(self, evaluated: Evaluated, entry: int, fits: bool | None, kept: bool) -> Candidate:
        candidate, taken = evaluated.candidate(entry), self.taken
        if entry == self.given:
            return replace(candidate, rejection=None)
        if fits is None:
            return candidate
        if not fits and candidate.placement.pool in self.suspected:
            return replace(candidate, rejection=SuspectedPool(candidate.placement.pool))
        if not fits and kept:
            return replace(candidate, rejection=KeptFree(candidate.placement.pool, candidate.placement.chips))
        if not fits:
            pool = evaluated.evaluation.register.machines.named[candidate.placement.pool]
            return replace(candidate, rejection=no_room(Shape.of(evaluated.job), candidate.placement, pool))
        if taken is None or entry == taken or evaluated.job.state.migration is not None:
            return candidate
        return replace(candidate, rejection=OtherChosen(evaluated.placement(taken)))

    def __eq__(self, other: object) -> bool:
        """Equal where they say the same of a job, whatever evaluation they were taken from."""
        if not isinstance(other, Assessment):
            return NotImplemented
        return self._meaning() == other._meaning()

    def _meaning(self) -> tuple[object, ...]:
        return (
            self.decision,
            self.intent,
            self.saved_per_hour,
            self.withdrawn,
            self.way_back,
            self.waits_for,
            self.current,
            self.candidates,
        )

    __hash__ = None  # type: ignore[assignment]


def first_given(wanted: Sequence[int], fits: Sequence[bool], offers: frozenset[int] | None) -> int | None:
    """The first wanted entry that has room, of those at the positions that were given; None: of all."""
    for position, (entry, room) in enumerate(zip(wanted, fits, strict=True)):
        if room and (offers is None or position in offers):
            return entry
    return None
