"""What is known of an object that somebody else has made, beside what is known of every child."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightpool.api.altered import altered
from rightpool.api.value_object import value_object
from rightpool.api.workload import Workload
from rightpool.contract import LABEL_ADOPT
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.jobs.revision_state import Undoing
from rightpool.workloads.in_place import (
    Original,
    edited,
    original_of,
    put_back,
    queue_of,
    undone,
    unqueued,
    why_kept,
    why_unable,
)
from rightpool.workloads.kinds.kind import Kind, adoption_of
from rightpool.workloads.kinds.registry import adopted_workload
from rightpool.workloads.names import ANNOTATION_ORIGINAL
from rightpool.workloads.pod_set import scaled_of
from rightpool.workloads.template import InvalidTemplate


@value_object
class AdoptedFacts:
    """What is known of a child that is an object which somebody else has made."""

    generation: int
    """Of its spec."""

    members: tuple[str, str]
    """The label, with its value, by which its pods are listed."""

    trained: str
    """The labels of those that train, as the API server selects by them."""

    asked: str | None
    """The value of its label that has it adopted; None without one."""

    workload: Workload | None
    """What it runs; None where that can't be read."""

    problem: str = ""
    """Why it can't be, with the remedy."""

    role: str = ""
    """The pod set that trains."""

    size: tuple[int, int] | None = None
    """Chips and pods that it asks for now: the workload is what it was before the operator changed it."""

    able: Abilities | None = None
    """What can be changed of it."""

    note: str | None = None
    """What it was, as its annotation has it; None where it was never changed."""

    original: Original | None = None
    """The same, read."""

    edited: bool = False
    """Whether its user has changed it since the operator has."""

    undone: Undoing | None = None
    """Who has taken back what the operator has changed of it."""

    queue: str | None = None
    """The queue that says when it runs."""


def adopted_facts(kind: Kind[Any], body: Mapping[str, Any], before: AdoptedFacts | None) -> AdoptedFacts:
    """Its workload is read once for each of its specs, and not whenever its status changes."""
    metadata, part, queue = body["metadata"], adoption_of(kind), queue_of(body)
    generation, asked = int(metadata.get("generation") or 0), (metadata.get("labels") or {}).get(LABEL_ADOPT)
    note = (metadata.get("annotations") or {}).get(ANNOTATION_ORIGINAL)
    able = part.abilities(body)._replace(unable=why_unable(kind, body) or "")
    able = able._replace(anew=able.anew and why_kept(body) is None)
    if (
        before is not None
        and generation
        and (before.generation, before.note, before.queue) == (generation, note, queue)
    ):
        again = (asked, able, undone(kind, body) if before.original is not None else None)
        if (before.asked, before.able, before.undone) == again:
            return before
        return altered(before, asked=asked, able=able, undone=again[2])
    members, workload, size, problem, role, trained = part.members(body), None, None, "", "", ""
    original = original_of(kind, body)
    changed = original is not None and edited(kind, body)
    own = body if original is None or changed else put_back(body, original)
    try:
        now = adopted_workload(kind, body)
        workload = adopted_workload(kind, own if queue is None else unqueued(own))
        size, role = (now.chips, now.replicas), scaled_of(kind.pod_sets(workload.chosen)).name
        trained = ",".join(f"{label}={value}" for label, value in part.trained(body, role).items())
    except InvalidTemplate as error:
        problem = error.message
    return AdoptedFacts(
        generation,
        members,
        trained,
        asked,
        workload,
        problem,
        role,
        size,
        able,
        note,
        original,
        changed,
        undone(kind, body),
        queue,
    )
