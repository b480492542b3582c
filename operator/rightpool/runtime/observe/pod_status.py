"""What the status of a pod says: why it does not run, and how its containers have ended."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rightpool.api.units import unix_time_of
from rightpool.contract import SIDECAR_CONTAINER, WARM_UP_FAILED
from rightpool.workloads.injection import OURS

# Reasons for which a container waits until a user corrects something.
_STUCK: Final = frozenset(
    {"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
_OF_IMAGES: Final = frozenset({"ImagePullBackOff", "ErrImagePull"})
_CRASHING: Final = "CrashLoopBackOff"
MAX_WORDS: Final = 90  # characters of a condition that a sentence quotes
MAX_OUTPUT: Final = 400  # characters of a container's last output


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """How a container failed."""

    container: str
    """Its name in the pod."""
    exit_code: int
    """128 and the signal's number where a signal ended it."""
    reason: str
    """Kubernetes' word, such as Error or OOMKilled."""
    output: str
    """The last lines that it has written, or the runtime's message."""

    at: float
    """Unix seconds; 0 where it is not known."""


def unready(status: Mapping[str, Any]) -> str | None:
    """Init containers that have not ended come first: no other container runs before."""
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    for kind in ("Initialized", "ContainersReady"):
        condition = conditions.get(kind) or {}
        if condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return None


def runs_on(status: Mapping[str, Any], main: Collection[str]) -> str | None:
    """That all containers with chips have ended well and others run on, so that the pod keeps its chips. main: names of
    those with chips."""
    states = {str(one.get("name")): one.get("state") or {} for one in status.get("containerStatuses") or ()}
    ended = [name for name in main if (states.get(name, {}).get("terminated") or {}).get("exitCode") == 0]
    others = sorted(name for name, state in states.items() if name not in main and "running" in state)
    if not ended or len(ended) < len(main) or not others:
        return None
    return (
        f"container {' and '.join(sorted(ended))} has completed, and {' and '.join(others)} runs on and holds the "
        "chips: make it an init container with restartPolicy Always"
    )


def bound_at(status: Mapping[str, Any]) -> float | None:
    """When it was given its node, Unix seconds."""
    return true_since(status, "PodScheduled")


def true_since(status: Mapping[str, Any], kind: str) -> float | None:
    """Since when a condition is True, Unix seconds."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind and condition.get("status") == "True":
            return unix_time_of(condition.get("lastTransitionTime"))
    return None


def true_words(status: Mapping[str, Any], kind: str) -> str | None:
    """What a condition that is True says, or its reason."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind and condition.get("status") == "True":
            return str(condition.get("message") or condition.get("reason") or "")[:MAX_WORDS] or None
    return None


class Block(NamedTuple):
    """Why a pod does not run."""

    text: str | None = None
    """In Kubernetes' words; None where nothing is known to be in the way."""
    refused: bool = False
    """Whether a user has to correct it."""
    own: bool = False
    """Whether it is what the job asks for itself, as a ConfigMap that is not there, and no other pool has either. An
    image that ran elsewhere and can't be pulled here says as much of the pool."""
    cold: bool = False
    """Whether it is a server that does not answer well the requests that warm it up."""


NOT_BLOCKED: Final = Block()


def blocked_by(status: Mapping[str, Any]) -> Block:
    """Why a pod does not run. A program that fails and is started again is not blocked: see `last_end`."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            text = f"{condition.get('reason', 'Unschedulable')}: {condition.get('message', '')}".strip(": ")
            return Block(text, own="volume" in text.lower())  # the scheduler says it nowhere else
    for container in _containers(status):
        failed = _warm_up_failure(container)
        if failed is not None:
            return Block(failed, refused=True, own=True, cold=True)
        waiting = (container.get("state") or {}).get("waiting") or {}
        reason = waiting.get("reason")
        if reason in _STUCK or (reason == _CRASHING and container.get("name") in OURS):
            text = f"container {container.get('name')}: {reason}: {waiting.get('message', '')}".strip(": ")
            return Block(text, refused=True, own=reason not in _OF_IMAGES)
    return NOT_BLOCKED


def _warm_up_failure(container: Mapping[str, Any]) -> str | None:
    """The profiler's last words, where it ended for that and the server is not warm since."""
    if container.get("name") != SIDECAR_CONTAINER or container.get("ready"):
        return None
    for state in (container.get("state"), container.get("lastState")):
        words = str(((state or {}).get("terminated") or {}).get("message") or "").strip()
        _, failed, why = words.rpartition(WARM_UP_FAILED)
        if failed:
            return f"{failed}{why}"
    return None


def unprepared(status: Mapping[str, Any]) -> str | None:
    """That a pod's node lacks its volumes or network. An image that is being pulled is slow, and no obstacle: that
    begins when these are there."""
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodReadyToStartContainers" and condition.get("status") == "False":
            return "the node has not set up the pod's volumes and network; the pod's Events say what is missing"
    return None


def last_end(status: Mapping[str, Any]) -> ContainerEnd | None:
    """How a user's container failed last. The profiler's own never fail a pod."""
    ends = []
    for container in _users(status):
        for state in (container.get("state"), container.get("lastState")):
            ended = (state or {}).get("terminated") or {}
            if ended.get("exitCode"):
                ends.append(
                    ContainerEnd(
                        container=sys.intern(str(container.get("name"))),
                        exit_code=int(ended["exitCode"]),
                        reason=sys.intern(str(ended.get("reason") or "Error")),
                        output=_tail(str(ended.get("message") or "")),
                        at=unix_time_of(ended.get("finishedAt")) or 0.0,
                    )
                )
    return max(ends, key=lambda end: end.at, default=None)


def _tail(text: str) -> str:
    """The end of an output, in whole lines."""
    text = text.strip()
    if len(text) <= MAX_OUTPUT:
        return text
    end = text[-MAX_OUTPUT:]
    first, newline, rest = end.partition("\n")
    return f"…{rest if newline else first}"


def restarts_of(status: Mapping[str, Any]) -> int:
    """How often the kubelet has started the user's containers anew."""
    return sum(_restarts(container) for container in _users(status))


def _restarts(container: Mapping[str, Any]) -> int:
    count = container.get("restartCount")
    return count if isinstance(count, int) else 0


def _users(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [container for container in _containers(status) if container.get("name") not in OURS]


def unschedulable_since(status: Mapping[str, Any]) -> float | None:
    """Since when Kubernetes finds no node for it, Unix seconds."""
    for condition in status.get("conditions") or ():
        # A gated pod waits for a queue, which is no reason to start elsewhere.
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return unix_time_of(condition.get("lastTransitionTime"))
    return None


def failure_of(status: Mapping[str, Any]) -> str | None:
    """How its container ended, or why else it failed."""
    ended = last_end(status)
    if ended is not None:
        output = f": {ended.output}" if ended.output else ""
        return f"container {ended.container} exited with {ended.exit_code} ({ended.reason}){output}"
    return fault_of(status)


def fault_of(status: Mapping[str, Any]) -> str | None:
    """Why it failed, where no container is to blame."""
    reason = status.get("reason")
    return None if reason is None else f"{reason}: {status.get('message', '')}".strip(": ")


def _containers(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
