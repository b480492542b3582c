"""The metadata of a Revision's child, common to all kinds, and what controls an object."""

import copy
from collections.abc import Mapping
from typing import Any

from rightpool.api.revision import Revision
from rightpool.contract import LABEL_ROLE
from rightpool.workloads.names import LABEL_QUEUE, check_names, child_name, object_labels
from rightpool.workloads.owner import Owner


def child_metadata(template: dict[str, Any], owner: Owner, ref: Revision, queue_name: str | None) -> dict[str, Any]:
    """The metadata of a child with this pod template. Raises InvalidTemplate if a name would be no DNS label.

    The child has the user's labels too, because Kueue reads its priority class there. Only spec.queueName sets the
    queue: otherwise Kueue would suspend the child and the operator would resume it, without end.
    """
    child = child_name(owner.name, ref.revision)
    check_names(owner.name, child)
    labels = dict(template["metadata"]["labels"])
    labels.pop(LABEL_QUEUE, None)
    labels.pop(LABEL_ROLE, None)
    labels.update(object_labels(owner.name, ref.revision, ref.placement.pool))
    if queue_name is not None:
        labels[LABEL_QUEUE] = queue_name
    return {
        "name": child,
        "namespace": owner.namespace,
        "labels": labels,
        "ownerReferences": [owner.reference],
    }


def controller_reference(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entry of `ownerReferences` that controls the object; empty if nothing does."""
    references = metadata.get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), {})


def as_new(body: Mapping[str, Any]) -> dict[str, Any]:
    """An object without what the API server has added to it."""
    about = body["metadata"]
    kept = {key: about[key] for key in ("name", "namespace", "labels", "annotations") if about.get(key)}
    return copy.deepcopy({"metadata": kept, "spec": body["spec"]})
