"""What is known of an object that somebody else has made, beside what is known of every child."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rightpool.api.altered import altered
from rightpool.api.value_object import value_object
from rightpool.api.workload import Workload
from rightpool.contract import LABEL_ADOPT
from rightpool.workloads.kinds.kind import Kind
from rightpool.workloads.kinds.registry import adopted_workload
from rightpool.workloads.template import InvalidTemplate


@value_object
class AdoptedFacts:
    """What is known of a child that is an object which somebody else has made."""

    generation: int
    """Of its spec."""

    members: tuple[str, str]
    """The label, with its value, by which its pods are listed."""

    asked: str | None
    """The value of its label that has it adopted; None without one."""

    workload: Workload | None
    """What it runs; None where that can't be read."""

    problem: str = ""
    """Why it can't be, with the remedy."""


def adopted_facts(kind: Kind[Any], body: Mapping[str, Any], before: AdoptedFacts | None) -> AdoptedFacts:
    """Its workload is read once for each of its specs, and not whenever its status changes."""
    metadata = body["metadata"]
    generation, asked = int(metadata.get("generation") or 0), (metadata.get("labels") or {}).get(LABEL_ADOPT)
    if before is not None and generation and before.generation == generation:
        return before if before.asked == asked else altered(before, asked=asked)
    members, workload, problem = kind.members(body), None, ""
    try:
        workload = adopted_workload(kind, body)
    except InvalidTemplate as error:
        problem = error.message
    return AdoptedFacts(generation, members, asked, workload, problem)
