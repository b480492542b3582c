"""Rounds: what passes in them, counted by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from rightpool.api.placement import Placement
from rightpool.simulation.rounds import RoundJob, play

ONE, TWO = Placement("a", 1, 1), Placement("a", 2, 1)


@dataclass(slots=True)
class Steady:
    """Work at one unit a second and chip."""

    ends: tuple[float, ...] = (100.0, 130.0)
    restart: int = 20
    tuned: int = 0

    def tune(self, place: Placement, epoch: int) -> None:
        self.tuned += 1

    def rate(self, place: Placement, epoch: int) -> float:
        return float(place.chips)


def test_a_job_starts_at_the_first_round_after_it_came_and_ends_within_one() -> None:
    job = RoundJob("one", 61, Steady())
    play([job], {"a": 1}, lambda now, there, changed: {"one": ONE})
    # Seen at 120, restarts until 140, works 130 seconds.
    assert (job.done, job.seconds, job.restarts) == (270, 209, 0)
    assert job.held == {"a": 150.0}


def test_what_stays_as_it_is_does_not_restart_and_what_changes_does() -> None:
    job, asked = RoundJob("one", 0, Steady()), []

    def decide(now: int, there: Sequence[RoundJob], changed: bool) -> Mapping[str, Placement | None]:
        asked.append((now, changed))
        return {"one": ONE if now < 180 else TWO}

    play([job], {"a": 2}, decide)
    # From 60: restart until 80, 100 units by 180, restart until 200, 30 units at two a second.
    assert (job.done, job.restarts) == (215, 1)
    assert job.held == {"a": 120.0 + 2 * 35.0}
    assert asked == [(60, True), (120, False), (180, False)]


def test_a_paused_job_holds_nothing_and_keeps_its_progress() -> None:
    job = RoundJob("one", 0, Steady(ends=(70.0,)))
    play([job], {"a": 1}, lambda now, there, changed: {"one": None if now == 120 else ONE})
    # 40 units by 120, paused until 180, 30 more after a restart.
    assert (job.done, job.restarts) == (230, 1)
    assert job.held == {"a": 60.0 + 50.0}


def test_more_chips_than_there_are_can_not_be_given() -> None:
    jobs = [RoundJob(name, 0, Steady()) for name in ("one", "two")]
    with pytest.raises(ValueError, match="3 chips of a were given away, which has 2"):
        play(jobs, {"a": 2}, lambda now, there, changed: {"one": TWO, "two": ONE})


def test_jobs_that_never_get_anything_are_no_endless_loop() -> None:
    with pytest.raises(ValueError, match="1 jobs do not end, one among them"):
        play([RoundJob("one", 0, Steady())], {"a": 1}, lambda now, there, changed: {}, seconds=100_000)
