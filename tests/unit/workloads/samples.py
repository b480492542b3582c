"""Owners, pools, placements and templates for the tests of workloads/."""

from dataclasses import dataclass, replace
from typing import Any

from rightpool.api.placement import CapacityType, Placement
from rightpool.api.pool import LinkKind, Slice
from rightpool.api.revision import Revision
from rightpool.hardware.accelerator import Accelerator, Link, Price
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.google import GOOGLE
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.workloads.injection import Injection
from rightpool.workloads.owner import Owner
from rightpool.workloads.token import revision_token, token_digest

_LINK = Link(LinkKind.PCIE, 24e9)
_A10G = Accelerator(
    key="A10G-24GB",
    vendor=NVIDIA,
    arch="ampere-ga102",
    peak_flops={"bf16": 70e12},
    memory_bytes=24 * 10**9,
    memory_bandwidth=600e9,
    power_watts=150.0,
    intra_link=_LINK,
    inter_link=_LINK,
    list_price=Price(1.0, 0.4),
    verified=True,
)
GPU_POOL = Pool(
    name="a10g",
    accelerator=_A10G,
    chips_per_node=4,
    resource_name="nvidia.com/gpu",
    node_selector={"node.kubernetes.io/instance-type": "g5.12xlarge"},
    intra_link=_LINK,
    inter_link=_LINK,
    price=Price(1.006, 0.42),
    total=64,
    free=64,
    tolerations=({"key": "gpu", "operator": "Exists"},),
)
TPU_POOL = replace(
    GPU_POOL,
    name="v5e",
    accelerator=replace(_A10G, key="TPU-v5e", vendor=GOOGLE, arch="tpu-v5e"),
    resource_name="google.com/tpu",
    node_selector={
        "cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    },
    slice=Slice(topology="4x4", chips=16),
    tolerations=(),
)
OWNER = Owner("research", "bert", "0b8f6d6e-0000-4000-8000-000000000001")
INJECTION = Injection(
    image="registry.example/rightpool-profiler@sha256:" + "0" * 64,
    token_sha256=token_digest(revision_token(b"key", OWNER.uid, 3)),
    interval_seconds=10.0,
    trace="Auto",
    checkpoint_mode="Signal",
    checkpoint_signal="SIGUSR1",
    checkpoint_path="/ckpt",
)


@dataclass(frozen=True)
class Work:
    template: dict[str, Any]
    chip_container: str | None = None
    chips_per_replica: int = 1
    replicas: int = 1
    ttl_seconds_after_finished: int | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    failure_rules: tuple[dict[str, Any], ...] = ()
    success_policy: dict[str, Any] | None = None


def ref(
    chips: int = 8,
    replicas: int = 2,
    revision: int = 3,
    pool: str = "a10g",
    capacity: CapacityType = CapacityType.ON_DEMAND,
) -> Revision:
    return Revision(
        revision=revision,
        placement=Placement(pool, chips, replicas, capacity),
        workload_hash="h",
        requested_chips=chips // replicas,
        requested_replicas=replicas,
        created_at=0.0,
    )


def plain(**container: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "trainer", "image": "python:3.11", **container}]}}


def restricted(**container: Any) -> dict[str, Any]:
    """A template that keeps the restricted Pod Security Standard."""
    template = plain(
        securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}, **container
    )
    template["spec"]["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return template


def env_of(container: dict[str, Any]) -> dict[str, Any]:
    """The environment as a program gets it: values, or the whole variable where it is a reference."""
    return {variable["name"]: variable.get("value", variable) for variable in container.get("env", [])}
