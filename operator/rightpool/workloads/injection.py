"""The profiler in the pod: a shared directory, an init container that installs the agent, and a native sidecar.

Python finds the agent in one of two ways. If the template sets PYTHONPATH, the agent's directory is prepended to it.
Otherwise the image may set it, which the template does not show, and setting it could hide modules of the program: then
PYTHONUSERBASE leads Python to the agent's `usercustomize`. A virtual environment in the image has no user base; there a
PYTHONPATH in the template, even an empty one, is the remedy.

The order of the init containers is sidecar, installer, then the user's own. The sidecar has no startup probe, so the
pod goes on as soon as it was started, working or not; the agent is in place before any program of the user's runs.
Nothing here needs a privilege: a pod that keeps the restricted Pod Security Standard still keeps it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from rightpool import contract
from rightpool.workloads.notes import PYTHONPATH, PYTHONUSERBASE, InjectionNote, notes_for, variable_of
from rightpool.workloads.resources import has_pod_level_resources, is_guaranteed
from rightpool.workloads.template import (
    InvalidTemplate,
    chip_container_of,
    containers_of,
    init_containers_of,
    mapping_in,
    normalised,
    objects_in,
    pod_spec,
    set_default_env,
)

PROFILER_UID: Final = 65532
OURS: Final = frozenset({contract.SIDECAR_CONTAINER, contract.INSTALL_CONTAINER})

# A trace of a large model is some 100 MB, kept for as long as it takes to read. No limit on CPU: it would throttle the
# analysis of a trace, and the analysis delays only the sidecar itself.
_BURSTABLE: Final = {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
# In a Guaranteed pod requests equal limits, and the limit must be enough to work with.
_GUARANTEED: Final = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "100m", "memory": "256Mi"}}


@dataclass(frozen=True, slots=True)
class Injection:
    """Settings of the profiler in a Revision's pods."""

    image: str
    """Image of the sidecar, by digest."""

    token_sha256: str
    """Digest of the Revision's bearer token, never the token itself."""

    interval_seconds: float
    """Time between two readings."""

    trace: str
    """Auto or Off."""

    checkpoint_mode: str
    """As in spec.checkpoint."""

    checkpoint_signal: str
    """As in spec.checkpoint."""

    checkpoint_path: str | None = None
    """As in spec.checkpoint."""

    checkpoint_files: tuple[str, ...] = ()
    """As in spec.checkpoint; empty: the agent's own patterns."""

    shared_size: str = "2Gi"
    """Limit of the shared directory, which holds a few traces. The kubelet evicts a pod that exceeds it."""

    kept_size: str = "128Mi"
    """Limit of the sidecar's own volume: the traces of the newest request of a user, and those of the one before while
    they are replaced. The sidecar keeps to less."""

    pull_policy: str = "IfNotPresent"
    """Of the sidecar's image."""

    cpu_limit: str = ""
    """Of each container of the profiler, which a ResourceQuota on limits demands. Empty: none."""

    user: int = PROFILER_UID
    """User ID of these containers where the pod has none. 0: what the namespace or the image gives."""

    def environment(self, chips: int) -> list[dict[str, Any]]:
        """The environment of both sidecar and agent. `chips` are those of this pod."""
        variables = {
            contract.ENV_SHARED_DIR: contract.SHARED_DIR,
            contract.ENV_INTERVAL: f"{self.interval_seconds:g}",
            contract.ENV_TRACE: self.trace,
            contract.ENV_CHECKPOINT_MODE: self.checkpoint_mode,
            contract.ENV_CHECKPOINT_SIGNAL: self.checkpoint_signal,
            contract.ENV_CHIPS: str(chips),
        }
        if self.checkpoint_path is not None:
            variables[contract.ENV_CHECKPOINT_PATH] = self.checkpoint_path
        if self.checkpoint_files:
            variables[contract.ENV_CHECKPOINT_FILES] = json.dumps(self.checkpoint_files)
        return [{"name": name, "value": value} for name, value in variables.items()]


def inject(template: Mapping[str, Any], chip_container: str | None, injection: Injection, chips: int) -> dict[str, Any]:
    """A pod template with the profiler's containers, volumes and variables, as far as `notes_for` has nothing against
    them. Injecting it again changes nothing."""
    notes = notes_for(template, chip_container)
    pod = normalised(template)
    if InjectionNote.HOST_NETWORK in notes:
        return pod
    with_agent = InjectionNote.USER_BASE_TAKEN not in notes
    ours = [_sidecar(pod, injection, chips)]
    if with_agent:
        ours.append(_installer(pod, injection))
    _put_first(pod, ours)
    _add_volume(pod, contract.SHARED_VOLUME, injection.shared_size)
    _add_volume(pod, contract.KEPT_VOLUME, injection.kept_size)
    container = chip_container_of(pod, chip_container)
    _mount(container)
    set_default_env(container, injection.environment(chips))
    if with_agent:
        _add_agent_to_path(container)
    return pod


def _add_agent_to_path(container: dict[str, Any]) -> None:
    """Prepend the agent to the template's PYTHONPATH, or set PYTHONUSERBASE if the template has none.

    The variable keeps its position in the list, because it may refer to variables before it.
    """
    variable = variable_of(container, PYTHONPATH)
    if variable is None or "valueFrom" in variable:
        set_default_env(container, [{"name": PYTHONUSERBASE, "value": contract.USER_BASE_DIR}])
        return
    users = variable.get("value") or ""
    if not isinstance(users, str):
        raise InvalidTemplate(f"container {container['name']}: the value of PYTHONPATH must be a text")
    if users.split(":", 1)[0] != contract.AGENT_DIR:
        variable["value"] = f"{contract.AGENT_DIR}:{users}" if users else contract.AGENT_DIR


def _put_first(pod: dict[str, Any], ours: list[dict[str, Any]]) -> None:
    for container in containers_of(pod):
        if container["name"] in OURS:
            raise InvalidTemplate(f"the container name {container['name']} is the profiler's: choose another")
    users = []
    for container in init_containers_of(pod):
        if container["name"] in OURS and container not in ours:
            raise InvalidTemplate(f"the init container name {container['name']} is the profiler's: choose another")
        if container["name"] not in OURS:
            users.append(container)
    pod_spec(pod)["initContainers"] = [*ours, *users]


def _add_volume(pod: dict[str, Any], name: str, size: str) -> None:
    ours = {"name": name, "emptyDir": {"sizeLimit": size}}
    volumes = objects_in(pod_spec(pod), "volumes", "template.spec")
    for volume in volumes:
        if volume["name"] == name:
            if volume != ours:
                raise InvalidTemplate(f"the volume name {name} is the profiler's: choose another")
            return
    volumes.append(ours)


def _shared_mount() -> dict[str, Any]:
    return {"name": contract.SHARED_VOLUME, "mountPath": contract.SHARED_DIR}


def _mount(container: dict[str, Any]) -> None:
    mounts = objects_in(container, "volumeMounts", f"container {container['name']}")
    for mount in mounts:
        path = mount.get("mountPath")
        if isinstance(path, str) and path.rstrip("/") == contract.SHARED_DIR:
            if mount != _shared_mount():
                raise InvalidTemplate(
                    f"container {container['name']} mounts {mount['name']} at {contract.SHARED_DIR}, which is the "
                    "profiler's: choose another path"
                )
            return
    mounts.append(_shared_mount())


def _common(pod: dict[str, Any], injection: Injection, name: str, verb: str) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": name,
        "image": injection.image,
        "imagePullPolicy": injection.pull_policy,
        "command": ["python3", "-m", "rightpool_profiler", verb],
        "volumeMounts": [_shared_mount()],
        "securityContext": _security_context(pod, injection.user),
    }
    # Pod-level resources are shared by all containers; requests of the sidecar could exceed them.
    if not has_pod_level_resources(pod):
        chosen = _GUARANTEED if is_guaranteed(pod, ignoring=OURS) else _BURSTABLE
        container["resources"] = {kind: dict(amounts) for kind, amounts in chosen.items()}
        if injection.cpu_limit:
            container["resources"]["limits"].setdefault("cpu", injection.cpu_limit)
    return container


def _sidecar(pod: dict[str, Any], injection: Injection, chips: int) -> dict[str, Any]:
    common = _common(pod, injection, contract.SIDECAR_CONTAINER, "run")
    kept = {"name": contract.KEPT_VOLUME, "mountPath": contract.KEPT_DIR}
    return {
        **common,
        "volumeMounts": [*common["volumeMounts"], kept],
        "restartPolicy": "Always",
        "env": [
            *injection.environment(chips),
            {"name": contract.ENV_TOKEN_SHA256, "value": injection.token_sha256},
        ],
        "ports": [
            {"name": contract.SIDECAR_PORT_NAME, "containerPort": contract.SIDECAR_PORT, "protocol": "TCP"},
        ],
    }


def _installer(pod: dict[str, Any], injection: Injection) -> dict[str, Any]:
    return {
        **_common(pod, injection, contract.INSTALL_CONTAINER, "install"),
        "env": [{"name": contract.ENV_SHARED_DIR, "value": contract.SHARED_DIR}],
    }


def _security_context(pod: dict[str, Any], user: int) -> dict[str, Any]:
    """The security context that the restricted standard requires.

    It has the pod's user ID if there is one, so that files in the shared directory have one owner, unless that is root.
    """
    context: dict[str, Any] = {
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    if user and not mapping_in(pod_spec(pod), "securityContext", "template.spec").get("runAsUser"):
        context["runAsUser"] = user
    return context
