"""Clouds and node provisioners: what their node labels and taints say, whoever made the chips."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from rightpool.api.value_object import value_object

# Every cloud.
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
REGION: Final = "topology.kubernetes.io/region"

GKE_NODEPOOL: Final = "cloud.google.com/gke-nodepool"

# Labels that tell one type of host from another, the most exact first.
HOST_LABELS: Final = (INSTANCE_TYPE, "cloud.google.com/machine-family")


class Purchase(StrEnum):
    """How a node is bought, as far as its price depends on it."""

    ON_DEMAND = "OnDemand"
    SPOT = "Spot"
    RESERVED = "Reserved"


# Parts of the world within which a cloud's prices hardly differ, by what the names of their regions begin with or have.
_REGIONS: Final = (
    ("North America", re.compile(r"(us|ca|mx|northamerica)-|.*(us[0-9]?|canada.*|mexico.*)$")),
    ("South America", re.compile(r"(sa|southamerica)-|(brazil|chile)")),
    ("Europe", re.compile(r"(eu|europe)-|.*europe$|(uk|france|germany|norway|sweden|switzerland|italy|poland|spain)")),
    ("Asia and Pacific", re.compile(r"(ap|asia|australia)-|.*(asia|india)$|(japan|korea|australia)")),
    ("Middle East", re.compile(r"(me|il)-|(uae|qatar|israel)")),
    ("Africa", re.compile(r"(af|africa)-|southafrica")),
)


@value_object
class Cloud:
    """A managed Kubernetes or a provisioner, as far as its nodes differ from others."""

    name: str
    """What its users call it."""

    spot_label: str
    """Label that tells spot nodes."""

    spot_value: str
    """Value of `spot_label` on spot nodes."""

    reserved_value: str = ""
    """Value of `spot_label` on nodes of a reservation; empty where it does not tell."""

    spot_taint: bool = False
    """Spot nodes carry `spot_label` with `spot_value` as a taint too."""

    group_label: str | None = None
    """Label with the name of the group of nodes that are made alike."""

    instance_prefix: str = ""
    """What instance types on nodes begin with, and in price lists do not."""

    removal_taints: tuple[str, ...] = ()
    """Keys of taints on a node that is about to be removed, set before its pods are evicted."""


# The first group label of a node in this order names its pool.
CLOUDS: Final = (
    Cloud(
        "GKE",
        "cloud.google.com/gke-spot",
        "true",
        spot_taint=True,
        group_label=GKE_NODEPOOL,
        removal_taints=("cloud.google.com/impending-node-termination",),
    ),
    Cloud(
        "Karpenter",
        "karpenter.sh/capacity-type",
        "spot",
        reserved_value="reserved",
        group_label="karpenter.sh/nodepool",
        removal_taints=("karpenter.sh/disrupted",),
    ),
    Cloud(
        "EKS",
        "eks.amazonaws.com/capacityType",
        "SPOT",
        reserved_value="CAPACITY_BLOCK",
        group_label="eks.amazonaws.com/nodegroup",
        removal_taints=(
            "aws-node-termination-handler/spot-itn",
            "aws-node-termination-handler/scheduled-maintenance",
            "aws-node-termination-handler/asg-lifecycle-termination",
        ),
    ),
    Cloud(
        "AKS",
        "kubernetes.azure.com/scalesetpriority",
        "spot",
        spot_taint=True,
        instance_prefix="Standard_",
        removal_taints=("kubernetes.azure.com/scalesetpriority-eviction",),
    ),
)

SPOT_LABELS: Final[Mapping[str, str]] = {cloud.spot_label: cloud.spot_value for cloud in CLOUDS}
"""Labels that tell how a node is bought, with the value on spot nodes. On GKE only spot nodes carry one."""

SPOT_TAINTS: Final[Mapping[str, str]] = {cloud.spot_label: cloud.spot_value for cloud in CLOUDS if cloud.spot_taint}
"""Keys and values of the taints of spot nodes. Their effect is NoSchedule."""

REMOVAL_TAINTS: Final = frozenset(
    {"ToBeDeletedByClusterAutoscaler", *(key for cloud in CLOUDS for key in cloud.removal_taints)}
)
"""Keys of taints that say of a node that it is about to be removed. Pods that tolerate them are evicted too."""

GROUP_LABELS: Final = tuple(cloud.group_label for cloud in CLOUDS if cloud.group_label is not None)

# Beginnings of taints that come and go with a node's state: they do not say who may use it.
LIFECYCLE_TAINTS: Final = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "node.cilium.io/",
    "karpenter.sh/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)


def is_spot(labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels, or one that they select, is spot capacity."""
    return any(labels.get(label) == value for label, value in SPOT_LABELS.items())


def purchase_of(labels: Mapping[str, str]) -> Purchase:
    """How a node with these labels, or one that they select, is bought."""
    if is_spot(labels):
        return Purchase.SPOT
    reserved = any(cloud.reserved_value and labels.get(cloud.spot_label) == cloud.reserved_value for cloud in CLOUDS)
    return Purchase.RESERVED if reserved else Purchase.ON_DEMAND


def region_class(region: str) -> str | None:
    """The part of the world that a cloud's region is in; None where its name does not tell."""
    return next((name for name, pattern in _REGIONS if pattern.match(region)), None)


def listed_name(instance: str) -> str:
    """An instance type of a node as price lists spell it."""
    for cloud in CLOUDS:
        instance = instance.removeprefix(cloud.instance_prefix)
    return instance
