"""The rights of a service account: granted, used, and documented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from devcluster.kubectl import Kubectl

SECURITY: Final = Path(__file__).parents[3] / "docs" / "security.md"

# Checked by the cluster during other requests, so no own request shows it. Of Workloads only where Kueue is, and of
# JobSets and TrainJobs where JobSet and Trainer are, but for whether there are any of the first kind that is missing:
# see the tests of kueue and kinds. Of slices and claims only where a class of devices names a chip's resource: see
# tests/integration/runtime/test_devices.py. ProfiledJobs are made and deleted by a label of other objects alone: see
# tests/integration/runtime/test_adoption.py; Deployments for servers alone: see test_servers.py beside it. While there
# are servers Services are listed and, while one moves, patched: see test_servers.py and test_server_moves.py there.
# HTTPRoutes are a right that is asked for, and none by default: see tests/unit/chart/test_child_kinds.py.
# ConfigMaps go with servers: see tests/unit/runtime/act/test_demand_records.py.
# PodTemplates are written of adopted objects alone: see tests/integration/kinds/test_admitted.py.
UNASKED: Final = frozenset(
    {("rightpool.dev", "profiledjobs/finalizers", "update")}
    | {("rightpool.dev", "profiledjobs", verb) for verb in ("create", "patch", "delete")}
    | {("", "configmaps", "delete"), ("", "services", "list"), ("", "services", "patch")}
    | {("", "podtemplates", verb) for verb in ("create", "patch", "delete")}
    | {("kueue.x-k8s.io", "workloads", verb) for verb in ("list", "patch")}
    | {("resource.k8s.io", resource, "list") for resource in ("resourceslices", "resourceclaims")}
    | {("jobset.x-k8s.io", "jobsets", verb) for verb in ("get", "list", "watch", "create", "patch", "delete")}
    | {("apps", "deployments", verb) for verb in ("get", "create", "patch", "delete")}
    | {
        ("leaderworkerset.x-k8s.io", "leaderworkersets", verb)
        for verb in ("get", "list", "watch", "create", "patch", "delete")
    }
    | {("trainer.kubeflow.org", "trainjobs", verb) for verb in ("get", "watch", "create", "patch", "delete")}
    | {("trainer.kubeflow.org", "trainingruntimes", verb) for verb in ("get", "create", "update")}
    | {("trainer.kubeflow.org", "clustertrainingruntimes", "get")}
)
# By how long things take on this machine: an Event is patched where it is repeated for five minutes, and Events are
# listed where Kubernetes makes no pods for ten seconds.
SOMETIMES: Final = frozenset({("", "events", "patch"), ("", "events", "list")})


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource. scope: a namespace; "" for all of them and for what is in none."""

    group: str
    resource: str
    verb: str
    scope: str = ""

    @property
    def plain(self) -> tuple[str, str, str]:
        """The right without its scope."""
        return self.group, self.resource, self.verb


@dataclass(frozen=True)
class Asked:
    """The requests of one account in the audit log. refused: those answered with 403."""

    rights: frozenset[Right]
    refused: frozenset[str]


def granted(kubectl: Kubectl, namespace: str, account: str) -> frozenset[Right]:
    """The rights from all bindings that name the account."""
    found: set[Right] = set()
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in kubectl.json("get", kind, "--all-namespaces")["items"]:
            if any(_names(subject, namespace, account) for subject in binding.get("subjects") or ()):
                scope = binding["metadata"].get("namespace", "")
                where = [f"--namespace={scope}"] if binding["roleRef"]["kind"] == "Role" else []
                role = kubectl.json("get", binding["roleRef"]["kind"].lower(), binding["roleRef"]["name"], *where)
                found.update(_rights(role["rules"], scope))
    return frozenset(found)


def _names(subject: dict[str, str], namespace: str, account: str) -> bool:
    return (subject["kind"], subject.get("namespace"), subject["name"]) == ("ServiceAccount", namespace, account)


def _rights(rules: Iterable[dict[str, Any]], scope: str) -> Iterator[Right]:
    for rule in rules:
        for group in rule.get("apiGroups", ()):
            for resource in rule.get("resources", ()):
                for verb in rule["verbs"]:
                    yield Right(group, resource, verb, scope)


def asked(logs: Iterable[Path], user: str, since: str = "") -> Asked:
    """Requests in audit logs. since: a time in the format of the log; older ones are skipped."""
    rights: set[Right] = set()
    refused: set[str] = set()
    for log in logs:
        for line in log.read_text().splitlines():
            if user not in line:  # of most lines; reading them as JSON takes the most time
                continue
            event = json.loads(line)
            if event["user"]["username"] != user or event["requestReceivedTimestamp"] < since:
                continue
            code = event.get("responseStatus", {}).get("code")
            if code == 403 and not _by_admission(event):
                refused.add(f"{event['verb']} {event['requestURI'].partition('?')[0]}")
            elif "objectRef" in event and "resource" in event["objectRef"]:
                rights.update(_asked_for(event, code))
    return Asked(frozenset(rights), frozenset(refused))


def _asked_for(event: dict[str, Any], code: int | None) -> Iterator[Right]:
    about = event["objectRef"]
    resource = about["resource"] + (f"/{about['subresource']}" if "subresource" in about else "")
    right = Right(about.get("apiGroup", ""), resource, event["verb"], about.get("namespace", ""))
    yield right
    # An apply that creates the object needs the right to create it, too.
    if event["verb"] == "patch" and code == 201:
        yield Right(right.group, right.resource, "create", right.scope)


def _by_admission(event: dict[str, Any]) -> bool:
    """Whether a policy or quota rejected it, which is not a missing right."""
    return bool(event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow")


def documented(text: str) -> frozenset[tuple[str, str, str]]:
    """The rows of the table of rights: | group | resource | verbs | why |; the core group is called `core`."""
    found = set()
    for group, resource, verbs in re.findall(r"^\| `([^`]+)` \| `([^`]+)` \| ([a-z, ]+) \|", text, re.MULTILINE):
        for verb in verbs.split(","):
            found.add(("" if group == "core" else group, resource, verb.strip()))
    return frozenset(found)


def covered(right: Right, by: Iterable[Right]) -> bool:
    """Whether one of them grants it, for that namespace or for all."""
    return any(one.plain == right.plain and one.scope in ("", right.scope) for one in by)
