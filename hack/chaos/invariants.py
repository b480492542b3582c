"""What must never happen to a fleet, whatever is done to it, told from the API server's event stream alone.

At every event:
    two Revisions      pods of two children of one ProfiledJob are alive at the same time
    history            a ledger entry changes, disappears from the middle, or ids do not grow
    phase              a migration goes a way that its state machine does not have, or ends without a ledger entry
    revision           the number of the Revision goes down, or a child is made anew under a number that was ended
    money              `spent` goes down
    ended              a job that has ended is not ended any more
Over time, counted only while somebody is there who could do something about it (`tick`):
    orphan             a child of a ProfiledJob that is gone, a pod or Service of a child that is gone
    stray              a child that the status does not name
    no Revision        a job that should run has no child
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from chaos.stream import Seen
from rightpool.cluster.resources import JOBS, PODS, PROFILED_JOBS, SERVICES
from rightpool.contract import LABEL_JOB, LABEL_REVISION

Body = Mapping[str, Any]
Key = tuple[str, str]

# Where a phase may go; None: the migration ends. A watch may skip states, so that ways of several steps count too.
_NEXT: Final[Mapping[str, frozenset[str | None]]] = {
    "Planned": frozenset({"Checkpointing", None}),
    "Checkpointing": frozenset({"Draining", None}),
    "Draining": frozenset({"Starting", None}),
    "Starting": frozenset({"WarmingUp", "Draining", None}),
    "WarmingUp": frozenset({"Verifying", "Draining", None}),
    "Verifying": frozenset({"Checkpointing", None}),
}
# Reasons of Placed=False for which a job is rightly without a child.
_EXCUSED: Final = frozenset(
    {"InvalidTemplate", "InvalidSpec", "Suspended", "NoFeasiblePool", "WaitingForCapacity", "WaitingForQuota"}
    | {"JobCompleted", "JobFailed", "Stopping", "NameTaken"}
)


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never happen. about: namespace/name of the ProfiledJob."""

    invariant: str
    about: str
    message: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.about}: {self.message}"


@dataclass(slots=True)
class Checker:
    """Fed with events in their order. limit: seconds for which a state that is to be cleaned up may last."""

    limit: float = 60.0
    violations: list[Violation] = field(default_factory=list)
    events: int = 0
    _jobs: dict[str, Body] = field(default_factory=dict)  # ProfiledJobs by uid
    _children: dict[str, Body] = field(default_factory=dict)
    _pods: dict[Key, dict[str, Body]] = field(default_factory=lambda: defaultdict(dict))
    _services: dict[str, Body] = field(default_factory=dict)
    _made: dict[tuple[str, int], str] = field(default_factory=dict)  # (owner, revision) → uid of the child
    _removed: set[str] = field(default_factory=set)  # children that somebody else has deleted
    _waiting: dict[tuple[str, str], float] = field(default_factory=dict)

    def see(self, event: Seen) -> None:
        """One event of the stream."""
        self.events += 1
        if event.resource is PROFILED_JOBS:
            self._job(event)
        elif event.resource is PODS:
            self._pod(event)
        elif event.resource is JOBS:
            self._child(event)
        elif event.resource is SERVICES:
            self._keep(self._services, event)

    def excuse(self, child: str) -> None:
        """A child (by uid) that the campaign itself deletes: it may be made anew."""
        self._removed.add(child)

    def tick(self, seconds: float) -> None:
        """So much time passed in which the operator could have acted."""
        found = {(kind, uid): violation for kind, uid, violation in self._lasting()}
        self._waiting = {key: self._waiting.get(key, 0.0) + seconds for key in found}
        for key, waited in list(self._waiting.items()):
            if waited > self.limit:
                violation = found[key]
                message = f"{violation.message} for {waited:.0f} s"
                self.violations.append(Violation(violation.invariant, violation.about, message))
                self._waiting[key] = float("-inf")  # told once

    def lasting(self) -> list[Violation]:
        """What would be a violation if it lasted: at the end of a campaign there must be none."""
        return [violation for _, _, violation in self._lasting()]

    # --- at every event ----------------------------------------------------------------------------------------------

    def _tell(self, invariant: str, body: Body, message: str) -> None:
        self.violations.append(Violation(invariant, _about(body), message))

    def _keep(self, known: dict[str, Body], event: Seen) -> None:
        uid = event.body["metadata"]["uid"]
        if event.kind == "DELETED":
            known.pop(uid, None)
        else:
            known[uid] = event.body

    def _pod(self, event: Seen) -> None:
        key = (event.body["metadata"]["namespace"], event.body["metadata"]["labels"][LABEL_JOB])
        before = self._writers(key)
        self._keep(self._pods[key], event)
        writers = self._writers(key)
        if len(writers) > 1 and len(writers) > len(before):
            told = ", ".join(f"{name} ({phase})" for name, phase in sorted(writers.values()))
            self.violations.append(Violation("two Revisions", "/".join(key), f"pods alive at once: {told}"))

    def _writers(self, key: Key) -> dict[str, tuple[str, str]]:
        """Children with pods that may be working: by uid of the child, one of its pods."""
        alive: dict[str, tuple[str, str]] = {}
        for pod in self._pods[key].values():
            phase = (pod.get("status") or {}).get("phase", "Pending")
            if phase not in ("Succeeded", "Failed"):
                alive[_owner(pod)] = (pod["metadata"]["name"], phase)
        return alive

    def _child(self, event: Seen) -> None:
        uid, body = event.body["metadata"]["uid"], event.body
        number, owner = int(body["metadata"]["labels"][LABEL_REVISION]), _owner(body)
        if event.kind != "DELETED" and uid not in self._children:
            earlier = self._made.get((owner, number))
            if earlier is not None and earlier != uid and earlier not in self._removed:
                self._tell("revision", body, f"r{number} was made a second time")
            self._made[(owner, number)] = uid
        self._keep(self._children, event)

    def _job(self, event: Seen) -> None:
        uid = event.body["metadata"]["uid"]
        old = self._jobs.get(uid)
        if event.kind != "DELETED" and old is not None:
            self._compare(event.body, old.get("status") or {}, event.body.get("status") or {})
        self._keep(self._jobs, event)

    def _compare(self, body: Body, old: Body, new: Body) -> None:
        if _spent(new) < _spent(old):
            self._tell("money", body, f"spent went from {_spent(old)} to {_spent(new)}")
        before, after = _number(old), _number(new)
        if before is not None and (after is None or after < before):
            self._tell("revision", body, f"the placement went from r{before} to r{after}")
        for kind in ("Completed", "Failed"):
            if _is_true(old, kind) and not _is_true(new, kind):
                self._tell("ended", body, f"{kind} is not True any more")
        for counter in ("moves", "ledgerCount"):
            if int(new.get(counter) or 0) < int(old.get(counter) or 0):
                self._tell("history", body, f"{counter} went from {old.get(counter)} to {new.get(counter)}")
        self._history(body, old.get("history") or [], new.get("history") or [])
        self._migration(body, old.get("migration"), new)

    def _history(self, body: Body, old: list[Body], new: list[Body]) -> None:
        known = {entry["id"]: entry for entry in new}
        numbers = [int(entry["id"].removeprefix("d-")) for entry in new]
        if numbers != sorted(set(numbers)):
            self._tell("history", body, f"ids do not grow: {[entry['id'] for entry in new]}")
        oldest = numbers[0] if numbers else None
        for entry in old:
            now = known.get(entry["id"])
            if now is None:
                dropped = len(new) >= 10 and oldest is not None and int(entry["id"].removeprefix("d-")) < oldest
                if not dropped:
                    self._tell("history", body, f"{entry['id']} is gone")
            elif now != entry:
                changed = [key for key in {*now, *entry} if now.get(key) != entry.get(key)]
                self._tell("history", body, f"{entry['id']} was written anew: {sorted(changed)}")

    def _migration(self, body: Body, before: Body | None, new: Body) -> None:
        after = new.get("migration")
        if after is not None and int(after["id"].removeprefix("d-")) > int(new.get("ledgerCount") or 0):
            self._tell("history", body, f"{after['id']} is not counted")
        if before is None:
            return
        if after is None or after["id"] != before["id"]:
            if before["id"] not in {entry["id"] for entry in new.get("history") or ()}:
                self._tell("phase", body, f"{before['id']} ended in {before['phase']} without a ledger entry")
            return
        if before.get("rollingBack") and not after.get("rollingBack"):
            self._tell("phase", body, f"{after['id']} stopped rolling back")
        if after["phase"] != before["phase"] and after["phase"] not in _NEXT[before["phase"]]:
            self._tell("phase", body, f"{after['id']} went from {before['phase']} to {after['phase']}")

    # --- over time ---------------------------------------------------------------------------------------------------

    def _lasting(self) -> Iterator[tuple[str, str, Violation]]:
        """(kind, uid, violation) of every state that must not last."""
        kinds = (("child", self._children), ("Service", self._services), ("pod", self._all_pods()))
        for what, objects in kinds:
            for uid, body in objects.items():
                owner = _owner(body)
                gone = owner not in (self._jobs if what == "child" else self._children)
                if gone:
                    name = body["metadata"]["name"]
                    yield "orphan", uid, Violation("orphan", _about(body), f"{what} {name} outlives its owner")
                elif what == "child" and not self._named(body, owner):
                    name = body["metadata"]["name"]
                    yield "stray", uid, Violation("stray", _about(body), f"{what} {name} is not in the status")
        owners = {
            (_owner(child), int(child["metadata"]["labels"][LABEL_REVISION])) for child in self._children.values()
        }
        for uid, job in self._jobs.items():
            number = _number(job.get("status") or {})
            if self._must_run(job) and (uid, number) not in owners:
                message = f"no child of r{number}" if number is not None else "was never placed"
                yield "no Revision", uid, Violation("no Revision", _about(job), message)

    def _all_pods(self) -> dict[str, Body]:
        return {uid: pod for pods in self._pods.values() for uid, pod in pods.items()}

    def _named(self, body: Body, owner: str) -> bool:
        status = self._jobs[owner].get("status") or {}
        migration = status.get("migration") or {}
        places = [status.get("placement"), *(migration.get(key) for key in ("from", "to", "abandoned"))]
        number = int(body["metadata"]["labels"][LABEL_REVISION])
        return number in {place["revision"] for place in places if place}

    def _must_run(self, job: Body) -> bool:
        status = job.get("status") or {}
        if job["metadata"].get("deletionTimestamp") or job["spec"].get("suspend"):
            return False
        if _is_true(status, "Completed") or _is_true(status, "Failed"):
            return False
        placed: Body = next((c for c in status.get("conditions") or () if c["type"] == "Placed"), {})
        return placed.get("reason") not in _EXCUSED


def _about(body: Body) -> str:
    about = body["metadata"]
    return f"{about['namespace']}/{(about.get('labels') or {}).get(LABEL_JOB) or about['name']}"


def _owner(body: Body) -> str:
    references = body["metadata"].get("ownerReferences") or ()
    return next((str(reference["uid"]) for reference in references if reference.get("controller")), "")


def _spent(status: Body) -> float:
    return float((status.get("cost") or {}).get("spent") or 0.0)


def _number(status: Body) -> int | None:
    placement = status.get("placement")
    return None if placement is None else int(placement["revision"])


def _is_true(status: Body, kind: str) -> bool:
    return any(c["type"] == kind and c["status"] == "True" for c in status.get("conditions") or ())
