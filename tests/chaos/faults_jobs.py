"""Faults of jobs: events of their pods, and edits by their users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rightpool.api.kubernetes import JOBS, Resource
from rightpool.cluster.errors import Conflict, Forbidden, Invalid, NotFound
from rightpool.cluster.resources import PODS, PROFILED_JOBS
from rightpool.contract import ANNOTATION_APPROVE
from tests.chaos.context import Fault, FaultContext, NotApplicable
from tests.chaos.jobs import SIMULATION, Slot

Body = dict[str, Any]
POD_STATUS: Final = "status"


# --- pods ------------------------------------------------------------------------------------------------------------


def pod_evicted(context: FaultContext) -> None:
    """A pod is deleted with its grace period."""
    slot = context.pick(adopted=None)
    pod = context.choose(context.pods(slot))
    _delete(context, PODS, pod)


def pods_deleted_by_force(context: FaultContext) -> None:
    """All pods of a job are deleted without a grace period."""
    slot = context.pick(adopted=None)
    for pod in context.pods(slot):
        path = PODS.path(slot.namespace, pod["metadata"]["name"])
        try:
            context.client.request(
                "DELETE", path, body={"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
            )
        except NotFound:
            pass


def _ended(phase: str, exit_code: int) -> Callable[[FaultContext], None]:
    def end(context: FaultContext) -> None:
        slot = context.pick(real=False)
        pods = [pod for pod in context.pods(slot) if pod["status"].get("phase") == "Running"]
        if phase == "Succeeded" and any(len(pods) < child["spec"]["parallelism"] for child in context.children(slot)):
            raise NotApplicable(f"not all pods of {slot} run, and the rest of a simulated program would never end")
        for pod in pods if phase == "Succeeded" else [context.choose(pods)]:
            name = pod["metadata"]["name"]
            state = {"terminated": {"exitCode": exit_code, "reason": "Completed" if not exit_code else "Error"}}
            status = {**pod["status"], "phase": phase}
            status["containerStatuses"] = [{**c, "ready": False, "state": state} for c in status["containerStatuses"]]
            status["conditions"] = [
                {**c, "status": "False"} if c["type"] == "Ready" else c for c in status["conditions"]
            ]
            try:
                path = PODS.path(slot.namespace, name, POD_STATUS)
                context.client.request("PUT", path, body={**pod, "apiVersion": "v1", "kind": "Pod", "status": status})
            except (Conflict, NotFound):
                pass

    return end


def child_deleted(context: FaultContext) -> None:
    """Another client deletes the Job of a Revision."""
    slot = context.pick()
    child = context.choose(context.children(slot))
    context.checker.allow_recreation(child["metadata"]["uid"])
    _delete(context, JOBS, child)


def child_suspended(context: FaultContext) -> None:
    """Another client suspends the Job of a Revision."""
    child = context.choose(context.children(context.pick()))
    child["spec"]["suspend"] = True
    try:
        context.client.replace(JOBS, child)
    except (Conflict, NotFound, Invalid) as error:
        raise NotApplicable(error.message) from error


def _delete(context: FaultContext, resource: Resource, body: Body) -> None:
    about = body["metadata"]
    try:
        context.client.delete(resource, about["name"], about["namespace"], uid=about["uid"], propagation="Background")
    except (NotFound, Conflict):
        pass


# --- users -----------------------------------------------------------------------------------------------------------


def _template(body: Body) -> Body:
    template: Body = body["spec"]["workload"]["job"]["template"]
    return template


def image_edited(context: FaultContext) -> None:
    """A new image: the workload is replaced in its pool."""
    number = context.rng.randrange(1_000_000)
    slot = context.pick()

    def change(body: Body) -> None:
        if slot.real:
            _template(body).setdefault("metadata", {}).setdefault("labels", {})["edition"] = str(number)
        else:
            _template(body)["spec"]["containers"][0]["image"] = f"example.com/trainer:{number}"

    context.edit(slot, change)


def resized(context: FaultContext) -> None:
    """The user asks for another number of replicas."""

    def change(body: Body) -> None:
        spec = body["spec"]
        most = spec["elasticity"]["maxChips"] // spec["workload"]["job"]["chipsPerReplica"]
        spec["workload"]["job"]["replicas"] = context.rng.randint(1, most)

    context.edit(context.pick(real=False), change)


def pools_swapped(context: FaultContext) -> None:
    """The user changes the allowed pools: the job may have to move."""
    allow = context.rng.choice([["a100"], ["a10g"], ["a100", "a10g"]])
    slot = context.pick(real=False, adopted=None)
    context.edit(slot, lambda body: body["spec"]["placement"]["pools"].update(allow=allow))


def suspended(context: FaultContext) -> None:
    """Suspended, and resumed later."""
    slot = context.pick()

    def resume() -> None:
        context.edit(slot, lambda body: body["spec"].update(suspend=False))

    context.repair_later(context.rng.uniform(0.2, 8), resume)
    context.edit(slot, lambda body: body["spec"].update(suspend=True))


def deleted(context: FaultContext) -> None:
    """Deleted, and created again after a while."""
    slot = context.pick(adopted=None)
    context.repair_later(context.rng.uniform(1, 10), lambda: context.create(slot))
    _remove(context, slot)


def replaced(context: FaultContext) -> None:
    """Deleted and created again under the same name at once, while the old pods still terminate."""
    slot = context.pick(adopted=None)
    _remove(context, slot)
    context.create(slot)


def _remove(context: FaultContext, slot: Slot) -> None:
    propagation = context.rng.choice(["Background", "Foreground"])
    try:
        context.client.delete(PROFILED_JOBS, slot.name, slot.namespace, propagation=propagation)
    except NotFound as error:
        raise NotApplicable(f"{slot} is not there") from error


def template_broken(context: FaultContext) -> None:
    """A template that the API server rejects as a pod, repaired later."""
    slot = context.pick(real=False)
    mount = [{"name": "nowhere", "mountPath": "/data"}]

    def repair(body: Body) -> None:
        _template(body)["spec"]["containers"][0].pop("volumeMounts", None)

    context.repair_later(context.rng.uniform(2, 8), lambda: context.edit(slot, repair))
    context.edit(slot, lambda body: _template(body)["spec"]["containers"][0].update(volumeMounts=mount))


def _annotated(key: str, value: str) -> Callable[[FaultContext], None]:
    def annotate(context: FaultContext) -> None:
        slot = context.pick(real=False)

        def repair(body: Body) -> None:
            _template(body)["metadata"]["annotations"].pop(SIMULATION + key, None)

        context.repair_later(context.rng.uniform(5, 20), lambda: context.edit(slot, repair))
        context.edit(slot, lambda body: _template(body)["metadata"]["annotations"].update({SIMULATION + key: value}))

    return annotate


def invalid_spec(context: FaultContext) -> None:
    """A spec that the API server must reject: negative quantities, invalid numbers, invalid names."""
    slot = context.pick()
    change: Callable[[Body], object] = context.rng.choice(
        [
            lambda body: body["spec"]["workload"]["job"].update(replicas=-1),
            lambda body: body["spec"]["workload"]["job"].update(chipsPerReplica=2**40),
            lambda body: body["spec"].update(targets={"maxCostPerHour": "-4"}),
            lambda body: body["spec"].update(targets={"budget": "NaN"}),
            lambda body: body["spec"].update(placement={"memoryPerChip": "-1Gi"}),
            lambda body: body["spec"].update(queueName="очередь"),
            lambda body: body["spec"].update(profiling={"interval": "-1s"}),
            lambda body: body["spec"].update(managedBy="example.com/other"),
        ]
    )
    body = context.job(slot)
    change(body)
    try:
        context.client.replace(PROFILED_JOBS, body)
    except (Invalid, Conflict, Forbidden):
        return
    raise AssertionError(f"the API server accepted an invalid spec of {slot}")


def oversized_annotations(context: FaultContext) -> None:
    """A ProfiledJob with annotations of the maximum size and a malformed approval."""
    junk = {ANNOTATION_APPROVE: "d-−1 ☃ " * 50, "example.com/junk": "é" * 60_000}

    def change(body: Body) -> None:
        body["metadata"].setdefault("annotations", {}).update(junk)

    context.edit(context.pick(adopted=None), change)


def large_template(context: FaultContext) -> None:
    """A template of hundreds of kilobytes."""
    slot = context.pick(real=False)
    junk = [{"name": f"JUNK_{number}", "value": "x" * 10_000} for number in range(30)]

    def repair(body: Body) -> None:
        _template(body)["spec"]["containers"][0].pop("env", None)

    context.repair_later(context.rng.uniform(3, 10), lambda: context.edit(slot, repair))
    context.edit(slot, lambda body: _template(body)["spec"]["containers"][0].update(env=junk))


FAULTS: Final = (
    Fault("pod-evicted", "pods", 6, pod_evicted),
    Fault("pods-deleted-by-force", "pods", 4, pods_deleted_by_force),
    Fault("pod-failed", "pods", 3, _ended("Failed", 1)),
    Fault("job-finished", "pods", 4, _ended("Succeeded", 0)),
    Fault("child-deleted", "pods", 4, child_deleted),
    Fault("child-suspended", "pods", 3, child_suspended),
    Fault("image-edited", "users", 12, image_edited),
    Fault("resized", "users", 8, resized),
    Fault("pools-swapped", "users", 12, pools_swapped),
    Fault("suspended", "users", 8, suspended),
    Fault("deleted", "users", 6, deleted),
    Fault("replaced", "users", 6, replaced),
    Fault("template-broken", "users", 3, template_broken),
    Fault("checkpoint-never", "users", 3, _annotated("checkpoint-delay", "never")),
    Fault("image-unpullable", "users", 3, _annotated("image-pull-error", "no such image")),
    Fault("invalid-spec", "invalid input", 3, invalid_spec),
    Fault("oversized-annotations", "invalid input", 1, oversized_annotations),
    Fault("large-template", "invalid input", 1, large_template),
)
