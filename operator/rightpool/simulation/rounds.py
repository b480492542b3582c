"""Rounds: a fleet as simulators of schedulers play it. Time passes in rounds, at the end of each of which is decided.

A job is seen at the first end of a round after it came. Whatever it is given, it restarts, unless it is given what it
has; it holds the chips meanwhile. Chips that a job leaves inside a round are free at its end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from rightpool.api.placement import Placement

LONGEST: Final = 10_000_000
"""Seconds after which jobs that have not ended never will."""


class EpochWork(Protocol):
    """What a job of the rounds has to do."""

    @property
    def restart(self) -> int:
        """Seconds that a start takes, the first one included."""
        ...

    @property
    def ends(self) -> Sequence[float]:
        """Progress at the end of each of its epochs, the last of which ends the job."""
        ...

    def tune(self, place: Placement, epoch: int) -> None:
        """It may choose its batch size anew: when it is placed, and after each stretch."""
        ...

    def rate(self, place: Placement, epoch: int) -> float:
        """Progress a second with that batch size."""
        ...


@dataclass(slots=True, eq=False)
class RoundJob:
    """One job of the rounds."""

    name: str
    """Its own."""
    came: int
    """When it was submitted, seconds since the beginning."""
    work: EpochWork
    """What it has to do."""
    place: Placement | None = None
    """What it has; None while it waits."""
    epoch: int = 0
    """Of its work."""
    progress: float = 0.0
    """In units of its work."""
    restarting: int = 0
    """Seconds that are left of its restart."""
    restarts: int = -1
    """After the first start."""
    done: int | None = None
    """When it ended; None before that."""
    first: int | None = None
    """When it was placed for the first time; None before that."""
    held: dict[str, float] = field(default_factory=dict)
    """Chip-seconds by pool, restarts included."""

    @property
    def started(self) -> bool:
        """Whether it has ever had a place."""
        return self.restarts >= 0

    @property
    def seconds(self) -> int:
        """From its submission to its end."""
        assert self.done is not None
        return self.done - self.came

    def put(self, place: Placement | None) -> bool:
        """It is given this. Whether that is something else than it has."""
        if place == self.place:
            return False
        self.place = place
        if place is not None:
            self.work.tune(place, self.epoch)
            self.restarting = self.work.restart
            self.restarts += 1
        return True

    @property
    def changes_in(self) -> float:
        """Seconds until its restart is over, else until its epoch ends; infinite while it waits."""
        if self.place is None:
            return math.inf
        return self.restarting or (self.work.ends[self.epoch] - self.progress) / self.work.rate(self.place, self.epoch)

    def live(self, now: int, seconds: int) -> None:
        """A round passes, which begins now."""
        place = self.place
        if place is None:
            return
        self._work(place, now, seconds)
        hold = seconds if self.done is None else self.done - now
        self.held[place.pool] = self.held.get(place.pool, 0.0) + place.chips * hold

    def _work(self, place: Placement, now: int, left: int) -> None:
        work, ends = self.work, self.work.ends
        wait = min(self.restarting, left)
        self.restarting -= wait
        now, left = now + wait, left - wait
        while left > 0:
            rate, end = work.rate(place, self.epoch), ends[self.epoch]
            if self.progress + rate * left < end:
                self.progress += rate * left
                left = 0
            else:
                took = round((end - self.progress) / rate)
                self.progress = end
                self.epoch += 1
                now, left = now + took, left - took
                if self.epoch >= len(ends):
                    self.done = now
                    return
            work.tune(place, self.epoch)


Decide = Callable[[int, Sequence[RoundJob], bool], Mapping[str, Placement | None]]
"""What each job gets, by its name; who is not named waits. Given are the time, the jobs that are there in the order of
their submission, and whether one has come or ended since it was asked last."""


def play(
    jobs: Iterable[RoundJob],
    chips: Mapping[str, int],
    decide: Decide,
    seconds: int = 60,
    due: Callable[[], float] | None = None,
    last: int | None = None,
) -> None:
    """Play until the last job has ended. chips: of each pool. seconds: of a round. due: when `decide` has to be asked
    at the latest; rounds before that in which no job comes, ends or has restarted are passed over. None: no round is.
    last: when to stop, whoever has not ended by then; None: that is an error after LONGEST."""
    to_come = sorted(jobs, key=lambda job: job.came)
    there: list[RoundJob] = []
    now = 0
    while (to_come or there) and not (last is not None and now >= last):
        span = seconds
        if due is not None:
            soonest = min([to_come[0].came - now] if to_come else [], default=math.inf)
            if there:
                soonest = min(soonest, due() - now, *(job.changes_in for job in there))
            span = seconds * max(1, math.ceil(min(soonest, LONGEST) / seconds))
        for job in there:
            job.live(now, span)
        now += span
        if last is None and now > LONGEST:
            raise ValueError(f"{len(there)} jobs do not end, {there[0].name} among them")
        left = [job for job in there if job.done is None]
        arrived = sum(job.came <= now for job in to_come)
        changed = len(left) < len(there) or arrived > 0
        there, to_come = left + to_come[:arrived], to_come[arrived:]
        if there:
            given = decide(now, there, changed)
            _check(given, chips)
            for job in there:
                if job.put(given.get(job.name)) and job.first is None:
                    job.first = now


def _check(given: Mapping[str, Placement | None], chips: Mapping[str, int]) -> None:
    used = dict.fromkeys(chips, 0)
    for place in given.values():
        if place is not None:
            used[place.pool] += place.chips
    for pool, count in used.items():
        if count > chips[pool]:
            raise ValueError(f"{count} chips of {pool} were given away, which has {chips[pool]}")
