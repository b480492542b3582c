"""What new pods of an adopted object get: the profiler, and variables that say its size.

The object's own template stays as its user wrote it, so that the API server adds to a pod when it is made. What it adds
is in a PodTemplate, by which the chart's admission policy goes: the same containers, volumes and variables that a
template gets which the operator builds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.placement import Placement
from rightpool.contract import FIELD_MANAGER
from rightpool.workloads.injection import Injection, inject
from rightpool.workloads.names import LABEL_MANAGED_BY, selector_labels
from rightpool.workloads.owner import Owner
from rightpool.workloads.pod_set import PodSet
from rightpool.workloads.rendezvous import resized_env
from rightpool.workloads.template import chip_container_of, init_containers_of, normalised, pod_spec

ANNOTATION_PODS: Final = "rightpool.dev/pods"  # of a PodTemplate: the labels of the pods that get what it holds


def pod_additions(
    owner: Owner, pods: str, pod_set: PodSet, revision: int, at: Placement, before: Placement, injection: Injection
) -> dict[str, Any] | None:
    """The manifest of the PodTemplate; None where the template leaves no room for a profiler.

    pods: the labels of the pods that are meant, as LABEL=VALUE,LABEL=VALUE. at: the size that they have; before: the
    one that the template was written for. Raises InvalidTemplate.
    """
    template = normalised(pod_set.template)
    container = chip_container_of(template, pod_set.chip_container)
    after = inject(template, pod_set.chip_container, injection, at.chips_per_replica)
    if after == template:
        return None
    name = container["name"]
    grown = next(one for one in after["spec"]["containers"] if one["name"] == name)
    given = {
        "name": name,
        "image": injection.image,  # a PodTemplate needs one; the pod keeps its own
        "env": [*_new(container, grown, "env"), *resized_env(container, before, at)],
        "volumeMounts": _new(container, grown, "volumeMounts"),
    }
    ours = init_containers_of(after)[: len(init_containers_of(after)) - len(init_containers_of(template))]
    spec = {
        "initContainers": ours,
        "containers": [given],
        "volumes": _new(pod_spec(template), pod_spec(after), "volumes"),
    }
    return {
        "metadata": {
            "name": owner.name,
            "namespace": owner.namespace,
            "labels": {**selector_labels(owner.name, revision), LABEL_MANAGED_BY: FIELD_MANAGER},
            "annotations": {ANNOTATION_PODS: pods},
            "ownerReferences": [owner.reference],
        },
        "template": {"metadata": {"labels": selector_labels(owner.name, revision)}, "spec": spec},
    }


def _new(before: Mapping[str, Any], after: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """The entries of a list that were not there."""
    known = before.get(field) or ()
    return [entry for entry in after.get(field) or () if entry not in known]
