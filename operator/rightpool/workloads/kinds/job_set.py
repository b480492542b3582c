"""The kind `jobSet`: one JobSet of several roles for each Revision."""

from __future__ import annotations

import copy
import sys
from collections.abc import Mapping
from math import gcd
from typing import Any, Final

from rightpool.api.job_set import JobSetWorkload, jobs_of, pods_of
from rightpool.api.kubernetes import JOBS, Resource
from rightpool.api.revision import Revision
from rightpool.api.units import unix_time_of
from rightpool.contract import LABEL_ROLE
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.abilities import Abilities
from rightpool.workloads.injection import Injection
from rightpool.workloads.jobs_of_set import ROLE, JobsOfSet
from rightpool.workloads.kinds.kind import (
    A,
    Adoptable,
    ChildState,
    Failures,
    Kind,
    Unable,
    condition_of,
    message_of,
    resumed_at,
)
from rightpool.workloads.metadata import child_metadata
from rightpool.workloads.names import check_names, child_name
from rightpool.workloads.owner import Owner
from rightpool.workloads.placed import (
    chip_container_at,
    chips_in,
    place_template,
    size_chips,
    template_settings,
    template_shaped,
)
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.pods import pod_templates
from rightpool.workloads.rendezvous import UNIT, Hosts, Units
from rightpool.workloads.resources import asks_for_chips, asks_for_none, take_chips
from rightpool.workloads.template import InvalidTemplate, mapping_in, normalised, objects_in, pod_spec

JOB_SETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")

_NAME: Final = "jobset.sigs.k8s.io/jobset-name"
_UID: Final = "jobset.sigs.k8s.io/jobset-uid"
_EXCLUSIVE: Final = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_INDEX_OF_POD: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_INDEX_OF_JOB: Final = "metadata.annotations['jobset.sigs.k8s.io/job-index']"
_COUNTS: Final = ("completions", "parallelism")


class OfJobSet(Adoptable[A]):
    """Objects whose pods a JobSet of their name makes."""

    def trained(self, body: Mapping[str, Any], role: str) -> Mapping[str, str]:
        """See Adoptable."""
        return {_NAME: str(body["metadata"]["name"]), ROLE: role}

    def role_of(self, pod: Mapping[str, Any]) -> str:
        """See Adoptable."""
        return str((pod.get("labels") or {}).get(ROLE, ""))

    def jobs(self, body: Mapping[str, Any]) -> JobsOfSet:
        """See Adoptable."""
        return JobsOfSet(JOB_SETS, str(body["metadata"]["name"]), self.members(body))


class AdoptedJobSets(OfJobSet[JobSetWorkload]):
    """JobSets that somebody else has made."""

    queues: Final = True

    def abilities(self, body: Mapping[str, Any]) -> Abilities:
        """See Adoptable. Its webhook takes no other counts, resources or affinity. Whoever divides its pods among
        several Jobs says how many, and how big each is."""
        index = _with_chips(body)
        role = {} if index is None else body["spec"]["replicatedJobs"][index]
        return Abilities("JobSet", resize=False, affinity=False, anew=bool(role) and jobs_of(role) == 1)

    def settings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """See Adoptable."""
        index = _with_chips(body)
        if index is None:
            return {}
        pointer = f"/spec/replicatedJobs/{index}/template/spec"
        job = body["spec"]["replicatedJobs"][index]["template"]["spec"]
        template = job["template"]
        found = template_settings(template, f"{pointer}/template", ("nodeSelector", "tolerations"))
        found |= {f"{pointer}/{count}": job.get(count) for count in _COUNTS}
        container = chip_container_at(template)
        resources = template["spec"]["containers"][container].get("resources")
        found[f"{pointer}/template/spec/containers/{container}/resources"] = resources
        return copy.deepcopy(found)

    def change(self, body: Mapping[str, Any], ref: Revision, pool: Pool) -> dict[str, Any]:
        """See Adoptable."""
        changed, index = copy.deepcopy(dict(body)), _with_chips(body)
        if index is None:
            raise Unable("none of its pods asks for chips")
        role = changed["spec"]["replicatedJobs"][index]
        template, at = _job(role)["template"], ref.placement
        if (pods_of(role), chips_in(template)) != (at.replicas, at.chips_per_replica):
            _job(role).update(dict.fromkeys(_COUNTS, at.replicas))
            size_chips(template, ref, pool)
        place_template(template, ref, pool, affinity=False)
        return changed

    def adopted(self, body: Mapping[str, Any]) -> JobSetWorkload:
        """See Adoptable. Of several roles with chips the one trains that has most of them."""
        spec = normalised(body.get("spec") or {})
        found: list[tuple[int, str, str, int]] = []
        for role in _roles(spec):
            template = mapping_in(_job(role), "template", f"{_path(role)}.template.spec")
            if asks_for_chips(template):
                container, chips = take_chips(template)
                found.append((pods_of(role) * chips, role["name"], container, chips))
        if not found:
            raise asks_for_none(_job(role)["template"] for role in _roles(spec))
        _, name, container, chips = max(found, key=lambda one: one[0])
        return JobSetWorkload(template=spec, role=name, chip_container=container, chips_per_replica=chips)

    def members(self, body: Mapping[str, Any]) -> tuple[str, str]:
        """See Adoptable."""
        return _UID, str(body["metadata"]["uid"])

    def owns(self, pod: Mapping[str, Any], name: str, uid: str) -> bool:
        """See Adoptable."""
        return JOB_SET.owner_of(pod, name) == uid

    def shaped(self, pointer: str, value: Any) -> bool:
        """See Adoptable."""
        if pointer.rpartition("/")[2] in _COUNTS:
            return type(value) is int and value > 0
        return template_shaped(pointer, value)


class JobSetKind(Kind[JobSetWorkload]):
    """Training of several roles. JobSet's controller makes a Job for each, and the Service of their names."""

    field: Final = "jobSet"
    resource: Final = JOB_SETS
    optional: Final = True
    adoption: Final = AdoptedJobSets()

    def pod_sets(self, workload: JobSetWorkload) -> tuple[PodSet, ...]:
        """See Kind."""
        spec = normalised(workload.template)
        trained = _trained(spec, workload)
        return tuple(
            PodSet(
                role["name"],
                mapping_in(_job(role), "template", f"{_path(role)}.template.spec"),
                workload.chip_container if role is trained else None,
                pods_of(role),
                workload.chips_per_replica if role is trained else 0,
                _apart(role),
            )
            for role in _roles(spec)
        )

    def with_template(self, workload: JobSetWorkload, template: Mapping[str, Any]) -> JobSetWorkload:
        """See Kind."""
        spec = normalised(workload.template)
        _job(_trained(spec, workload))["template"] = template
        return JobSetWorkload.model_validate({**workload.to_dict(), "template": spec})

    def lifetime(self, workload: JobSetWorkload) -> int | None:
        """See Kind."""
        seconds = workload.template.get("ttlSecondsAfterFinished")
        return seconds if isinstance(seconds, int) else None

    def build(
        self,
        owner: Owner,
        workload: JobSetWorkload,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        """The manifest of a new JobSet: the user's, with the size and the pods of the role that trains."""
        spec = normalised(workload.template)
        trained = _trained(spec, workload)
        child, pods = child_name(owner.name, ref.revision), ref.placement.replicas
        jobs = _jobs(workload, pods, pool)
        each = pods // jobs
        of_role = f"{child}-{trained['name']}"
        names = [f"{of_role}-{job}-{pod}" for job in range(jobs) for pod in range(each)]
        check_names(owner.name, child, *names)
        index = _INDEX_OF_POD if jobs == 1 else _INDEX_OF_JOB if each == 1 else None
        units = Units(_INDEX_OF_JOB, _INDEX_OF_POD, [f"{of_role}-{UNIT}-{pod}" for pod in range(each)])
        hosts = Hosts(child, names, units)
        templates = pod_templates(owner, self.pod_sets(workload), ref, pool, injection, hosts, index)
        for role in _roles(spec):
            _job(role)["template"] = templates[role["name"]]
            pod_spec(templates[role["name"]]).setdefault("restartPolicy", "OnFailure")  # as JobSet does
        trained["replicas"] = jobs
        job = _job(trained)
        job |= {"completionMode": "Indexed", "completions": each, "parallelism": each}
        # The next pod of an index starts when the previous one has ended, so the checkpoint has one writer.
        job.setdefault("podReplacementPolicy", "Failed")
        spec.pop("ttlSecondsAfterFinished", None)
        spec["suspend"] = suspend or queue_name is not None
        metadata = child_metadata(templates[trained["name"]], owner, ref, queue_name)
        metadata["labels"][LABEL_ROLE] = trained["name"]
        return {"apiVersion": JOB_SETS.api_version, "kind": JOB_SETS.kind, "metadata": metadata, "spec": spec}

    def made_of(self, body: Mapping[str, Any]) -> tuple[tuple[Resource, Mapping[str, Any]], ...]:
        """The first Job of each role. JobSet itself does not look into pod templates."""
        about = body["metadata"]
        made = []
        for role in body["spec"]["replicatedJobs"]:
            metadata = {"name": f"{about['name']}-{role['name']}-0", "namespace": about["namespace"]}
            made.append((JOBS, {"metadata": metadata, "spec": role["template"]["spec"]}))
        return tuple(made)

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        """Read the JobSet's conditions."""
        about, spec, status = (body.get(part) or {} for part in ("metadata", "spec", "status"))
        conditions = status.get("conditions") or ()
        failed = condition_of(conditions, "Failed")
        policy, labels = spec.get("failurePolicy") or {}, about.get("labels") or {}
        return ChildState(
            suspended=bool(spec.get("suspend")),
            succeeded=condition_of(conditions, "Completed") is not None,
            failed=failed is not None,
            failure=message_of(failed),
            started_at=unix_time_of(resumed_at(about, spec, conditions)),
            expires=spec.get("ttlSecondsAfterFinished") is not None,
            failures=Failures(
                int(status.get("restartsCountTowardsMax") or 0),
                int(policy.get("maxRestarts") or 0),
                "template.failurePolicy.maxRestarts",
                exceeded=failed is not None and failed.get("reason") == "ReachedMaxRestarts",
            ),
            role=sys.intern(labels.get(LABEL_ROLE, "")),
        )

    def expiry(self, seconds: int) -> dict[str, Any]:
        """See Kind. An apply names all fields that it has set before."""
        return {"spec": {"suspend": False, "ttlSecondsAfterFinished": seconds}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        """See Kind. A Job stands between the two."""
        labels: Mapping[str, str] = pod.get("labels") or {}
        return labels.get(_UID, "") if labels.get(_NAME) == child else ""


JOB_SET: Final = JobSetKind()


def _roles(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return objects_in(spec, "replicatedJobs", "template")


def _trained(spec: dict[str, Any], workload: JobSetWorkload) -> dict[str, Any]:
    """The role that trains, of a copy of the template."""
    for role in _roles(spec):
        if role["name"] == workload.trained.get("name"):
            return role
    raise InvalidTemplate("jobSet.role must be the name of one of template.replicatedJobs: correct it")


def _with_chips(body: Mapping[str, Any]) -> int | None:
    """Which role trains of a JobSet that its user has: the one with the most chips. None: none has any."""
    roles = body["spec"].get("replicatedJobs") or ()
    chips = [pods_of(role) * chips_in(role["template"]["spec"]["template"]) for role in roles]
    return chips.index(max(chips)) if any(chips) else None


def _path(role: Mapping[str, Any]) -> str:
    return f"template.replicatedJobs[{role['name']}]"


def _job(role: dict[str, Any]) -> dict[str, Any]:
    """The spec of a role's Jobs."""
    return mapping_in(mapping_in(role, "template", _path(role)), "spec", f"{_path(role)}.template")


def _apart(role: dict[str, Any]) -> str:
    """The label that JobSet keeps a role's Jobs apart by."""
    path = f"{_path(role)}.template"
    metadata = mapping_in(mapping_in(role, "template", _path(role)), "metadata", path)
    return str(mapping_in(metadata, "annotations", f"{path}.metadata").get(_EXCLUSIVE, ""))


def _jobs(workload: JobSetWorkload, pods: int, pool: Pool) -> int:
    """Among how many Jobs so many pods are divided: a Job is a slice, or a pod where it is one in the template, else
    there are as many as in the template where that divides the pods."""
    if pool.slice is not None and pods % pool.hosts_per_slice == 0:
        return pods // pool.hosts_per_slice
    jobs = jobs_of(workload.trained)
    return pods if jobs == workload.replicas > 1 else gcd(jobs, pods)
