"""Runs the Job of a calibration: what may be done at all, what the pod waits for, and what it has printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rightpool.api.kubernetes import JOBS
from rightpool.cli.calibrate.job import CONTAINER
from rightpool.cli.connection import CliError
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, Invalid, NotFound, Unavailable
from rightpool.cluster.resources import ACCELERATOR_POOLS, ACCESS_REVIEWS, EVENTS, PODS

POLL_SECONDS: Final = 2.0
# What Kubernetes is given to end what is over time, before the command gives up.
GRACE_SECONDS: Final = 30.0
_LINES: Final = 100
_BYTES: Final = 2**20
# The image or its settings are wrong, and waiting does not correct them.
_WRONG: Final = frozenset(
    {"ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing", "ErrImagePull"})
# Verb, resource and subresource; the last of no namespace.
RIGHTS: Final = (
    ("create", JOBS, ""),
    ("delete", JOBS, ""),
    ("list", PODS, ""),
    ("get", PODS, "log"),
    ("patch", ACCELERATOR_POOLS, "status"),
)

Say = Callable[[str], None]


def require_rights(client: ClusterClient, namespace: str) -> None:
    """Raise CliError that names every right that the user lacks. Where the cluster does not tell, nothing is raised."""
    lacking = []
    for verb, resource, subresource in RIGHTS:
        name = resource.plural + (f"/{subresource}" if subresource else "")
        asked = {"verb": verb, "group": resource.group, "resource": resource.plural, "subresource": subresource}
        if resource.namespaced:
            asked["namespace"] = namespace
        try:
            review = client.create(ACCESS_REVIEWS, {"metadata": {}, "spec": {"resourceAttributes": asked}})
        except (Forbidden, NotFound, Invalid):
            return
        if not (review.get("status") or {}).get("allowed"):
            group = f" ({resource.group})" if resource.group else ""
            lacking.append(f"{verb} {name}{group}" + (f" in namespace {namespace}" if resource.namespaced else ""))
    if lacking:
        raise CliError(
            f"you are not allowed to {', '.join(lacking)}: a Role and a ClusterRole with these rights are needed "
            "(docs/how-to/pools.md, Calibration)"
        )


def run_job(client: ClusterClient, manifest: Mapping[str, Any], say: Say) -> tuple[str, str]:
    """The log of the benchmark, and the node that it ran on. The Job is deleted in any case.

    Raises CliError where it could not run, with what Kubernetes says about it.
    """
    namespace = manifest["metadata"]["namespace"]
    name = str(client.create(JOBS, manifest)["metadata"]["name"])
    say(f"Job {name} in namespace {namespace}")
    try:
        return _ended(client, namespace, name, manifest["spec"]["activeDeadlineSeconds"], say)
    finally:
        _delete(client, namespace, name, say)


def _delete(client: ClusterClient, namespace: str, name: str, say: Say) -> None:
    try:
        client.delete(JOBS, name, namespace, propagation="Background")
    except NotFound:
        pass
    except ClusterError as error:
        say(f"Job {name} can't be deleted ({error.message}): `kubectl -n {namespace} delete job {name}`")


def _ended(client: ClusterClient, namespace: str, name: str, seconds: int, say: Say) -> tuple[str, str]:
    until = time.monotonic() + seconds + GRACE_SECONDS
    printed = state = ""
    while time.monotonic() < until:
        try:
            pods = client.list_all(PODS, namespace, labels=f"batch.kubernetes.io/job-name={name}")
            if not pods:
                _require_admission(client, namespace, name, state)
                time.sleep(POLL_SECONDS)
                continue
            state, over = pod_state(pods[0])
            if over:
                return _log(client, pods[0]), str(pods[0]["spec"].get("nodeName") or "")
        except Unavailable as error:
            state = f"the cluster does not answer: {error.message}"
        if state and state != printed:
            say(state)
            printed = state
        time.sleep(POLL_SECONDS)
    last = state or "the Job has no pod"
    raise CliError(f"nothing was measured within {seconds} s ({last}): allow more by --timeout")


def pod_state(pod: Mapping[str, Any]) -> tuple[str, bool]:
    """What the pod does, and whether its log is complete. Raises CliError where it can't succeed."""
    status = pod.get("status") or {}
    phase = status.get("phase")
    if phase == "Succeeded":
        return "", True
    container = _first(status.get("containerStatuses"), "name", CONTAINER)
    states = container.get("state") or {}
    if phase == "Failed":
        if status.get("reason"):  # evicted, or over its time
            raise CliError(f"the pod failed: {status['reason']}: {status.get('message') or 'no message'}")
        if (states.get("terminated") or {}).get("reason") == "OOMKilled":
            raise CliError("the pod failed: its container needs more memory than the namespace lets it have")
        return "", True  # the log says why
    waiting = states.get("waiting") or {}
    reason, message = waiting.get("reason") or "", waiting.get("message") or ""
    if reason in _WRONG:
        raise CliError(f"the pod can't start ({reason}: {message or 'no message'}): choose another image by --image")
    if phase == "Running":
        return f"measuring on {(pod.get('spec') or {}).get('nodeName')}", False
    if reason and reason not in _STARTING:
        return f"waiting: {reason} {message}".rstrip(), False
    scheduled = _first(status.get("conditions"), "type", "PodScheduled")
    if scheduled.get("status") == "False":
        return f"waiting for a node: {scheduled.get('message') or scheduled.get('reason')}", False
    return "starting; a new image takes minutes", False


def _first(entries: Iterable[Mapping[str, Any]] | None, key: str, value: str) -> Mapping[str, Any]:
    return next((one for one in entries or () if one.get(key) == value), {})


def _require_admission(client: ClusterClient, namespace: str, name: str, state: str) -> None:
    """Raise CliError where a Job without pods will have none. state: what its pod did last."""
    try:
        events = client.list_all(EVENTS, namespace, fields=f"involvedObject.kind=Job,involvedObject.name={name}")
        if refused := refusal(events):
            raise CliError(f"the pod was not admitted: {refused}")
    except Forbidden:
        pass  # then the Job's condition tells, later
    try:
        conditions = (client.get(JOBS, name, namespace).get("status") or {}).get("conditions")
    except NotFound:
        raise CliError(f"Job {name} was deleted before it had ended") from None
    except Forbidden:
        return
    failed = _first(conditions, "type", "Failed")
    if failed.get("reason") == "DeadlineExceeded":
        raise CliError(
            f"nothing was measured in the time given ({state or 'there was no pod'}): allow more by --timeout"
        )
    if failed.get("status") == "True":
        raise CliError(f"the Job has failed: {failed.get('message') or failed.get('reason')}")


def refusal(events: Iterable[Mapping[str, Any]]) -> str:
    """The message of an Event about pods that were not admitted; empty without one."""
    return next((str(event.get("message")) for event in events if event.get("reason") == "FailedCreate"), "")


def _log(client: ClusterClient, pod: Mapping[str, Any]) -> str:
    path = PODS.path(pod["metadata"]["namespace"], pod["metadata"]["name"], "log")
    return client.text(path, {"container": CONTAINER, "tailLines": str(_LINES), "limitBytes": str(_BYTES)})
