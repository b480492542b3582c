"""The Job of a Revision: one Indexed batch/v1 Job for each placement of a ProfiledJob."""

from collections.abc import Mapping
from typing import Any, Final, Protocol

from rightpool.contract import FIELD_MANAGER
from rightpool.hardware.placement import Placement
from rightpool.hardware.pool import Pool
from rightpool.planning.revision import RevisionRef
from rightpool.workloads.capacity import require_capacity, spot_tolerations
from rightpool.workloads.injection import Injection, inject
from rightpool.workloads.names import (
    LABEL_MANAGED_BY,
    LABEL_QUEUE,
    check_names,
    child_name,
    labels,
    object_labels,
    service_name,
)
from rightpool.workloads.owner import Owner
from rightpool.workloads.rendezvous import rendezvous_env
from rightpool.workloads.resources import add_chips
from rightpool.workloads.template import (
    InvalidTemplate,
    chip_container_of,
    mapping_in,
    normalised,
    objects_in,
    pod_spec,
    set_default_env,
)

# Asks autoscalers to leave the nodes of these pods alone: emptying a half-used node is the planner's business, by a
# migration with a checkpoint, and not a stop without one.
_KEEP_RUNNING: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}

# Kubernetes' own default of 6 counts pods. Here a crash takes all pods of the gang down with it, so that 6 restarts of
# the program are 6 failures for each pod.
_RESTARTS: Final = 6


class Template(Protocol):
    """What the user writes of a workload, as far as it shapes pods. Chips and replicas are the placement's."""

    @property
    def template(self) -> Mapping[str, Any]: ...

    @property
    def chip_container(self) -> str | None: ...


def build_job(
    owner: Owner,
    workload: Template,
    queue_name: str | None,
    ref: RevisionRef,
    pool: Pool,
    injection: Injection | None,
    suspend: bool = False,
) -> dict[str, Any]:
    """A Revision's Job, to be created by server-side apply. injection: None where the user wants no profiler.

    For creation alone: a Job's template can't be changed afterwards, and a later version of the operator may build
    another one. On a Job that exists, only `suspend_wanted` is carried out.
    """
    placement = ref.placement
    check_names(owner.name, ref.revision, placement.replicas)
    template = _pod_template(owner, workload, ref, pool)
    if injection is not None:
        template = inject(template, workload.chip_container, injection, placement.chips_per_replica).template
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": placement.replicas,
        "parallelism": placement.replicas,
        "backoffLimit": _RESTARTS * placement.replicas,
        # The next pod of an index starts when the last one has ended: one writer to the checkpoint.
        "podReplacementPolicy": "Failed",
        # Kueue admits a Job by resuming it.
        "suspend": suspend or queue_name is not None,
        "template": template,
    }
    if pod_spec(template)["restartPolicy"] == "Never":
        # A drained or reclaimed node is no fault of the program's. Kubernetes allows this with Never alone.
        spec["podFailurePolicy"] = {
            "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
        }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": child_name(owner.name, ref.revision),
            "namespace": owner.namespace,
            "labels": _job_labels(template, owner, ref, queue_name),
            "ownerReferences": [owner.reference],
        },
        "spec": spec,
    }


def suspend_wanted(suspend: bool, queue_name: str | None) -> bool | None:
    """What `spec.suspend` of a Job that exists should be; None where that is Kueue's to say."""
    if suspend:
        return True
    return False if queue_name is None else None


def _job_labels(template: dict[str, Any], owner: Owner, ref: RevisionRef, queue_name: str | None) -> dict[str, str]:
    """The user's labels are on the Job as well as on its pods, since Kueue reads its priority class there. The queue is
    spec.queueName's alone: a Job that Kueue suspends and the operator resumes would never come to rest."""
    merged = dict(template["metadata"]["labels"])
    merged.pop(LABEL_QUEUE, None)
    merged.update(object_labels(owner.name, ref.revision, ref.placement.pool))
    if queue_name is not None:
        merged[LABEL_QUEUE] = queue_name
    return merged


def _pod_template(owner: Owner, workload: Template, ref: RevisionRef, pool: Pool) -> dict[str, Any]:
    """The user's template with all that the placement adds to it."""
    placement = ref.placement
    child = child_name(owner.name, ref.revision)
    template = normalised(workload.template)
    container = chip_container_of(template, workload.chip_container)
    spec = pod_spec(template)

    metadata = mapping_in(template, "metadata", "template")
    pod_labels = mapping_in(metadata, "labels", "template.metadata")
    pod_labels.setdefault(LABEL_MANAGED_BY, FIELD_MANAGER)
    pod_labels.update(labels(owner.name, ref.revision, placement.pool))
    annotations = mapping_in(metadata, "annotations", "template.metadata")
    for key, value in _KEEP_RUNNING.items():
        annotations.setdefault(key, value)

    spec.setdefault("restartPolicy", "Never")
    subdomain = spec.setdefault("subdomain", service_name(child))
    _place(template, pool, placement)
    add_chips(template, container, pool.resource_name, placement.chips_per_replica)
    variables = rendezvous_env(placement, pool, child=child, subdomain=subdomain, namespace=owner.namespace)
    set_default_env(container, variables)
    return template


def _place(template: dict[str, Any], pool: Pool, placement: Placement) -> None:
    """Onto the pool's nodes, and onto the kind of capacity that was decided on."""
    spec = pod_spec(template)
    require_capacity(template, pool, placement.capacity)
    selector = mapping_in(spec, "nodeSelector", "template.spec")
    for key, value in pool.node_selector.items():
        if selector.setdefault(key, value) != value:
            raise InvalidTemplate(
                f"template.spec.nodeSelector asks for {key}={selector[key]}, and nodes of pool {pool.name} have "
                f"{key}={value}: remove it, and choose pools with spec.placement.pools"
            )
    tolerations = objects_in(spec, "tolerations", "template.spec", name="")
    added = [dict(toleration) for toleration in pool.tolerations]
    if "/" in pool.resource_name:
        # Nodes with chips are tainted with the resource's name, so that other pods stay away.
        added.append({"key": pool.resource_name, "operator": "Exists", "effect": "NoSchedule"})
    added += spot_tolerations(placement.capacity)
    for toleration in added:
        if toleration not in tolerations:
            tolerations.append(toleration)
