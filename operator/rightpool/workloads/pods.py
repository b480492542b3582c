"""The pods of a Revision: the user's templates with the placement's changes, common to all kinds of children."""

from collections.abc import Collection, Iterable
from typing import Any, Final

from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.contract import FIELD_MANAGER, LABEL_ROLE
from rightpool.hardware.pool import Pool
from rightpool.workloads.capacity import require_capacity, spot_tolerations
from rightpool.workloads.injection import Injection, inject
from rightpool.workloads.names import LABEL_MANAGED_BY, labels
from rightpool.workloads.owner import Owner
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.rendezvous import Hosts, rendezvous_env, slice_env
from rightpool.workloads.resources import add_chips, refuse_chips
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

# Tells autoscalers not to evict these pods: only the planner empties a partly used node, by a migration with a
# checkpoint.
_KEEP_RUNNING: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


def pod_templates(
    owner: Owner,
    pod_sets: Iterable[PodSet],
    ref: Revision,
    pool: Pool,
    injection: Injection | None,
    hosts: Hosts | None,
    index: str | None,
) -> dict[str, dict[str, Any]]:
    """The pod templates of a Revision by the name of their set, copies of the user's.

    All pods get labels and the Service's host names. Those of the scaled set get the pool's node selector and
    tolerations, chips, the variables by which they find each other, where `index` is the path of the field that
    numbers them, if there is one, and the profiler, unless `injection` is None. No others may ask for chips. hosts:
    None where pods need not find each other.
    """
    templates = {}
    for pod_set in pod_sets:
        try:
            template = _common(owner, pod_set, ref, pool, hosts)
            templates[pod_set.name] = (
                _scaled(template, pod_set, owner, ref, pool, injection, hosts, index) if pod_set.scaled else template
            )
        except InvalidTemplate as error:
            raise error if pod_set.scaled else InvalidTemplate(f"{pod_set.name}: {error.message}") from None
    return templates


def _common(owner: Owner, pod_set: PodSet, ref: Revision, pool: Pool, hosts: Hosts | None) -> dict[str, Any]:
    template = normalised(pod_set.template)
    refuse_chips(template, pool.resource_name)
    metadata = mapping_in(template, "metadata", "template")
    pod_labels = mapping_in(metadata, "labels", "template.metadata")
    pod_labels.setdefault(LABEL_MANAGED_BY, FIELD_MANAGER)
    pod_labels.update(labels(owner.name, ref.revision, ref.placement.pool))
    pod_labels[LABEL_ROLE] = pod_set.name
    annotations = mapping_in(metadata, "annotations", "template.metadata")
    for key, value in _KEEP_RUNNING.items():
        annotations.setdefault(key, value)
    for each in (*containers_of(template), *init_containers_of(template)):
        # The kubelet then keeps the end of the log of a container that failed, where the status can show it.
        each.setdefault("terminationMessagePolicy", "FallbackToLogsOnError")
    if hosts is not None and pod_spec(template).setdefault("subdomain", hosts.service) != hosts.service:
        raise InvalidTemplate(
            "template.spec.subdomain must not be set, since pods find each other under their own Service: remove it"
        )
    return template


def _scaled(
    template: dict[str, Any],
    pod_set: PodSet,
    owner: Owner,
    ref: Revision,
    pool: Pool,
    injection: Injection | None,
    hosts: Hosts | None,
    index: str | None,
) -> dict[str, Any]:
    """What pods with chips have beside what all have."""
    placement = ref.placement
    container = chip_container_of(template, pod_set.chip_container)
    place_pods(template, pool, placement)
    add_chips(container, pool.resource_name, placement.chips_per_replica)
    if hosts is not None:
        _find_each_other(template, container, owner, placement, pool, hosts, index)
    if injection is None:
        return template
    return inject(template, pod_set.chip_container, injection, placement.chips_per_replica)


def _find_each_other(
    template: dict[str, Any],
    container: dict[str, Any],
    owner: Owner,
    placement: Placement,
    pool: Pool,
    hosts: Hosts,
    index: str | None,
) -> None:
    # The resolver adds the cluster's domain, which need not be cluster.local.
    domain = f"{pod_spec(template)['subdomain']}.{owner.namespace}.svc"
    named = [f"{host}.{domain}" for host in hosts.pods]
    units = hosts.units and hosts.units._replace(pods=[f"{host}.{domain}" for host in hosts.units.pods])
    slices = slice_env(placement, pool, named, index, units)
    _without_env(container, {variable["name"] for variable in slices})
    set_default_env(container, [*rendezvous_env(placement, named, index), *slices])


def _without_env(container: dict[str, Any], names: Collection[str]) -> None:
    env = objects_in(container, "env", f"container {container['name']}")
    env[:] = [variable for variable in env if variable["name"] not in names]


def place_pods(template: dict[str, Any], pool: Pool, placement: Placement, *, affinity: bool = True) -> None:
    """Restrict the pods to the pool's nodes and the placement's capacity type. affinity: whether they may have one;
    else the pool's selector alone tells them."""
    spec = pod_spec(template)
    if affinity:
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
