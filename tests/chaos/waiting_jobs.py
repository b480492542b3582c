"""An invariant of jobs without a place, by their objects alone: whoever has waited for longer than the policy's
`fleet.maxWait` is passed over no more. The operator gives no job that wants to save, or that came later, as many chips
as that one needs in a pool where it may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

Body = Mapping[str, Any]

_WAITS: Final = frozenset({"WaitingForCapacity", "WaitingForOlderJob"})
# What others want beyond what they have. What a user or a pool demands comes before all.
_SAVES: Final = frozenset({"CheaperPoolMeetsTargets", "FasterPlacementMeetsTargets", "FleetGains"})


class WaitingJobs:
    """By uid, how long jobs wait. limit: seconds, counted while an operator can act."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._waited: dict[str, float] = {}
        self._jobs: dict[str, Body] = {}

    def tick(self, seconds: float) -> None:
        """Count time in which an operator could have acted."""
        self._waited = {uid: waited + seconds for uid, waited in self._waited.items()}

    def observe(self, body: Body, before: Body | None, *, deleted: bool) -> Iterator[tuple[Body, str]]:
        """Who is passed over by this change of a job, and words. before: the job as it was."""
        uid, same = body["metadata"]["uid"], before is not None and before["spec"] == body["spec"]
        if deleted or not _waits(body):
            self._jobs.pop(uid, None)
            self._waited.pop(uid, None)
        else:
            self._jobs[uid] = body
            self._waited[uid] = self._waited.get(uid, 0.0) if same else 0.0
        got = None if deleted or before is None else _got(before.get("status") or {}, body.get("status") or {})
        if got is None:
            return
        pool, chips, starts = got
        for other, waiting in self._jobs.items():
            waited = self._waited[other]
            later = not starts or _created(body) > _created(waiting)
            if waited > self._limit and later and _could_have(waiting, pool, chips, _each(body)):
                name = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
                yield waiting, f"waits for {waited:.0f} s, and {name} gets {chips} chips of {pool}"


def _waits(body: Body) -> bool:
    status = body.get("status") or {}
    placed: Body = next((c for c in status.get("conditions") or () if c["type"] == "Placed"), {})
    return "workload" in body["spec"] and not status.get("placement") and placed.get("reason") in _WAITS


def _got(old: Body, new: Body) -> tuple[str, int, bool] | None:
    """The pool of which a job gets more chips, how many, and whether it starts; None where it does not."""
    here, migration = old.get("placement"), new.get("migration")
    if here is None:
        there = new.get("placement")
        return None if there is None else (there["pool"], int(there["chips"]), True)
    if migration is None or (old.get("migration") or {}).get("id") == migration["id"]:
        return None
    if migration.get("reason") not in _SAVES:
        return None
    there = migration["to"]
    more = int(there["chips"]) - (int(here["chips"]) if here["pool"] == there["pool"] else 0)
    return there["pool"], more, False


def _could_have(waiting: Body, pool: str, chips: int, each: int) -> bool:
    spec, avoid = waiting["spec"], (waiting.get("status") or {}).get("avoid") or ()
    allowed = ((spec.get("placement") or {}).get("pools") or {}).get("allow") or ()
    needs = int((spec.get("elasticity") or {}).get("minChips") or _each(waiting))
    free = pool in allowed and pool not in {one["pool"] for one in avoid}
    return free and chips >= needs and each >= _each(waiting)


def _each(body: Body) -> int:
    return int(((body["spec"].get("workload") or {}).get("job") or {}).get("chipsPerReplica") or 1)


def _created(body: Body) -> str:
    return str(body["metadata"]["creationTimestamp"])
