"""The environment by which a Revision's processes find each other: for torchrun, plain PyTorch, JAX and libtpu.

The program needs no change when the operator changes the number of chips: it reads these variables on every start.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from rightpool.api.placement import Placement
from rightpool.hardware.pool import Pool

MASTER_PORT: Final = 29500  # the default of torch.distributed
JAX_PORT: Final = 8476  # the default of jax.distributed on TPU pods


UNIT: Final = "$UNIT"
"""In a host name, the place of the number of the pod's unit."""


class Units(NamedTuple):
    """Equal groups of pods, each of which may be on a slice of its own, such as the Jobs of a JobSet."""

    number: str
    """Path of the field that numbers a pod's unit, from 0."""

    within: str
    """Path of the field that numbers a pod within its unit, from 0."""

    pods: Sequence[str]
    """Host names of the pods of one, without the Service's."""


class Hosts(NamedTuple):
    """By which names the pods of a Revision find each other."""

    service: str
    """The headless Service that they are under."""

    pods: Sequence[str]
    """Host names of the scaled pods without the Service's, by rank."""

    units: Units | None = None
    """Of pods that no single field numbers."""


def _value(name: str, value: object) -> dict[str, Any]:
    return {"name": name, "value": str(value)}


def _index(name: str, path: str | None) -> list[dict[str, Any]]:
    return [] if path is None else [{"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}]


def _torch(placement: Placement, leader: str, index: str | None) -> list[dict[str, Any]]:
    """Variables for PyTorch.

    PET_* are defaults of `torchrun`'s arguments. The others are for programs with one process per pod; torchrun
    replaces them in the processes that it starts.
    """
    return [
        _value("PET_NNODES", placement.replicas),
        _value("PET_NPROC_PER_NODE", placement.chips_per_replica),
        *_index("PET_NODE_RANK", index),
        _value("PET_MASTER_ADDR", leader),
        _value("PET_MASTER_PORT", MASTER_PORT),
        _value("MASTER_ADDR", leader),
        _value("MASTER_PORT", MASTER_PORT),
        _value("WORLD_SIZE", placement.replicas),
        *_index("RANK", index),
    ]


def _jax(placement: Placement, leader: str, index: str | None) -> list[dict[str, Any]]:
    """Variables for JAX with one process per pod. JAX reads the address; programs read the other two."""
    return [
        _value("JAX_COORDINATOR_ADDRESS", f"{leader}:{JAX_PORT}"),
        _value("JAX_NUM_PROCESSES", placement.replicas),
        *_index("JAX_PROCESS_ID", index),
    ]


def slice_env(
    placement: Placement, pool: Pool, hosts: Sequence[str], index: str | None, units: Units | None = None
) -> list[dict[str, Any]]:
    """Variables for the vendor's runtime on a slice of several nodes, and on several slices.

    They follow the placement, and hold in the place of the template's own, which may be another controller's. Several
    slices of several nodes need units: else no field of a pod numbers it within its slice.
    """
    names, each = pool.accelerator.vendor.slice_variables, pool.hosts_per_slice
    if names is None or pool.slice is None or placement.replicas < 2 or placement.replicas % each:
        return []
    number, within, own = index, index, hosts
    if each < placement.replicas and each > 1:
        if units is None or len(units.pods) != each:
            return []
        number, within = units.number, units.within
        own = [name.replace(UNIT, f"$({names.slice_index})") for name in units.pods]  # which is set above them
    variables = []
    if each < placement.replicas:
        variables = [
            _value(names.slices, placement.replicas // each),
            *_index(names.slice_index, number),
            _value(names.coordinator, hosts[0]),
        ]
    if each > 1:
        variables += [*_index(names.host_index, within), _value(names.host_names, ",".join(own))]
    return variables


def rendezvous_env(placement: Placement, hosts: Sequence[str], index: str | None) -> list[dict[str, Any]]:
    """The variables of the chip container. `hosts` are those of its pods by rank, as the resolver takes them, and
    `index` is the path of the field that numbers a pod, from 0; None where there is none, and so no variable for it.

    They are the same for one pod as for many, so that a program that was scaled down to one still starts; one pod is
    its own leader, and needs no Service for that.
    """
    leader = hosts[0] if placement.replicas > 1 else "127.0.0.1"
    return [*_torch(placement, leader, index), *_jax(placement, leader, index)]


def resized_env(container: Mapping[str, Any], before: Placement, now: Placement) -> list[dict[str, Any]]:
    """The variables of a user's container whose literal is the size that its template was written for, with the size
    that it has now. What they say else is the user's own."""
    if (before.replicas, before.chips) == (now.replicas, now.chips):
        return []
    pods, each, total = (
        (before.replicas, now.replicas),
        (before.chips_per_replica, now.chips_per_replica),
        (before.chips, now.chips),
    )
    meanings = {
        "PET_NNODES": (pods,),
        "PET_NPROC_PER_NODE": (each,),
        "WORLD_SIZE": (total, pods),  # of a process on each chip, or on each pod
        "JAX_NUM_PROCESSES": (pods, total),
        "ACCELERATE_NUM_MACHINES": (pods,),
        "ACCELERATE_NUM_PROCESSES": (total,),
    }
    resized = []
    for variable in container.get("env") or ():
        for was, is_now in meanings.get(variable["name"], ()):
            if variable.get("value") == str(was):
                resized.append(_value(variable["name"], is_now))
                break
    return resized
