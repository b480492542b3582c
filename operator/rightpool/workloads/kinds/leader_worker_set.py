"""The kind `leaderWorkerSet`: one LeaderWorkerSet for each Revision, groups of a leader and its workers."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rightpool.api.kubernetes import Resource
from rightpool.api.leader_worker_set import LeaderWorkerSetWorkload, count_of
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.api.units import unix_time_of
from rightpool.contract import LABEL_ROLE
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.abilities import Abilities
from rightpool.workloads.injection import Injection
from rightpool.workloads.kinds.kind import Adoptable, ChildState, Kind, condition_of
from rightpool.workloads.kinds.server import DEPLOYMENTS
from rightpool.workloads.metadata import child_metadata, controller_reference
from rightpool.workloads.names import LABEL_OWNER, check_names, child_name
from rightpool.workloads.owner import Owner
from rightpool.workloads.placed import (
    chip_container_at,
    held_at,
    place_template,
    size_chips,
    template_settings,
    template_shaped,
)
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.pods import pod_templates
from rightpool.workloads.rendezvous import rendezvous_env
from rightpool.workloads.resources import take_chips
from rightpool.workloads.template import (
    InvalidTemplate,
    canonical,
    chip_container_of,
    mapping_in,
    normalised,
    set_default_env,
)

LEADER_WORKER_SETS: Final = Resource("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")

_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
_SET: Final = "group"
_TEMPLATES: Final = ("leaderTemplate", "workerTemplate")
_SIZE: Final = "/spec/leaderWorkerTemplate/size"
# What its controller sets in each container: a group's processes find each other by its leader.
_LEADER: Final = "$(LWS_LEADER_ADDRESS)"
_INDEX: Final = "metadata.labels['leaderworkerset.sigs.k8s.io/worker-index']"


class AdoptedLeaderWorkerSets(Adoptable[LeaderWorkerSetWorkload]):
    """LeaderWorkerSets that somebody else has made."""

    queues: Final = False

    def abilities(self, body: Mapping[str, Any]) -> Abilities:
        """See Adoptable. Whoever has several groups says how many, and how big each is."""
        several = _groups(body) > 1
        strategy = (body["spec"].get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
        by_group = several and not strategy.get("partition")  # it would leave groups as they are
        return Abilities("LeaderWorkerSet", resize=not several, affinity=True, by_group=by_group)

    def settings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """See Adoptable. How many groups there are is not one of them: without any it is stopped."""
        found: dict[str, Any] = {_SIZE: _group(body["spec"]).get("size")}
        for name, template in _templates(body["spec"]):
            pointer = f"/spec/leaderWorkerTemplate/{name}"
            found |= template_settings(template, pointer, ("nodeSelector", "tolerations", "affinity"))
            index = chip_container_at(template)
            if index is not None:
                resources = template["spec"]["containers"][index].get("resources")
                found[f"{pointer}/spec/containers/{index}/resources"] = resources
        return copy.deepcopy(found)

    def change(self, body: Mapping[str, Any], ref: Revision, pool: Pool) -> dict[str, Any]:
        """See Adoptable."""
        changed = copy.deepcopy(dict(body))
        spec, groups = changed["spec"], _groups(body)
        _group(spec)["size"] = _size(ref.placement.replicas, groups)
        for _, template in _templates(spec):
            size_chips(template, ref, pool)
            place_template(template, ref, pool, affinity=True)
        return changed

    def adopted(self, body: Mapping[str, Any]) -> LeaderWorkerSetWorkload:
        """See Adoptable."""
        spec = normalised(body.get("spec") or {})
        spec["replicas"] = _groups(body)
        found = {take_chips(template) for _, template in _templates(spec)}
        if len(found) > 1:
            raise InvalidTemplate(
                "leaders ask for other chips than workers, or in another container: have all pods of a group ask for "
                "the same"
            )
        ((container, chips),) = found
        return LeaderWorkerSetWorkload(template=spec, chip_container=container, chips_per_replica=chips)

    def members(self, body: Mapping[str, Any]) -> tuple[str, str]:
        """See Adoptable."""
        return _NAME, str(body["metadata"]["name"])

    def owns(self, pod: Mapping[str, Any], name: str, uid: str) -> bool:
        """See Adoptable. No label has its uid."""
        return _is_of(pod, name)

    def role_of(self, pod: Mapping[str, Any]) -> str:
        """See Adoptable."""
        return _SET

    def shaped(self, pointer: str, value: Any) -> bool:
        """See Adoptable."""
        if pointer == _SIZE:
            return type(value) is int and value > 0
        return template_shaped(pointer, value)


class LeaderWorkerSetKind(Kind[LeaderWorkerSetWorkload]):
    """Groups of pods without an end, each of which is started anew as a whole. The controller of LeaderWorkerSet makes
    StatefulSets of them, and the Service of their names."""

    field: Final = "leaderWorkerSet"
    resource: Final = LEADER_WORKER_SETS
    optional: Final = True
    adoption: Final = AdoptedLeaderWorkerSets()

    def pod_sets(self, workload: LeaderWorkerSetWorkload) -> tuple[PodSet, ...]:
        """See Kind. Leaders count as workers do."""
        templates = dict(_templates(normalised(workload.template)))
        leader = templates.get("leaderTemplate")
        settings = f"{workload.groups} {'' if leader is None else canonical(leader)}"
        each, chips = workload.chip_container, workload.chips_per_replica
        return (PodSet(_SET, templates["workerTemplate"], each, workload.replicas, chips, settings=settings),)

    def with_template(self, workload: LeaderWorkerSetWorkload, template: Mapping[str, Any]) -> LeaderWorkerSetWorkload:
        """See Kind."""
        spec = normalised(workload.template)
        if "leaderTemplate" in _group(spec):
            raise InvalidTemplate("template can't be laid over leaders with a template of their own: remove either")
        _group(spec)["workerTemplate"] = template
        return LeaderWorkerSetWorkload.model_validate({**workload.to_dict(), "template": spec})

    def build(
        self,
        owner: Owner,
        workload: LeaderWorkerSetWorkload,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        """The manifest of a new LeaderWorkerSet: the user's, with the size of each group and its pods."""
        spec = normalised(workload.template)
        groups, child, at = workload.groups, child_name(owner.name, ref.revision), ref.placement
        size, member = _size(at.replicas, groups), f"{owner.uid}.r{ref.revision}"
        check_names(owner.name, child, f"{child}-{groups - 1}-{size - 1}")
        (pod_set,) = self.pod_sets(workload)
        one = Placement(at.pool, at.chips_per_replica * size, size)
        for name, template in _templates(spec):
            pods = pod_set._replace(template=template)
            (built,) = pod_templates(owner, [pods], ref, pool, injection, None, None).values()
            container = chip_container_of(built, workload.chip_container)
            set_default_env(container, rendezvous_env(one, [_LEADER], _INDEX))
            built["metadata"]["labels"][LABEL_OWNER] = member
            _group(spec)[name] = built
        _group(spec)["size"] = size
        spec["replicas"] = 0 if suspend or queue_name is not None else groups
        metadata = child_metadata(_group(spec)["workerTemplate"], owner, ref, queue_name)
        metadata["labels"] |= {LABEL_ROLE: _SET, LABEL_OWNER: member}
        kind = LEADER_WORKER_SETS
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}

    def made_of(self, body: Mapping[str, Any]) -> tuple[tuple[Resource, Mapping[str, Any]], ...]:
        """Its StatefulSets, asked for as Deployments, whose pods are judged alike and which the operator may make."""
        about, made = body["metadata"], []
        for name, template in _templates(body["spec"]):
            labels = {_NAME: about["name"]}
            pods = copy.deepcopy(dict(template))
            pods["metadata"] = {**(pods.get("metadata") or {}), "labels": labels}
            metadata = {"name": f"{about['name']}-{name[:6]}", "namespace": about["namespace"]}
            made.append(
                (DEPLOYMENTS, {"metadata": metadata, "spec": {"selector": {"matchLabels": labels}, "template": pods}})
            )
        return tuple(made)

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        """By its spec and whether it is available. It never ends."""
        about, spec, status = (body.get(part) or {} for part in ("metadata", "spec", "status"))
        labels, conditions = about.get("labels") or {}, status.get("conditions") or ()
        available = condition_of(conditions, "Available") or condition_of(conditions, "Available", "False") or {}
        suspended = spec.get("replicas") == 0
        started_at = available.get("lastTransitionTime") or about.get("creationTimestamp")
        return ChildState(
            suspended=suspended,
            succeeded=False,
            failed=False,
            started_at=None if suspended else unix_time_of(started_at),
            role=sys.intern(labels.get(LABEL_ROLE, "")),
            members=sys.intern(labels.get(LABEL_OWNER, "")),
            unit=count_of(_group(spec).get("size")),
        )

    def suspension(self, suspend: bool, placement: Placement, unit: int) -> dict[str, Any]:
        """The field that says how many groups there are."""
        return {"spec": {"replicas": 0 if suspend else max(1, placement.replicas // unit)}}

    def expiry(self, seconds: int) -> dict[str, Any]:
        """See Kind. It has no end, and no such field."""
        return {"spec": {"startupPolicy": "LeaderCreated"}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        """See Kind. StatefulSets stand between the two, and no label has the LeaderWorkerSet's uid: so it is the
        Revision, which has one."""
        labels: Mapping[str, str] = pod.get("labels") or {}
        return labels.get(LABEL_OWNER, "") if _is_of(pod, child) else ""


LEADER_WORKER_SET: Final = LeaderWorkerSetKind()


def _group(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a group is made of."""
    found: dict[str, Any] = spec.get("leaderWorkerTemplate") or {}
    return found


def _templates(spec: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The pods of a group, by their field: leaders have a template of their own where it is written."""
    group = mapping_in(dict(spec), "leaderWorkerTemplate", "template")
    for name in _TEMPLATES:
        if name == "workerTemplate" or group.get(name) is not None:
            yield name, mapping_in(group, name, "template.leaderWorkerTemplate")


def _groups(body: Mapping[str, Any]) -> int:
    """How many groups the object has; where the operator has stopped it, had."""
    spec, held = body["spec"], held_at(body)
    groups = spec.get("replicas", 1)
    if groups == 0 and held is not None:
        return max(1, held.replicas // count_of(_group(spec).get("size")))
    return count_of(groups)


def _size(pods: int, groups: int) -> int:
    """Pods of each group. Raises InvalidTemplate where they can't be divided."""
    if pods % groups:
        raise InvalidTemplate(f"{pods} pods are not to be divided among {groups} groups, which stay as many")
    return pods // groups


def _is_of(pod: Mapping[str, Any], name: str) -> bool:
    """Whether a StatefulSet of this object made the pod: that of leaders has its name, those of workers a leader's."""
    labels, controller = pod.get("labels") or {}, controller_reference(pod)
    leaders, workers = controller.get("name") == name, str(controller.get("name")).startswith(f"{name}-")
    return labels.get(_NAME) == name and controller.get("kind") == "StatefulSet" and (leaders or workers)
