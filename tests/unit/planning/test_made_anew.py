"""An object that is deleted and made anew: what it was is known before it is deleted, until it is there again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rightpool.api.adopted_object import AdoptedObject
from rightpool.api.altered import altered
from rightpool.api.migration import Phase
from rightpool.planning.jobs.adopted import Adopted
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import Adopt, ChangeObject, FreeJob, commands
from tests.unit.planning.test_only_watched import step
from tests.unit.planning.test_users_word import HELD, RUNS, moving

OLD = AdoptedObject("old")
GONE = replace(OLD, remade="{}")


def starting(known: AdoptedObject, seen: str, manifest: str | None = None, held: bool = True, **more: Any) -> Job:
    """Its pods are gone, and it is to run as the next Revision. seen: the uid of its object."""
    job = moving(Phase.STARTING, HELD if held else replace(RUNS, revision=2, running=0))
    job = altered(job.with_state(replace(job.state, adopted=known)), **more)
    return altered(job, observed=job.observed._replace(adopted=Adopted(seen, 1, None), object_manifest=manifest))


def test_what_it_was_is_persisted_before_it_is_deleted() -> None:
    job = step(starting(OLD, "old", "{}"))
    assert job.state.adopted == GONE and job.state.migration is not None
    assert commands(job)[:2] == (Adopt(), ChangeObject(job.state.revision))


def test_a_newer_manifest_takes_its_place() -> None:
    assert step(starting(GONE, "old", "[]")).state.adopted == replace(OLD, remade="[]")


def test_while_it_is_gone_the_move_goes_on_and_its_job_is_kept() -> None:
    job = step(starting(GONE, "old", guarded=True))
    assert job.state.adopted == GONE and job.state.migration is not None
    assert FreeJob() not in commands(job) and ChangeObject(job.state.revision) in commands(job)


def test_once_it_is_there_again_its_job_is_free() -> None:
    job = step(starting(GONE, "new", guarded=True))
    assert job.state.adopted == AdoptedObject("new")
    assert FreeJob() in commands(job)
    assert FreeJob() not in commands(altered(job, guarded=False)), "nothing is to be done"


def test_who_takes_it_in_hand_before_keeps_it() -> None:
    assert step(starting(GONE, "old", held=False)).state.adopted == OLD
    assert step(starting(GONE, "old", "")).state.adopted == OLD, "somebody else has made another one"


def test_a_job_that_is_deleted_goes_when_its_object_is_there_again() -> None:
    deleted = starting(GONE, "old", guarded=True, deleting=True)
    assert commands(deleted) == (ChangeObject(deleted.state.revision),)
    again = starting(GONE, "new", held=False, guarded=True, deleting=True)
    assert commands(again) == (FreeJob(),)
    unread = altered(starting(OLD, "old", guarded=True), unreadable="status: by another version")
    assert FreeJob() not in commands(unread), "it may be all that is left"
