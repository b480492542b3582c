"""How the processes of a Revision find each other: environment for torchrun, plain PyTorch, JAX and libtpu.

The program needs no change when the operator changes the number of chips: it reads these variables on every start.
"""

from typing import Any, Final

from rightpool.hardware.accelerator import Vendor
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool

MASTER_PORT: Final = 29500  # the default of torch.distributed
JAX_PORT: Final = 8476  # the default of jax.distributed on TPU pods

_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def host_of(child: str, subdomain: str, namespace: str, index: int) -> str:
    """The host name of one pod. The cluster's domain, which need not be cluster.local, is left to the resolver."""
    return f"{child}-{index}.{subdomain}.{namespace}.svc"


def _value(name: str, value: object) -> dict[str, Any]:
    return {"name": name, "value": str(value)}


def _index(name: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": _INDEX}}}


def _torch(placement: Placement, leader: str) -> list[dict[str, Any]]:
    """PET_*: what `torchrun` takes for arguments that are not given. The others are for programs of one process a pod;
    torchrun replaces them in the processes that it starts."""
    return [
        _value("PET_NNODES", placement.replicas),
        _value("PET_NPROC_PER_NODE", placement.chips_per_replica),
        _index("PET_NODE_RANK"),
        _value("PET_MASTER_ADDR", leader),
        _value("PET_MASTER_PORT", MASTER_PORT),
        _value("MASTER_ADDR", leader),
        _value("MASTER_PORT", MASTER_PORT),
        _value("WORLD_SIZE", placement.replicas),
        _index("RANK"),
    ]


def _jax(placement: Placement, leader: str) -> list[dict[str, Any]]:
    """One process a pod, which drives all its chips. JAX itself reads the address; programs read the other two."""
    return [
        _value("JAX_COORDINATOR_ADDRESS", f"{leader}:{JAX_PORT}"),
        _value("JAX_NUM_PROCESSES", placement.replicas),
        _index("JAX_PROCESS_ID"),
    ]


def _tpu(placement: Placement, pool: Pool, hosts: list[str]) -> list[dict[str, Any]]:
    """What libtpu needs on a slice of several machines. A Job of several slices has no variable that numbers the pods
    within each slice, so nothing is set for those."""
    if pool.accelerator.vendor is not Vendor.GOOGLE or pool.slice is None:
        return []
    if placement.replicas < 2 or placement.replicas != pool.slice.hosts:
        return []
    return [_index("TPU_WORKER_ID"), _value("TPU_WORKER_HOSTNAMES", ",".join(hosts))]


def rendezvous_env(
    placement: Placement, pool: Pool, *, child: str, subdomain: str, namespace: str
) -> list[dict[str, Any]]:
    """The variables of the chip container. subdomain: the Service under which the pods' host names are found.

    They are the same for one pod as for many, so that a program that was scaled down to one still starts; one pod is
    its own leader, and needs no Service for that.
    """
    hosts = [host_of(child, subdomain, namespace, index) for index in range(placement.replicas)]
    leader = hosts[0] if placement.replicas > 1 else "127.0.0.1"
    return [*_torch(placement, leader), *_jax(placement, leader), *_tpu(placement, pool, hosts)]
