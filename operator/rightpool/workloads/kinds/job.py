"""The kind `job`: one Indexed batch/v1 Job for each Revision."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.kubernetes import JOBS
from rightpool.api.revision import Revision
from rightpool.api.units import unix_time_of
from rightpool.api.workload import JobWorkload
from rightpool.contract import LABEL_ROLE
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.abilities import Abilities
from rightpool.workloads.injection import Injection
from rightpool.workloads.kinds.kind import (
    Adoptable,
    ChildState,
    Failures,
    Kind,
    Unable,
    condition_is_true,
    condition_of,
    message_of,
)
from rightpool.workloads.metadata import as_new, child_metadata, controller_reference
from rightpool.workloads.names import check_names, child_name, service_name
from rightpool.workloads.owner import Owner
from rightpool.workloads.placed import chip_container_at, place_template, size_chips, template_settings, template_shaped
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.pods import pod_templates
from rightpool.workloads.rendezvous import Hosts
from rightpool.workloads.resources import take_chips
from rightpool.workloads.template import mapping_in, normalised, pod_spec

# Kubernetes' default of 6 counts pod failures. A crash ends all pods of the gang, so 6 restarts of the program are 6
# failures of each pod.
_RESTARTS: Final = 6

_SET: Final = "worker"
_UID: Final = "batch.kubernetes.io/controller-uid"
# What Kubernetes puts into the template of a Job.
_NAME: Final = "batch.kubernetes.io/job-name"
_GENERATED: Final = (_UID, _NAME, "controller-uid", "job-name")

_COUNTS: Final = ("/spec/completions", "/spec/parallelism")
_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


class AdoptedJobs(Adoptable[JobWorkload]):
    """Jobs that somebody else has made."""

    queues: Final = True

    def abilities(self, body: Mapping[str, Any]) -> Abilities:
        """See Adoptable. Only an Indexed Job lets its completions change, along with its parallelism."""
        return Abilities("Job", resize=_is_gang(body["spec"]), affinity=True)

    def settings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """See Adoptable. Of affinity it is that to nodes alone."""
        spec = body["spec"]
        template = spec["template"]
        found = template_settings(template, "/spec/template", ("nodeSelector", "tolerations", "affinity"))
        if _is_gang(spec):
            found |= {pointer: spec.get(pointer.rpartition("/")[2]) for pointer in _COUNTS}
        index = chip_container_at(template)
        if index is not None:
            containers = template["spec"]["containers"]
            found[f"/spec/template/spec/containers/{index}/resources"] = containers[index].get("resources")
        return copy.deepcopy(found)

    def change(self, body: Mapping[str, Any], ref: Revision, pool: Pool) -> dict[str, Any]:
        """See Adoptable."""
        changed = copy.deepcopy(dict(body))
        spec, pods = changed["spec"], ref.placement.replicas
        if _is_gang(spec):
            spec |= {"completions": pods, "parallelism": pods}
        elif pods != spec.get("parallelism", 1):
            raise Unable(f"a Job whose pods are not Indexed keeps their number, and {pods} would run there")
        size_chips(spec["template"], ref, pool)
        place_template(spec["template"], ref, pool, affinity=True)
        return changed

    def anew(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """See Adoptable. Kubernetes chooses the selector anew."""
        manifest = as_new(body)
        spec = manifest["spec"]
        if not spec.get("manualSelector"):
            spec.pop("selector", None)
            labels = (spec["template"].get("metadata") or {}).get("labels") or {}
            for name in _GENERATED:
                labels.pop(name, None)
        return manifest

    def adopted(self, body: Mapping[str, Any]) -> JobWorkload:
        """See Adoptable. It ends, and fails for good, by its own spec."""
        spec = body.get("spec") or {}
        template = normalised(spec.get("template") or {})
        labels = mapping_in(mapping_in(template, "metadata", "template"), "labels", "template.metadata")
        for name in _GENERATED:
            labels.pop(name, None)
        container, chips = take_chips(template)
        return JobWorkload(
            template=template,
            chip_container=container,
            chips_per_replica=chips,
            replicas=max(1, _count(spec.get("parallelism", 1))),
            active_deadline_seconds=spec.get("activeDeadlineSeconds"),
        )

    def members(self, body: Mapping[str, Any]) -> tuple[str, str]:
        """See Adoptable."""
        return _UID, str(body["metadata"]["uid"])

    def trained(self, body: Mapping[str, Any], role: str) -> Mapping[str, str]:
        """See Adoptable."""
        return {_NAME: str(body["metadata"]["name"])}

    def owns(self, pod: Mapping[str, Any], name: str, uid: str) -> bool:
        """See Adoptable."""
        return JOB.owner_of(pod, name) == uid

    def role_of(self, pod: Mapping[str, Any]) -> str:
        """See Adoptable."""
        return _SET

    def shaped(self, pointer: str, value: Any) -> bool:
        """See Adoptable."""
        if pointer in _COUNTS:
            return type(value) is int and value > 0
        return template_shaped(pointer, value)


class JobKind(Kind[JobWorkload]):
    """Training and other work that ends."""

    field: Final = "job"
    resource: Final = JOBS
    optional: Final = False
    adoption: Final = AdoptedJobs()

    def pod_sets(self, workload: JobWorkload) -> tuple[PodSet, ...]:
        """See Kind."""
        each, chips = workload.chip_container, workload.chips_per_replica
        return (PodSet(_SET, workload.template, each, workload.replicas, chips),)

    def with_template(self, workload: JobWorkload, template: Mapping[str, Any]) -> JobWorkload:
        """See Kind."""
        return workload.model_copy(update={"template": template})

    def lifetime(self, workload: JobWorkload) -> int | None:
        """See Kind."""
        return workload.ttl_seconds_after_finished

    def hosts(self, workload: JobWorkload, child: str, replicas: int) -> Hosts | None:
        """Most Jobs have a single pod, and each Service costs the cluster's DNS and every node that watches
        Services."""
        return _hosts(child, replicas) if replicas > 1 else None

    def build(
        self,
        owner: Owner,
        workload: JobWorkload,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        """The manifest of a new Job.

        A Job's template is immutable, and a later version of the operator may build another one. So only `suspend` of
        an existing Job is changed.
        """
        placement = ref.placement
        hosts = _hosts(child_name(owner.name, ref.revision), placement.replicas)
        check_names(owner.name, hosts.service, *hosts.pods)
        (template,) = pod_templates(owner, self.pod_sets(workload), ref, pool, injection, hosts, _INDEX).values()
        pod_spec(template).setdefault("restartPolicy", "Never")
        restarts = _RESTARTS if workload.backoff_limit is None else workload.backoff_limit
        spec: dict[str, Any] = {
            "completionMode": "Indexed",
            "completions": placement.replicas,
            "parallelism": placement.replicas,
            "backoffLimit": restarts * placement.replicas,
            # The next pod of an index starts when the previous one has ended, so the checkpoint has one writer.
            "podReplacementPolicy": "Failed",
            # Kueue admits a Job by resuming it.
            "suspend": suspend or queue_name is not None,
            "template": template,
        }
        if workload.active_deadline_seconds is not None:
            spec["activeDeadlineSeconds"] = workload.active_deadline_seconds
        if workload.success_policy is not None:
            spec["successPolicy"] = dict(workload.success_policy)
        rules = [*map(dict, workload.failure_rules)]
        if pod_spec(template)["restartPolicy"] == "Never":
            # A drained or reclaimed node is no failure of the program. Kubernetes requires restartPolicy Never for it.
            rules.append({"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]})
        if rules:
            spec["podFailurePolicy"] = {"rules": rules}
        return {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": child_metadata(template, owner, ref, queue_name),
            "spec": spec,
        }

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        """Read the Job's conditions. Kubernetes removes startTime when the Job is suspended, and sets it again."""
        spec, status = body.get("spec") or {}, body.get("status") or {}
        conditions = status.get("conditions") or ()
        failed = condition_of(conditions, "Failed")
        succeeded = condition_is_true(conditions, "Complete")
        decided = condition_is_true(conditions, "SuccessCriteriaMet") or condition_is_true(conditions, "FailureTarget")
        return ChildState(
            suspended=bool(spec.get("suspend")),
            succeeded=succeeded,
            failed=failed is not None,
            failure=message_of(failed),
            started_at=unix_time_of(status.get("startTime")),
            ending=decided and not succeeded and failed is None,
            expires=spec.get("ttlSecondsAfterFinished") is not None,
            failures=Failures(
                _count(status.get("failed")),
                _count(spec.get("backoffLimit", _RESTARTS)),
                "backoffLimit",
                exceeded=failed is not None and failed.get("reason") == "BackoffLimitExceeded",
            ),
            role=_role(spec),
        )

    def expiry(self, seconds: int) -> dict[str, Any]:
        """See Kind. An apply names all fields that it has set before."""
        return {"spec": {"suspend": False, "ttlSecondsAfterFinished": seconds}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        """See Kind. The version of the API group may differ."""
        controller = controller_reference(pod)
        group = str(controller.get("apiVersion")).partition("/")[0]
        named = (group, controller.get("kind"), controller.get("name")) == (JOBS.group, JOBS.kind, child)
        return str(controller.get("uid", "")) if named else ""


JOB: Final = JobKind()


def _hosts(child: str, replicas: int) -> Hosts:
    """Kubernetes names the pods of an Indexed Job by their index."""
    return Hosts(service_name(child), [f"{child}-{index}" for index in range(replicas)])


def _is_gang(spec: Mapping[str, Any]) -> bool:
    """Whether all pods of the Job run at once, each with an index of its own."""
    return spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism", 1)


def _role(spec: Mapping[str, Any]) -> str:
    metadata = (spec.get("template") or {}).get("metadata") or {}
    return sys.intern((metadata.get("labels") or {}).get(LABEL_ROLE, ""))


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
