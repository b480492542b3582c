"""An invariant of jobs without a place, by their objects alone: whoever has waited for longer than the policy's
`fleet.maxWait` is passed over no more. The operator gives no job that wants to save, or that came later, as many chips
as that one needs in a pool where it may be. Of adopted objects that wait, the objects say what they need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from tests.chaos.environment import POOLS

Body = Mapping[str, Any]

_WAITS: Final = frozenset({"WaitingForCapacity", "WaitingForOlderJob"})
# What others want beyond what they have. What a user or a pool demands comes before all.
_SAVES: Final = frozenset({"CheaperPoolMeetsTargets", "FasterPlacementMeetsTargets", "FleetGains"})


Known = Callable[[str, str], Body | None]


class Wish(NamedTuple):
    """What a job without a place needs."""

    pools: frozenset[str]
    chips: int
    each: int
    since: str
    """When it was made, or last resumed by its user."""
    spec: object
    """As its user has written it."""


class WaitingJobs:
    """By uid, how long jobs wait."""

    def __init__(self, limit: float, adopted: Known = lambda namespace, name: None) -> None:
        """limit: seconds, counted while an operator can act. adopted: an object that is adopted, by namespace and
        name."""
        self._limit = limit
        self._adopted = adopted
        self._waited: dict[str, float] = {}
        self._jobs: dict[str, tuple[Body, Wish]] = {}

    def tick(self, seconds: float) -> None:
        """Count time in which an operator could have acted."""
        self._waited = {uid: waited + seconds for uid, waited in self._waited.items()}

    def observe(self, body: Body, before: Body | None, *, deleted: bool) -> Iterator[tuple[Body, str]]:
        """Who is passed over by this change of a job, and words. before: the job as it was."""
        uid = body["metadata"]["uid"]
        wish = None if deleted or not _waits(body) else self._wish(body)
        if wish is None:
            self._jobs.pop(uid, None)
            self._waited.pop(uid, None)
        else:
            same = uid in self._jobs and self._jobs[uid][1][3:] == wish[3:]
            self._jobs[uid] = body, wish
            self._waited[uid] = self._waited[uid] if same else 0.0
        got = None if deleted or before is None else _got(before.get("status") or {}, body.get("status") or {})
        if got is None:
            return
        pool, chips, starts = got
        if starts and "workload" not in body["spec"]:
            return  # Kubernetes has started it
        for other, (waiting, needs) in self._jobs.items():
            waited = self._waited[other]
            later = not starts or _created(body) > needs.since
            fits = pool in needs.pools and chips >= needs.chips and _each(body) >= needs.each
            if waited > self._limit and later and fits:
                name = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
                yield waiting, f"waits for {waited:.0f} s, and {name} gets {chips} chips of {pool}"

    def _wish(self, body: Body) -> Wish | None:
        """What it needs; None of an adopted object that is not seen."""
        spec, made, reference = body["spec"], _created(body), body["spec"].get("workloadRef")
        if reference is not None:
            its = self._adopted(body["metadata"]["namespace"], reference["name"])
            return None if its is None else _wish_of(its, made)
        avoid = {one["pool"] for one in (body.get("status") or {}).get("avoid") or ()}
        pools = ((spec.get("placement") or {}).get("pools") or {}).get("allow") or ()
        chips = int((spec.get("elasticity") or {}).get("minChips") or _each(body))
        return Wish(frozenset(pools) - avoid, chips, _each(body), made, spec)


def _wish_of(job: Body, adopted_at: str) -> Wish:
    """Of a Job that its user has made: it starts where its template has it, whatever its ProfiledJob allows."""
    spec = job["spec"]
    pod = spec["template"]["spec"]
    pools = {name for name, pool in POOLS.items() if pool["nodeSelector"].items() <= pod["nodeSelector"].items()}
    each = int(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
    since = max(adopted_at, str((job.get("status") or {}).get("startTime") or ""))
    return Wish(frozenset(pools), each * int(spec["parallelism"]), each, since, spec)


def _waits(body: Body) -> bool:
    status = body.get("status") or {}
    placed: Body = next((c for c in status.get("conditions") or () if c["type"] == "Placed"), {})
    return not status.get("placement") and placed.get("reason") in _WAITS


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


def _each(body: Body) -> int:
    return int(((body["spec"].get("workload") or {}).get("job") or {}).get("chipsPerReplica") or 1)


def _created(body: Body) -> str:
    return str(body["metadata"]["creationTimestamp"])
