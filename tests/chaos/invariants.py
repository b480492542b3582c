"""Invariants of a fleet, checked from the API server's watch stream alone.

Checked at every event:
    two Revisions      pods of two children of one ProfiledJob run at the same time
    history            a ledger entry changes (but for what its move cost, which grows, what a change of the
                       size brought, which is measured later, and its message, which goes), or is lost (but for a save
                       that was asked for again and is counted there), or the ids do not increase
    phase              a migration makes a transition that is not allowed, or ends without a ledger entry
    revision           the number of the Revision decreases, or the child of an ended Revision is created again
    money              `spent` decreases
    ended              a job that has ended is no longer marked as ended
    passed over        see waiting_jobs.py
Checked for how long they last, counted only while an operator can act (`tick`):
    orphan             the owner of a child, pod or Service does not exist
    unreferenced       the status does not name a child
    no Revision        a job that should run has no child
Of adopted objects see adopted_objects.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rightpool.api.ledger import MAX_HISTORY
from rightpool.cluster.resources import PODS, PROFILED_JOBS, SERVICES
from rightpool.contract import LABEL_JOB, LABEL_REVISION
from rightpool.workloads.kinds.registry import kind_at
from tests.chaos.adopted_objects import AdoptedObjects
from tests.chaos.environment import MAX_WAIT
from tests.chaos.stream import StreamEvent
from tests.chaos.waiting_jobs import WaitingJobs

Body = Mapping[str, Any]
Key = tuple[str, str]

# Allowed transitions; None: the migration ends. A watch may skip states, so some transitions take several steps.
_NEXT: Final[Mapping[str, frozenset[str | None]]] = {
    "Planned": frozenset({"Checkpointing", None}),
    "Checkpointing": frozenset({"Draining", None}),
    "Draining": frozenset({"Starting", None}),
    "Starting": frozenset({"WarmingUp", "Draining", None}),
    "WarmingUp": frozenset({"Verifying", "Draining", None}),
    "Verifying": frozenset({"Checkpointing", None}),
}
# What a move cost is known later than its outcome: when the new pods have caught up with the steps that were lost. It
# may be set and grow.
_LATER: Final = frozenset({"cost", "lostSeconds"})
# A change of the size, by its user or by the fleet's plan, is over when its pods run; what it brought is measured after
# that, once.
_MEASURED_LATER: Final = frozenset({"realised", "throttled"})
# Reasons of Placed=False with which a job has no child.
_EXCUSED: Final = frozenset(
    {"InvalidTemplate", "InvalidSpec", "Suspended", "NoFeasiblePool", "WaitingForCapacity", "WaitingForOlderJob"}
    | {"WaitingForQuota"}
    | {"JobCompleted", "JobFailed", "Stopping", "NameTaken"}
)


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated invariant. about: namespace/name of the ProfiledJob."""

    invariant: str
    about: str
    message: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.about}: {self.message}"


@dataclass(slots=True)
class Checker:
    """Observes events in their order. limit: seconds for which a state that the operator must clean up may last."""

    limit: float = 60.0
    violations: list[Violation] = field(default_factory=list)
    events: int = 0
    written_at: float = float("-inf")
    """Monotonic seconds at which the last status that an operator wrote arrived."""
    objects: AdoptedObjects = field(default_factory=AdoptedObjects)
    """Those that users have made themselves."""
    waiting: WaitingJobs = field(init=False)
    """Those that have no place."""
    _jobs: dict[str, Body] = field(default_factory=dict)  # ProfiledJobs by uid
    _children: dict[str, Body] = field(default_factory=dict)
    _pods: dict[Key, dict[str, Body]] = field(default_factory=lambda: defaultdict(dict))
    _services: dict[str, Body] = field(default_factory=dict)
    _made: dict[tuple[str, int], str] = field(default_factory=dict)  # (owner, revision) → uid of the child
    _removed: set[str] = field(default_factory=set)  # children that a client other than the operator deleted
    _waiting: dict[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.waiting = WaitingJobs(MAX_WAIT, self.objects.at)

    def observe(self, event: StreamEvent) -> None:
        """One event of the stream."""
        self.events += 1
        if event.resource is PROFILED_JOBS:
            self._job(event)
        elif event.resource is PODS:
            self._pod(event)
        elif kind_at(event.resource) is not None and LABEL_REVISION in (event.body["metadata"].get("labels") or {}):
            self._child(event)
        elif kind_at(event.resource) is not None:  # no child: each of its Revisions is a state of it
            for invariant, body, message in self.objects.observe(event.kind, event.body):
                self._report(invariant, body, message)
        elif event.resource is SERVICES:
            self._keep(self._services, event)

    def allow_recreation(self, child: str) -> None:
        """The campaign deletes this child (by uid): the operator may create it again."""
        self._removed.add(child)

    def tick(self, seconds: float) -> None:
        """Count time in which an operator could have acted."""
        found = {(kind, uid): violation for kind, uid, violation in self._lasting()}
        self._waiting = {key: self._waiting.get(key, 0.0) + seconds for key in found}
        self.waiting.tick(seconds)
        for key, waited in list(self._waiting.items()):
            if waited > self.limit:
                violation = found[key]
                message = f"{violation.message} for {waited:.0f} s"
                self.violations.append(Violation(violation.invariant, violation.about, message))
                self._waiting[key] = float("-inf")  # reported once

    def lasting(self) -> list[Violation]:
        """States that are violations if they last. At the end of a campaign there must be none."""
        return [violation for _, _, violation in self._lasting()]

    # --- at every event ----------------------------------------------------------------------------------------------

    def _report(self, invariant: str, body: Body, message: str) -> None:
        self.violations.append(Violation(invariant, _about(body), message))

    def _keep(self, known: dict[str, Body], event: StreamEvent) -> None:
        uid = event.body["metadata"]["uid"]
        if event.kind == "DELETED":
            known.pop(uid, None)
        else:
            known[uid] = event.body

    def _pod(self, event: StreamEvent) -> None:
        key = (event.body["metadata"]["namespace"], event.body["metadata"]["labels"][LABEL_JOB])
        before = self._running_children(key)
        self._keep(self._pods[key], event)
        children = self._running_children(key)
        if len(children) > 1 and len(children) > len(before):
            running = ", ".join(f"{name} ({phase})" for name, phase in sorted(children.values()))
            self.violations.append(Violation("two Revisions", "/".join(key), f"pods run at the same time: {running}"))

    def _running_children(self, key: Key) -> dict[str, tuple[str, str]]:
        """Children with pods that have not ended: by uid of the child, one of its pods."""
        running: dict[str, tuple[str, str]] = {}
        for pod in self._pods[key].values():
            phase = (pod.get("status") or {}).get("phase", "Pending")
            if phase not in ("Succeeded", "Failed"):
                running[self._child_of(pod)] = (pod["metadata"]["name"], phase)
        return running

    def _child(self, event: StreamEvent) -> None:
        uid, body = event.body["metadata"]["uid"], event.body
        number, owner = int(body["metadata"]["labels"][LABEL_REVISION]), _owner(body)
        if event.kind != "DELETED" and uid not in self._children:
            earlier = self._made.get((owner, number))
            if earlier is not None and earlier != uid and earlier not in self._removed:
                self._report("revision", body, f"r{number} was created a second time")
            self._made[(owner, number)] = uid
        self._keep(self._children, event)

    def _job(self, event: StreamEvent) -> None:
        uid = event.body["metadata"]["uid"]
        old = self._jobs.get(uid)
        if event.kind != "DELETED" and old is not None:
            before, after = old.get("status") or {}, event.body.get("status") or {}
            if before != after and not event.listed:
                self.written_at = event.at
            self._compare(event.body, before, after, missed=event.listed)
        for body, message in self.waiting.observe(event.body, old, deleted=event.kind == "DELETED"):
            self._report("passed over", body, message)
        self._keep(self._jobs, event)

    def _compare(self, body: Body, old: Body, new: Body, *, missed: bool) -> None:
        """missed: whether there may have been statuses between these two."""
        if _spent(new) < _spent(old):
            self._report("money", body, f"spent went from {_spent(old)} to {_spent(new)}")
        before, after = _number(old), _number(new)
        lower = before is not None and (after is None or after < before)
        if lower and "workloadRef" not in body["spec"]:  # an adopted object that was not changed is what it was
            self._report("revision", body, f"the placement went from r{before} to r{after}")
        for kind in ("Completed", "Failed"):
            if _is_true(old, kind) and not _is_true(new, kind):
                self._report("ended", body, f"{kind} is no longer True")
        for counter in ("moves", "ledgerCount"):
            if int(new.get(counter) or 0) < int(old.get(counter) or 0):
                self._report("history", body, f"{counter} went from {old.get(counter)} to {new.get(counter)}")
        self._history(body, old.get("history") or [], new.get("history") or [])
        self._migration(body, old.get("migration"), new, missed=missed)

    def _history(self, body: Body, old: list[Body], new: list[Body]) -> None:
        known = {entry["id"]: entry for entry in new}
        numbers = [_decision(entry) for entry in new]
        if numbers != sorted(set(numbers)):
            self._report("history", body, f"ids do not increase: {[entry['id'] for entry in new]}")
        oldest = numbers[0] if numbers else None
        kept, repeated = [], False
        for entry in old:
            now = known.get(entry["id"])
            if now is not None:
                for change in _forbidden(entry, now):
                    self._report("history", body, f"{entry['id']} was changed: {change}")
            elif len(new) >= MAX_HISTORY and oldest is not None and _decision(entry) < oldest:
                continue  # the oldest one of a full history
            elif _repeated_in(entry, new):
                repeated = True
            else:
                self._report("history", body, f"{entry['id']} is gone")
            kept.append(entry)
        if repeated:  # each decision is one attempt of an entry
            attempts = sum(map(_attempts, new)) - sum(map(_attempts, kept))
            decisions = numbers[-1] - _decision(old[-1])
            if attempts != decisions:
                self._report("history", body, f"{decisions} decisions were made, and {attempts} attempts are counted")

    def _migration(self, body: Body, before: Body | None, new: Body, *, missed: bool) -> None:
        after = new.get("migration")
        if after is not None and int(after["id"].removeprefix("d-")) > int(new.get("ledgerCount") or 0):
            self._report("history", body, f"{after['id']} is not counted")
        if before is None:
            return
        if after is None or after["id"] != before["id"]:
            if before["id"] not in {entry["id"] for entry in new.get("history") or ()}:
                self._report("phase", body, f"{before['id']} ended in {before['phase']} without a ledger entry")
            return
        if before.get("rollingBack") and not after.get("rollingBack"):
            self._report("phase", body, f"{after['id']} stopped rolling back")
        following = _reachable(before["phase"]) if missed else _NEXT[before["phase"]]
        # Nothing runs that could save, or groups go one after the other that save nothing.
        if after.get("failure") == "JobFailed" or _goes_by_group(body):
            following |= {"Draining"}
        if after["phase"] != before["phase"] and after["phase"] not in following:
            self._report("phase", body, f"{after['id']} went from {before['phase']} to {after['phase']}")

    # --- over time ---------------------------------------------------------------------------------------------------

    def _lasting(self) -> Iterator[tuple[str, str, Violation]]:
        """Kind, uid and violation of every state that must not last."""
        for uid, (invariant, body, message) in self.objects.lasting():
            yield invariant, uid, Violation(invariant, _about(body), message)
        kinds = (("child", self._children), ("Service", self._services), ("pod", self._all_pods()))
        for what, objects in kinds:
            for uid, body in objects.items():
                owner = self._child_of(body) if what == "pod" else _owner(body)
                gone = owner not in (self._jobs if what == "child" else self._children)
                if gone:
                    name = body["metadata"]["name"]
                    yield "orphan", uid, Violation("orphan", _about(body), f"{what} {name} outlives its owner")
                elif what == "child" and not self._named(body, owner):
                    name = body["metadata"]["name"]
                    yield (
                        "unreferenced",
                        uid,
                        Violation("unreferenced", _about(body), f"{what} {name} is not in the status"),
                    )
        owners = {
            (_owner(child), int(child["metadata"]["labels"][LABEL_REVISION])) for child in self._children.values()
        }
        for uid, job in self._jobs.items():
            if "workloadRef" in job["spec"]:
                continue
            number = _number(job.get("status") or {})
            if self._must_run(job) and (uid, number) not in owners:
                message = f"no child of r{number}" if number is not None else "was never placed"
                yield "no Revision", uid, Violation("no Revision", _about(job), message)

    def _all_pods(self) -> dict[str, Body]:
        return {uid: pod for pods in self._pods.values() for uid, pod in pods.items()}

    def _child_of(self, pod: Body) -> str:
        """The uid of the child of a pod: what controls it, but of a JobSet's pods, between which stands a Job, and of a
        LeaderWorkerSet's, between which stand StatefulSets and which its name tells alone."""
        labels = pod["metadata"].get("labels") or {}
        namespace, name = pod["metadata"]["namespace"], labels.get("leaderworkerset.sigs.k8s.io/name")
        if name is None:
            return str(labels.get("jobset.sigs.k8s.io/jobset-uid") or _owner(pod))
        children = ((uid, child["metadata"]) for uid, child in self._children.items())
        found = (uid for uid, about in children if (about["namespace"], about["name"]) == (namespace, name))
        return next(found, f"{namespace}/{name}")

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


def _goes_by_group(body: Body) -> bool:
    spec = body.get("spec") or {}
    adopts_groups = (spec.get("workloadRef") or {}).get("kind") == "LeaderWorkerSet"
    return adopts_groups and (spec.get("checkpoint") or {}).get("mode") == "None"


def _reachable(phase: str) -> frozenset[str | None]:
    """The phases that follow in one step or in several."""
    found: frozenset[str | None] = frozenset({phase})
    while (further := found.union(*(_NEXT[one] for one in found if one is not None))) != found:
        found = further
    return found


def _decision(entry: Body) -> int:
    return int(entry["id"].removeprefix("d-"))


def _attempts(entry: Body) -> int:
    return int(entry.get("attempts") or 1)


def _forbidden(entry: Body, now: Body) -> Iterator[str]:
    """The changes of an entry that are not allowed."""
    for key in sorted({*entry, *now}):
        before, after = entry.get(key), now.get(key)
        if before == after:
            continue
        if key == "message" and after is None:
            continue
        resized = entry.get("action") == "Update" or entry.get("reason") == "FleetGains"
        if key in _MEASURED_LATER and resized and before is None:
            continue
        if key not in _LATER:
            yield key
        elif after is None:
            yield f"{key} vanished"
        elif before is not None and float(after) < float(before):
            yield f"{key} went from {before} to {after}"


def _repeated_in(entry: Body, history: list[Body]) -> bool:
    """Whether a save that it asked for did not come, and a later entry tried the same and counts more attempts."""
    same = ("outcome", "reason", "action", "from", "to")
    return entry.get("reason") in ("CheckpointTimeout", "SaveFailed") and any(
        _decision(later) > _decision(entry)
        and _attempts(later) > _attempts(entry)
        and all(later.get(key) == entry.get(key) for key in same)
        for later in history
    )
