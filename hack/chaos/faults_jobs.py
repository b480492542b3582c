"""Faults of jobs: what happens to their pods, and what their users do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from chaos.arena import Arena, Fault, Mend, Pointless
from chaos.jobs import SIMULATION, Slot
from rightpool.cluster.errors import Conflict, Forbidden, Invalid, NotFound
from rightpool.cluster.resources import JOBS, PODS, PROFILED_JOBS, Resource
from rightpool.contract import ANNOTATION_APPROVE

Body = dict[str, Any]
POD_STATUS: Final = "status"


# --- pods ------------------------------------------------------------------------------------------------------------


def pod_evicted(arena: Arena) -> None:
    """A pod is deleted with its grace period."""
    slot = arena.pick()
    pod = arena.choose(arena.pods(slot))
    _delete(arena, PODS, pod)


def pods_deleted_by_force(arena: Arena) -> None:
    """All pods of a job vanish without a grace period."""
    slot = arena.pick()
    for pod in arena.pods(slot):
        path = PODS.path(slot.namespace, pod["metadata"]["name"])
        try:
            arena.client._call(
                "DELETE", path, body={"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
            )
        except NotFound:
            pass


def _ended(phase: str, exit_code: int) -> Callable[[Arena], None]:
    def end(arena: Arena) -> None:
        slot = arena.pick(real=False)
        pods = [pod for pod in arena.pods(slot) if pod["status"].get("phase") == "Running"]
        for pod in pods if phase == "Succeeded" else [arena.choose(pods)]:
            name = pod["metadata"]["name"]
            state = {"terminated": {"exitCode": exit_code, "reason": "Completed" if not exit_code else "Error"}}
            status = {**pod["status"], "phase": phase}
            status["containerStatuses"] = [{**c, "ready": False, "state": state} for c in status["containerStatuses"]]
            status["conditions"] = [
                {**c, "status": "False"} if c["type"] == "Ready" else c for c in status["conditions"]
            ]
            try:
                path = PODS.path(slot.namespace, name, POD_STATUS)
                arena.client._call("PUT", path, body={**pod, "apiVersion": "v1", "kind": "Pod", "status": status})
            except (Conflict, NotFound):
                pass

    return end


def child_deleted(arena: Arena) -> None:
    """Somebody deletes the Job of a Revision behind the operator's back."""
    slot = arena.pick()
    child = arena.choose(arena.children(slot))
    arena.checker.excuse(child["metadata"]["uid"])
    _delete(arena, JOBS, child)


def child_suspended(arena: Arena) -> None:
    """Somebody suspends the Job of a Revision behind the operator's back."""
    child = arena.choose(arena.children(arena.pick()))
    child["spec"]["suspend"] = True
    try:
        arena.client.replace(JOBS, child)
    except (Conflict, NotFound, Invalid) as error:
        raise Pointless(error.message) from error


def _delete(arena: Arena, resource: Resource, body: Body) -> None:
    about = body["metadata"]
    try:
        arena.client.delete(resource, about["name"], about["namespace"], uid=about["uid"], propagation="Background")
    except (NotFound, Conflict):
        pass


# --- users -----------------------------------------------------------------------------------------------------------


def _template(body: Body) -> Body:
    template: Body = body["spec"]["workload"]["job"]["template"]
    return template


def image_edited(arena: Arena) -> None:
    """A new image: the workload is replaced where it is."""
    number = arena.chance.randrange(1_000_000)
    slot = arena.pick()

    def change(body: Body) -> None:
        if slot.real:
            _template(body).setdefault("metadata", {}).setdefault("labels", {})["edition"] = str(number)
        else:
            _template(body)["spec"]["containers"][0]["image"] = f"example.com/trainer:{number}"

    arena.edit(slot, change)


def resized(arena: Arena) -> None:
    """The user asks for another number of replicas."""
    replicas = arena.chance.randint(1, 4)
    arena.edit(arena.pick(real=False), lambda body: body["spec"]["workload"]["job"].update(replicas=replicas))


def pools_swapped(arena: Arena) -> None:
    """The user allows one pool only: the job may have to leave."""
    allow = arena.chance.choice([["a100"], ["a10g"], ["a100", "a10g"]])
    arena.edit(arena.pick(real=False), lambda body: body["spec"]["placement"]["pools"].update(allow=allow))


def suspended(arena: Arena) -> tuple[float, Mend]:
    """Suspended, and resumed later."""
    slot = arena.pick()
    arena.edit(slot, lambda body: body["spec"].update(suspend=True))
    return arena.chance.uniform(0.2, 8), lambda: arena.edit(slot, lambda body: body["spec"].update(suspend=False))


def deleted(arena: Arena) -> tuple[float, Mend]:
    """Deleted, and made anew after a while."""
    slot = arena.pick()
    _remove(arena, slot)
    return arena.chance.uniform(1, 10), lambda: arena.create(slot)


def replaced(arena: Arena) -> None:
    """Deleted and made anew under the same name at once, while the old pods still end."""
    slot = arena.pick()
    _remove(arena, slot)
    arena.create(slot)


def _remove(arena: Arena, slot: Slot) -> None:
    propagation = arena.chance.choice(["Background", "Foreground"])
    try:
        arena.client.delete(PROFILED_JOBS, slot.name, slot.namespace, propagation=propagation)
    except NotFound as error:
        raise Pointless(f"{slot} is not there") from error


def template_broken(arena: Arena) -> tuple[float, Mend]:
    """A template that the API server does not take as a pod, and its repair."""
    slot = arena.pick(real=False)
    mount = [{"name": "nowhere", "mountPath": "/data"}]
    arena.edit(slot, lambda body: _template(body)["spec"]["containers"][0].update(volumeMounts=mount))

    def repair(body: Body) -> None:
        _template(body)["spec"]["containers"][0].pop("volumeMounts", None)

    return arena.chance.uniform(2, 8), lambda: arena.edit(slot, repair)


def _annotated(key: str, value: str) -> Callable[[Arena], tuple[float, Mend]]:
    def annotate(arena: Arena) -> tuple[float, Mend]:
        slot = arena.pick(real=False)
        arena.edit(slot, lambda body: _template(body)["metadata"]["annotations"].update({SIMULATION + key: value}))

        def mend(body: Body) -> None:
            _template(body)["metadata"]["annotations"].pop(SIMULATION + key, None)

        return arena.chance.uniform(5, 20), lambda: arena.edit(slot, mend)

    return annotate


def hostile_spec(arena: Arena) -> None:
    """What must be refused at the door: quantities below zero, numbers that are none, names that are no names."""
    slot = arena.pick()
    change: Callable[[Body], object] = arena.chance.choice(
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
    body = arena.job(slot)
    change(body)
    try:
        arena.client.replace(PROFILED_JOBS, body)
    except (Invalid, Conflict, Forbidden):
        return
    raise AssertionError(f"the API server took a hostile spec of {slot}")


def hostile_annotations(arena: Arena) -> None:
    """A ProfiledJob with what an annotation may hold at most, and an approval of nonsense."""
    junk = {ANNOTATION_APPROVE: "d-−1 ☃ " * 50, "example.com/junk": "é" * 60_000}

    def change(body: Body) -> None:
        body["metadata"].setdefault("annotations", {}).update(junk)

    arena.edit(arena.pick(), change)


def large_template(arena: Arena) -> tuple[float, Mend]:
    """A template of hundreds of kilobytes."""
    slot = arena.pick(real=False)
    junk = [{"name": f"JUNK_{number}", "value": "x" * 10_000} for number in range(30)]
    arena.edit(slot, lambda body: _template(body)["spec"]["containers"][0].update(env=junk))

    def mend(body: Body) -> None:
        _template(body)["spec"]["containers"][0].pop("env", None)

    return arena.chance.uniform(3, 10), lambda: arena.edit(slot, mend)


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
    Fault("hostile-spec", "hostile", 3, hostile_spec),
    Fault("hostile-annotations", "hostile", 1, hostile_annotations),
    Fault("large-template", "hostile", 1, large_template),
)
