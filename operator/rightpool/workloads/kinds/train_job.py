"""The kind `trainJob`: one TrainJob of Kubeflow Trainer for each Revision, and the runtime that its pods come from."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from rightpool.api.kubernetes import Resource
from rightpool.api.revision import Revision
from rightpool.api.train_job import TrainJobWorkload
from rightpool.api.units import unix_time_of
from rightpool.contract import LABEL_ROLE
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.abilities import Abilities
from rightpool.workloads.injection import Injection
from rightpool.workloads.kinds.job_set import OfJobSet
from rightpool.workloads.kinds.kind import ChildState, Kind, condition_of, message_of, resumed_at
from rightpool.workloads.metadata import child_metadata
from rightpool.workloads.names import LABEL_OWNER, check_names, child_name, object_labels
from rightpool.workloads.owner import Owner
from rightpool.workloads.placed import template_shaped, texts
from rightpool.workloads.pod_set import PodSet, scaled_of
from rightpool.workloads.pods import place_pods, pod_templates
from rightpool.workloads.rendezvous import Hosts
from rightpool.workloads.resources import add_chips, chips_of, drop_chips
from rightpool.workloads.template import InvalidTemplate, containers_of, mapping_in, normalised, objects_in

TRAIN_JOBS: Final = Resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs")
RUNTIMES: Final = Resource("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes")
CLUSTER_RUNTIMES: Final = Resource(
    "trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)

_CONTAINER: Final = "node"  # in which Trainer runs the program, whatever the runtime
_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
_JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"  # the TrainJob's own
_INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_LAUNCHED: Final = ("mpi", "flux")  # by a pod of its own, which tells the others what to run
_PROGRAM: Final = ("image", "command", "args")
_PATCHES: Final = "/spec/runtimePatches"
_TRAINER: Final = "/spec/trainer"
_SIZE: Final = ("numNodes", "numProcPerNode", "resourcesPerNode")
_MANAGER: Final = "rightpool.dev/operator"  # of the operator's own entry there
_NOBODYS: Final = (_MANAGER, "kueue.x-k8s.io/manager")  # of entries that are no user's


@dataclass(frozen=True, slots=True)
class _Known:
    """A workload whose runtime was read."""

    workload: TrainJobWorkload
    """As the user wrote it."""

    runtime: Mapping[str, Any]
    """The spec of the runtime that it names."""


class TrainingRuntimes:
    """The runtime of a Revision: that which the TrainJob names, with the placement in its pods. A TrainJob itself can
    add no container to them."""

    resource: Final = RUNTIMES

    def named(self, workload: TrainJobWorkload) -> tuple[Resource, str]:
        """See Companion."""
        reference = workload.template["runtimeRef"]
        return RUNTIMES if reference.get("kind") == RUNTIMES.kind else CLUSTER_RUNTIMES, reference["name"]

    def known(self, workload: TrainJobWorkload, body: Mapping[str, Any]) -> _Known:
        """See Companion."""
        spec = normalised(body.get("spec") or {})
        for policy in _LAUNCHED:
            if policy in mapping_in(spec, "mlPolicy", "spec"):
                raise InvalidTemplate(
                    f"template.runtimeRef: the runtime has mlPolicy.{policy}, whose launcher would not know of another "
                    "size: name one for torch, jax or plain programs"
                )
        return _Known(workload, spec)

    def build(
        self, owner: Owner, workload: _Known, ref: Revision, pool: Pool, injection: Injection | None
    ) -> dict[str, Any]:
        """See Companion."""
        spec, templates = normalised(workload.runtime), _templates(owner, workload, ref, pool, injection)
        for role in _roles(spec):
            job = _job(role)
            job["template"] = templates[role["name"]]
            if _trains(role):
                # The next pod of an index starts when the previous one has ended, so the checkpoint has one writer.
                job.setdefault("podReplacementPolicy", "Failed")
        metadata = {
            "name": child_name(owner.name, ref.revision),
            "namespace": owner.namespace,
            "labels": object_labels(owner.name, ref.revision, ref.placement.pool),
            "ownerReferences": [owner.reference],
        }
        return {"apiVersion": RUNTIMES.api_version, "kind": RUNTIMES.kind, "metadata": metadata, "spec": spec}

    def without(self, workload: TrainJobWorkload, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """See Companion."""
        return {**manifest, "spec": {**manifest["spec"], "runtimeRef": workload.template["runtimeRef"]}}


class AdoptedTrainJobs(OfJobSet[TrainJobWorkload]):
    """TrainJobs that somebody else has made. What they say themselves is read, and not their runtime."""

    queues: Final = True

    def abilities(self, body: Mapping[str, Any]) -> Abilities:
        """See Adoptable. Trainer takes an affinity, which its JobSet refuses, and so never starts."""
        return Abilities("TrainJob", resize=False, affinity=False, anew=all(_asked(body)))

    def settings(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """See Adoptable. Trainer writes into each entry when that was written, which says nothing."""
        patches = body["spec"].get("runtimePatches")
        found = {_PATCHES: patches and [{name: one[name] for name in one if name != "time"} for one in patches]}
        found |= {f"{pointer}/nodeSelector": pod.get("nodeSelector") for pointer, pod in _patched(body)}
        trainer = body["spec"].get("trainer") or {}
        found |= {f"{_TRAINER}/{field}": trainer.get(field) for field in _SIZE}
        return copy.deepcopy(found)

    def change(self, body: Mapping[str, Any], ref: Revision, pool: Pool) -> dict[str, Any]:
        """See Adoptable. The operator's own entry is the last, whose node selector holds."""
        changed, at = copy.deepcopy(dict(body)), ref.placement
        nodes, chips = _asked(changed)
        if (nodes, chips) != (at.replicas, at.chips_per_replica):
            trainer = changed["spec"]["trainer"]
            trainer["numNodes"] = at.replicas
            asks = {"name": _CONTAINER, "resources": trainer["resourcesPerNode"]}
            drop_chips(asks)
            add_chips(asks, pool.resource_name, at.chips_per_replica)
            trainer["resourcesPerNode"] = asks["resources"]
            if trainer.get("numProcPerNode") == chips:
                trainer["numProcPerNode"] = at.chips_per_replica
        # What a later entry says of tolerations replaces those of an earlier one.
        spec: dict[str, Any] = {"nodeSelector": {}, "tolerations": []}
        for _, pod in _patched(changed):
            selector = pod.get("nodeSelector") or {}
            if not texts(selector):
                raise InvalidTemplate("runtimePatches: a nodeSelector must be an object of texts")
            spec["nodeSelector"] |= selector
            spec["tolerations"] = pod.get("tolerations") or spec["tolerations"]
        template = copy.deepcopy({"spec": spec})
        place_pods(template, pool, at, affinity=False)
        theirs = [one for one in changed["spec"].get("runtimePatches") or () if one.get("manager") != _MANAGER]
        job = {"name": _CONTAINER, "template": {"spec": {"template": template}}}
        ours = {"manager": _MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}
        changed["spec"]["runtimePatches"] = [*theirs, ours]
        return changed

    def adopted(self, body: Mapping[str, Any]) -> TrainJobWorkload:
        """See Adoptable."""
        spec = normalised(body.get("spec") or {})
        nodes, chips = _asked(body)
        if not (nodes and chips):
            raise InvalidTemplate(
                "a TrainJob is looked at by its own spec alone: write spec.trainer.numNodes, and the chips of a pod in "
                "spec.trainer.resourcesPerNode"
            )
        drop_chips({"resources": spec["trainer"]["resourcesPerNode"]})
        return TrainJobWorkload(template=spec, chips_per_replica=chips)

    def members(self, body: Mapping[str, Any]) -> tuple[str, str]:
        """See Adoptable. Its JobSet has its name."""
        return _JOB_SET, str(body["metadata"]["name"])

    def owns(self, pod: Mapping[str, Any], name: str, uid: str) -> bool:
        """See Adoptable. No label has its uid."""
        return bool((pod.get("labels") or {}).get(_JOB_SET) == name)

    def shaped(self, pointer: str, value: Any) -> bool:
        """See Adoptable."""
        if pointer == _PATCHES:
            return isinstance(value, list) and all(isinstance(one, dict) for one in value)
        if pointer == f"{_TRAINER}/resourcesPerNode":
            return template_shaped("/resources", value)
        if pointer.startswith(_TRAINER):
            return isinstance(value, int | str)
        return texts(value)


class TrainJobKind(Kind[Any]):
    """Training by Trainer, which makes a JobSet of the TrainJob and its runtime."""

    field: Final = "trainJob"
    resource: Final = TRAIN_JOBS
    optional: Final = True
    companion: Final = TrainingRuntimes()
    adoption: Final = AdoptedTrainJobs()

    def pod_sets(self, workload: TrainJobWorkload | _Known) -> tuple[PodSet, ...]:
        """See Kind. Without the runtime only what the TrainJob itself says of the pods that train."""
        if isinstance(workload, TrainJobWorkload):
            container = {"name": _CONTAINER, **_program(workload)}
            return (_trained(_CONTAINER, {"spec": {"containers": [container]}}, workload),)
        spec = normalised(workload.runtime)
        return tuple(
            _trained(role["name"], _with_program(_template(role), workload.workload), workload.workload)
            if _trains(role)
            else PodSet(role["name"], _template(role), None, int(_job(role).get("parallelism", 1)), 0)
            for role in _roles(spec)
        )

    def with_template(self, workload: TrainJobWorkload, template: Mapping[str, Any]) -> NoReturn:
        """See Kind."""
        raise InvalidTemplate(
            "template can't be laid over a TrainJob, whose pods are its runtime's: remove the variant"
        )

    def build(
        self,
        owner: Owner,
        workload: _Known,
        queue_name: str | None,
        ref: Revision,
        pool: Pool,
        injection: Injection | None,
        suspend: bool = False,
    ) -> dict[str, Any]:
        """The manifest of a new TrainJob: the user's, with the size and the runtime of its Revision."""
        spec = normalised(workload.workload.template)
        scaled = scaled_of(self.pod_sets(workload))
        metadata = child_metadata(
            _templates(owner, workload, ref, pool, injection)[scaled.name], owner, ref, queue_name
        )
        metadata["labels"] |= {LABEL_ROLE: scaled.name, LABEL_OWNER: _member_of(owner, ref)}
        spec["runtimeRef"] = {"apiGroup": RUNTIMES.group, "kind": RUNTIMES.kind, "name": metadata["name"]}
        trainer = mapping_in(spec, "trainer", "template")
        for field in ("env", "resourcesPerNode"):  # the runtime's container has them, with what the placement adds
            trainer.pop(field, None)
        trainer["numNodes"] = ref.placement.replicas
        trainer.setdefault("numProcPerNode", ref.placement.chips_per_replica)
        spec["suspend"] = suspend or queue_name is not None
        return {"apiVersion": TRAIN_JOBS.api_version, "kind": TRAIN_JOBS.kind, "metadata": metadata, "spec": spec}

    def observe(self, body: Mapping[str, Any]) -> ChildState:
        """Read the TrainJob's conditions, which Trainer copies from its JobSet."""
        about, spec, status = (body.get(part) or {} for part in ("metadata", "spec", "status"))
        conditions, labels = status.get("conditions") or (), about.get("labels") or {}
        failed = condition_of(conditions, "Failed")
        return ChildState(
            suspended=bool(spec.get("suspend")),
            succeeded=condition_of(conditions, "Complete") is not None,
            failed=failed is not None,
            failure=message_of(failed),
            started_at=unix_time_of(resumed_at(about, spec, conditions)),
            role=sys.intern(labels.get(LABEL_ROLE, "")),
            members=sys.intern(labels.get(LABEL_OWNER, "")),
            stopping=any(int(one.get("active") or 0) for one in status.get("jobsStatus") or ()),
        )

    def expiry(self, seconds: int) -> dict[str, Any]:
        """See Kind. Trainer has no such field."""
        return {"spec": {"suspend": False}}

    def owner_of(self, pod: Mapping[str, Any], child: str) -> str:
        """See Kind. A Job and a JobSet stand between the two, and no label has the TrainJob's uid: so it is the
        Revision, which has one TrainJob."""
        labels: Mapping[str, str] = pod.get("labels") or {}
        return labels.get(LABEL_OWNER, "") if labels.get(_JOB_SET) == child else ""


TRAIN_JOB: Final = TrainJobKind()


def _asked(body: Mapping[str, Any]) -> tuple[int, int]:
    """How many pods a TrainJob asks for, with how many chips each; 0 where it does not say so itself."""
    trainer = (body.get("spec") or {}).get("trainer") or {}
    return int(trainer.get("numNodes") or 0), sum(chips_of({"resources": trainer.get("resourcesPerNode")}).values())


def _patched(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """What users' entries of runtimePatches say of the pods that train, with JSON pointers."""
    for place, patch in enumerate(body["spec"].get("runtimePatches") or ()):
        jobs = _under(patch, "trainingRuntimeSpec", "template", "spec").get("replicatedJobs")
        for index, job in enumerate(jobs if isinstance(jobs, list) else ()):
            if _under(job).get("name") == _CONTAINER and patch.get("manager") not in _NOBODYS:
                role = f"{_PATCHES}/{place}/trainingRuntimeSpec/template/spec/replicatedJobs/{index}"
                yield f"{role}/template/spec/template/spec", _under(job, "template", "spec", "template", "spec")


def _under(value: Any, *fields: str) -> dict[str, Any]:
    """The object in these fields; empty where there is none."""
    for field in fields:
        value = value.get(field) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _trained(role: str, template: Mapping[str, Any], workload: TrainJobWorkload) -> PodSet:
    return PodSet(role, template, _CONTAINER, workload.replicas, workload.chips_per_replica)


def _templates(
    owner: Owner, workload: _Known, ref: Revision, pool: Pool, injection: Injection | None
) -> dict[str, dict[str, Any]]:
    """The pod templates of a Revision by role, with the label by which pods are told from others'."""
    pod_sets = TRAIN_JOB.pod_sets(workload)
    child = child_name(owner.name, ref.revision)
    role = scaled_of(pod_sets).name
    names = [f"{child}-{role}-0-{pod}" for pod in range(ref.placement.replicas)]
    check_names(owner.name, child, *names)
    templates = pod_templates(owner, pod_sets, ref, pool, injection, Hosts(child, names), _INDEX)
    for template in templates.values():
        template["metadata"]["labels"][LABEL_OWNER] = _member_of(owner, ref)
    return templates


def _member_of(owner: Owner, ref: Revision) -> str:
    return f"{owner.uid}.r{ref.revision}"


def _program(workload: TrainJobWorkload) -> dict[str, Any]:
    """What the TrainJob says of the container with the program."""
    trainer = mapping_in(normalised(workload.template), "trainer", "template")
    named = {"env": "env", "resources": "resourcesPerNode", **{field: field for field in _PROGRAM}}
    return {field: trainer[source] for field, source in named.items() if source in trainer}


def _with_program(template: dict[str, Any], workload: TrainJobWorkload) -> dict[str, Any]:
    """The template of a runtime with what the TrainJob says, as Trainer merges them."""
    program = _program(workload)
    for container in containers_of(template):
        if container["name"] != _CONTAINER:
            continue
        container |= {field: program[field] for field in _PROGRAM if field in program}
        own = objects_in(program, "env", "template.trainer")
        names = {variable["name"] for variable in own}
        theirs = objects_in(container, "env", f"container {_CONTAINER}")
        container["env"] = [variable for variable in theirs if variable["name"] not in names] + own
        resources = mapping_in(container, "resources", f"container {_CONTAINER}")
        for kind, amounts in mapping_in(program, "resources", "template.trainer").items():
            mapping_in(resources, kind, f"container {_CONTAINER}.resources").update(amounts)
    return template


def _roles(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The steps of a runtime. Raises InvalidTemplate where none of them trains."""
    inner = mapping_in(mapping_in(spec, "template", "runtime.spec"), "spec", "runtime.spec.template")
    roles = objects_in(inner, "replicatedJobs", "runtime.spec.template.spec")
    if not any(map(_trains, roles)):
        raise InvalidTemplate(f"template.runtimeRef: no step of the runtime has the label {_STEP}: trainer")
    return roles


def _trains(role: Mapping[str, Any]) -> bool:
    metadata = (role.get("template") or {}).get("metadata") or {}
    return (metadata.get("labels") or {}).get(_STEP) == "trainer"


def _job(role: dict[str, Any]) -> dict[str, Any]:
    path = f"runtime.spec.template.spec.replicatedJobs[{role['name']}]"
    return mapping_in(mapping_in(role, "template", path), "spec", f"{path}.template")


def _template(role: dict[str, Any]) -> dict[str, Any]:
    return mapping_in(_job(role), "template", f"runtime.spec.template.spec.replicatedJobs[{role['name']}]")
