"""The restricted Pod Security Standard, as far as the builders set or copy its fields.

Rules: https://kubernetes.io/docs/concepts/security/pod-security-standards/ (restricted includes baseline).
"""

from typing import Any

ALLOWED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}


def violations(template: dict[str, Any]) -> list[str]:
    """Violations of the restricted standard by a pod template; empty if there are none."""
    spec = template["spec"]
    pod = spec.get("securityContext") or {}
    found = [f"{field} is set" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    for volume in spec.get("volumes") or []:
        kinds = set(volume) - {"name"}
        if not kinds <= ALLOWED_VOLUMES:
            found.append(f"volume {volume['name']} is of kind {kinds}")
    if pod.get("runAsUser") == 0:
        found.append("the pod runs as root")
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        found += [f"{container['name']}: {what}" for what in _container(container, pod)]
    return found


def _container(container: dict[str, Any], pod: dict[str, Any]) -> list[str]:
    own = container.get("securityContext") or {}
    found = []
    if own.get("privileged"):
        found.append("privileged")
    if own.get("allowPrivilegeEscalation") is not False:
        found.append("may escalate privileges")
    capabilities = own.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or []):
        found.append("does not drop all capabilities")
    if not set(capabilities.get("add") or []) <= {"NET_BIND_SERVICE"}:
        found.append("adds capabilities")
    if own.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True:
        found.append("may run as root")
    if own.get("runAsUser") == 0:
        found.append("runs as root")
    profile = own.get("seccompProfile", pod.get("seccompProfile")) or {}
    if profile.get("type") not in ("RuntimeDefault", "Localhost"):
        found.append("no seccomp profile")
    if any(port.get("hostPort") for port in container.get("ports") or []):
        found.append("host port")
    return found
