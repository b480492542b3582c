"""Faults of adopted objects: what their users, and tools of theirs, do to them at any time."""

from __future__ import annotations

from typing import Any, Final

from rightpool.api.kubernetes import JOBS
from rightpool.cluster.client import MERGE_CONTENT
from rightpool.cluster.errors import Conflict, Invalid, NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import ANNOTATION_RELEASE
from tests.chaos.context import Fault, FaultContext, NotApplicable
from tests.chaos.jobs import Slot

Body = dict[str, Any]


def _replaced(context: FaultContext, body: Body) -> Body:
    """As its user writes it, who has read it just now, and as it was stored."""
    try:
        return dict(context.client.replace(JOBS, body))
    except (Conflict, Invalid, NotFound) as error:
        raise NotApplicable(error.message) from error


def _suspend(context: FaultContext, slot: Slot, suspend: bool) -> None:
    body = context.object(slot)
    body["spec"]["suspend"] = suspend
    context.checker.objects.suspended(body, suspend)
    _replaced(context, body)


def sent(context: FaultContext) -> None:
    """Its user sends it to the other pool."""
    slot = context.pick(adopted=True)
    placement = (context.job(slot).get("status") or {}).get("placement") or {}
    there = "a100" if placement.get("pool") == "a10g" else "a10g"
    context.edit(slot, lambda body: body["spec"]["placement"]["pools"].update(allow=[there]))


def suspended(context: FaultContext) -> None:
    """Suspended by its user, and resumed later."""
    slot = context.pick(adopted=True)
    context.repair_later(context.rng.uniform(0.2, 8), lambda: _resume(context, slot))
    _suspend(context, slot, True)


def _resume(context: FaultContext, slot: Slot) -> None:
    """Whoever reads it last: an object that is written at the same time is tried again."""
    for _ in range(20):
        try:
            return _suspend(context, slot, False)
        except NotApplicable:
            context.object(slot)  # where it is gone there is nothing to resume
    raise Conflict(f"{slot} changes too often to be resumed")


def resumed(context: FaultContext) -> None:
    """Its user resumes what is suspended, whoever has done that."""
    _suspend(context, context.choose([slot for slot in context.slots if _is_suspended(context, slot)]), False)


def _is_suspended(context: FaultContext, slot: Slot) -> bool:
    try:
        return slot.adopted and bool(context.object(slot)["spec"].get("suspend"))
    except NotApplicable:
        return False


def set_back(context: FaultContext) -> None:
    """What applies objects as a repository has them sets one running again."""
    slot = context.pick(adopted=True)
    body = context.object(slot)
    context.checker.objects.suspended(body, False)
    about = {"name": slot.name, "namespace": slot.namespace, "uid": body["metadata"]["uid"]}
    context.client.apply(JOBS, {"metadata": about, "spec": {"suspend": False}}, manager="argocd-controller")


def resized(context: FaultContext) -> None:
    """Its user gives it another size, while it runs or while it is moved."""
    body = context.object(context.pick(adopted=True))
    pods = context.choose([size for size in (1, 2, 3) if size != body["spec"]["parallelism"]])
    body["spec"] |= {"parallelism": pods, "completions": pods}
    context.checker.objects.wrote(_replaced(context, body))


def labelled(context: FaultContext) -> None:
    """A label of its user's."""
    body = context.object(context.pick(adopted=True))
    body["metadata"].setdefault("labels", {})["edition"] = str(context.rng.randrange(1_000_000))
    _replaced(context, body)


def remade(context: FaultContext) -> None:
    """Its user deletes it with its ProfiledJob, and makes both anew."""
    slot = context.pick(adopted=True)
    body = context.object(slot)
    context.checker.objects.removed(body)
    uid = body["metadata"]["uid"]
    context.repair_later(context.rng.uniform(1, 5), lambda: context.create(slot))
    for resource, known in ((JOBS, uid), (PROFILED_JOBS, None)):
        try:
            context.client.delete(resource, slot.name, slot.namespace, uid=known, propagation="Background")
        except (NotFound, Conflict):
            pass


def released(context: FaultContext) -> None:
    """Its user has it put back and let go of, and adopts it again later."""
    slot = context.pick(adopted=True)
    context.job(slot)

    def annotate(value: str | None) -> None:
        body = {"metadata": {"annotations": {ANNOTATION_RELEASE: value}}}
        context.client.request("PATCH", PROFILED_JOBS.path(slot.namespace, slot.name), body=body, content=MERGE_CONTENT)

    def again() -> None:
        """Whether it was let go of by now or not."""
        try:
            annotate(None)
        except NotFound:
            context.create(slot)

    context.repair_later(context.rng.uniform(5, 20), again)
    annotate("true")


FAULTS: Final = (
    Fault("object-sent", "adopted objects", 24, sent),
    Fault("object-suspended", "adopted objects", 4, suspended),
    Fault("object-resumed", "adopted objects", 4, resumed),
    Fault("object-set-back", "adopted objects", 4, set_back),
    Fault("object-resized", "adopted objects", 4, resized),
    Fault("object-labelled", "adopted objects", 3, labelled),
    Fault("object-remade", "adopted objects", 4, remade),
    Fault("object-released", "adopted objects", 4, released),
)
