"""A simulated pod: the part of the API object that the replay needs.

Ten thousand whole objects would take a gigabyte.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from devcluster.replay.faults import NONE, BadFault, Faults, from_annotations
from rightpool import contract

PREFIX: Final = "simulation.rightpool.dev/"
WARM_UP_SECONDS: Final = 15.0
CHECKPOINT_DELAY_SECONDS: Final = 2.0
CHECKPOINT_EVERY_SECONDS: Final = 300.0
_NEVER: Final = "never"
_DURATION: Final = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+")
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

_WORLD: Final = "WORLD_SIZE"  # for a program with one process in each pod

# Node labels of clouds and GPU feature discovery, and the key in the table.
_ACCELERATORS: Final[Mapping[str, Mapping[str, str]]] = {
    PREFIX + "accelerator": {},
    "nvidia.com/gpu.product": {"NVIDIA-A100-SXM4-80GB": "A100-SXM4-80GB", "NVIDIA-A10G": "A10G-24GB"},
    "karpenter.k8s.aws/instance-gpu-name": {"a10g": "A10G-24GB"},
    "cloud.google.com/gke-tpu-accelerator": {"tpu-v5-lite-podslice": "TPU-v5e"},
}


@dataclass(frozen=True, slots=True)
class GangKey:
    """Identifies a gang: the pods of one Revision."""

    namespace: str
    job: str
    revision: str


@dataclass(frozen=True, slots=True)
class Play:
    """How a pod is simulated. Seconds; None: never. memory_gib: None, what the table says. trace: whether
    the shares of the step are known, as after a trace.

    problem: what is wrong with its annotations; such a pod exports nothing.
    """

    workload: str | None = None
    warm_up: float = WARM_UP_SECONDS
    checkpoint_delay: float | None = CHECKPOINT_DELAY_SECONDS
    checkpoint_every: float | None = CHECKPOINT_EVERY_SECONDS
    memory_gib: float | None = None
    trace: bool = False
    faults: Faults = NONE
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SimulatedPod:
    """One pod. started: Unix seconds when its containers ran, None until then. ended: succeeded or failed.

    token_sha256: hex digest of the token that its sidecar wants; None where it carries no sidecar. world: pods that its
    program waits for before the first step; None where it does not say.
    """

    uid: str
    namespace: str
    name: str
    gang: GangKey
    pool: str
    node: str | None
    ip: str | None
    chips: int
    started: float | None
    ended: bool
    token_sha256: str | None
    checkpoint_mode: str
    world: int | None = None
    play: Play = field(default_factory=Play)

    @property
    def running(self) -> bool:
        return self.started is not None and not self.ended

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class SimulatedNode:
    """A simulated node. accelerator: None if its labels name none that is known."""

    name: str
    pool: str
    accelerator: str | None


def parse_node(node: Mapping[str, Any]) -> SimulatedNode:
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    accelerator = None
    for label, names in _ACCELERATORS.items():
        if label in labels:
            accelerator = names.get(labels[label], labels[label])
            break
    return SimulatedNode(node["metadata"]["name"], labels.get(PREFIX + "pool", ""), accelerator)


def parse_pod(pod: Mapping[str, Any]) -> SimulatedPod | None:
    """The simulated pod; None if it does not belong to a ProfiledJob, or has no chips, as a leader of workers."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    labels: Mapping[str, str] = metadata.get("labels") or {}
    chips = _chips(spec)
    if contract.LABEL_JOB not in labels or contract.LABEL_REVISION not in labels or not chips:
        return None
    namespace = metadata["namespace"]
    environment = _sidecar_environment(spec)
    return SimulatedPod(
        uid=metadata["uid"],
        namespace=namespace,
        name=metadata["name"],
        gang=GangKey(namespace, labels[contract.LABEL_JOB], labels[contract.LABEL_REVISION]),
        pool=labels.get(contract.LABEL_POOL, ""),
        node=spec.get("nodeName"),
        ip=status.get("podIP"),
        chips=chips,
        started=_started(status),
        ended=status.get("phase") in ("Succeeded", "Failed"),
        token_sha256=environment.get(contract.ENV_TOKEN_SHA256),
        checkpoint_mode=environment.get(contract.ENV_CHECKPOINT_MODE) or "None",
        world=_world(spec),
        play=parse_play(metadata.get("annotations") or {}),
    )


def parse_play(annotations: Mapping[str, str]) -> Play:
    def seconds(key: str, default: float | None) -> float | None:
        text = annotations.get(PREFIX + key)
        return default if text is None else parse_duration(key, text)

    try:
        warm_up = seconds("warm-up", WARM_UP_SECONDS)
        delay = seconds("checkpoint-delay", CHECKPOINT_DELAY_SECONDS)
        memory = annotations.get(PREFIX + "memory")
        return Play(
            workload=annotations.get(PREFIX + "workload"),
            warm_up=0.0 if warm_up is None else warm_up,
            checkpoint_delay=delay,
            # A program that does not save on request has no periodic saves by default either.
            checkpoint_every=seconds("checkpoint-every", None if delay is None else CHECKPOINT_EVERY_SECONDS),
            memory_gib=None if memory is None else float(memory),
            trace=annotations.get(PREFIX + "trace") == "true",
            faults=from_annotations(annotations, PREFIX),
        )
    except (BadFault, ValueError) as error:
        return Play(problem=str(error))


def parse_duration(key: str, text: str) -> float | None:
    """Seconds; None for `never`."""
    if text == _NEVER:
        return None
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{PREFIX}{key}: {text!r} is neither a duration such as 2s nor `never`")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def _sidecar_environment(spec: Mapping[str, Any]) -> dict[str, str]:
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if container["name"] == contract.SIDECAR_CONTAINER:
            return {entry["name"]: entry.get("value") or "" for entry in container.get("env") or ()}
    return {}


def _world(spec: Mapping[str, Any]) -> int | None:
    for container in spec.get("containers") or ():
        for entry in container.get("env") or ():
            if entry["name"] == _WORLD and str(entry.get("value", "")).isdecimal():
                return int(entry["value"])
    return None


def _chips(spec: Mapping[str, Any]) -> int:
    """The number of chips: extended resources are those with a domain in their name."""
    total = 0
    for container in spec.get("containers") or ():
        limits = (container.get("resources") or {}).get("limits") or {}
        total += sum(int(count) for resource, count in limits.items() if "/" in resource)
    return total


def _started(status: Mapping[str, Any]) -> float | None:
    if status.get("phase") != "Running":
        return None
    moments = [
        started
        for container in status.get("containerStatuses") or ()
        if (started := ((container.get("state") or {}).get("running") or {}).get("startedAt"))
    ]
    moment = max(moments) if moments else status.get("startTime")
    return None if moment is None else datetime.fromisoformat(moment).timestamp()
