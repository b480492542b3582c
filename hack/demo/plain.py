"""What happens to a job in plain words: a line for each thing that matters, made of its status alone."""

from __future__ import annotations

from collections.abc import Iterator

from demo.job import Job, conditions
from rightpool.api.action import Action
from rightpool.api.conditions import ConditionType, Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.wording import chips, dollars, sentence

_ENDED = {
    Outcome.VERIFIED: "the move is kept",
    Outcome.ROLLED_BACK: "the move is undone",
    Outcome.FAILED: "the move has failed",
}


def plainly(job: Job) -> Iterator[tuple[str, str, str]]:
    """Where it runs or why it waits, what was measured there, where it moves and why, and what came of that."""
    placement, migration = job.status.get("placement") or {}, job.status.get("migration") or {}
    revision = f"r{placement.get('revision')}"
    placed = job.condition(ConditionType.PLACED)
    if placed.get("status") == "True":
        price = placement.get("costPerHour")
        cost = "" if price is None else f" for {dollars(float(price))} an hour"
        yield "place", revision, f"runs on {place_of(job)}{cost}"
    elif placed and job.pool is None and placed["reason"] != Reason.STARTING:
        yield "place", placed["reason"], sentence(f"waits: {placed['message']}")
    efficient = job.condition(ConditionType.EFFICIENT)
    if efficient.get("status") in ("True", "False") and not migration:
        yield "measured", revision, sentence(f"is measured: {efficient['message']}")
    if migration and job.phase != Phase.PLANNED:
        back = bool(migration.get("rollingBack"))
        why = migration.get("failureMessage" if back else "message", "")
        yield "move", f"{migration['id']}{back}", sentence(f"{'goes back' if back else 'moves'}: {why}")
    for entry in job.history[-1:]:
        ended = _ENDED.get(Outcome(entry["outcome"]))
        if ended is not None and entry["action"] != Action.START:
            yield "ended", entry["id"], sentence(f"{ended}: {entry.get('message', '')}")


def everything(job: Job) -> Iterator[tuple[str, str, str]]:
    """The same, and all that its conditions say."""
    yield from plainly(job)
    yield from conditions(job)


def place_of(job: Job) -> str:
    """2 chips of dev."""
    return f"{chips(job.chips or 0)} of {job.pool}"
