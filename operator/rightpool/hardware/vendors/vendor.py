"""What a module of this package says about a vendor. Everything is data: who asks needs no case for each vendor."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from rightpool.api.value_object import value_object
from rightpool.hardware.clouds import GKE_NODEPOOL

PART: Final = "-MIG-"
"""Between the name of a chip and the profile of its parts: A30-24GB-MIG-1g.6gb."""


@value_object
class ProductLabel:
    """A node label that names the chip. The values are rows of labels.csv."""

    label: str
    """Key of the label."""

    memory: str | None = None
    """Label with the memory of one chip in MiB, where the product name alone is ambiguous."""

    count: str | None = None
    """Label with the number of chips of the node."""

    replicas: str | None = None
    """Label with the number of pods that share one chip, where chips can be shared."""

    divided: re.Pattern[str] | None = None
    """What a product name contains when the node offers parts of chips. Without it the name is the chip's."""

    partition: str | None = None
    """Label with the profile of the parts that the node offers, where the product name does not say it."""

    def product(self, labels: Mapping[str, str]) -> str | None:
        """The product that a node with these labels has; None where it lacks the label."""
        value = labels.get(self.label)
        return value if value is None or self.divided is None else self.divided.sub("", value)

    @property
    def names_parts(self) -> bool:
        """Whether these labels can say that the node offers parts of chips."""
        return self.divided is not None or self.partition is not None

    def selector(self, labels: Mapping[str, str]) -> dict[str, str]:
        """Those of the labels that say what the node offers."""
        return {label: labels[label] for label in (self.label, self.partition) if label is not None and label in labels}

    def offered(self, labels: Mapping[str, str]) -> str | None:
        """The product, with the profile of its parts where the node offers those: NVIDIA-A30-MIG-1g.6gb."""
        value, profile = labels.get(self.label), labels.get(self.partition or "")
        return value if value is None or profile is None else f"{value}{PART}{profile}"

    def division(self, labels: Mapping[str, str], *, into_slices: bool = True) -> str | None:
        """The label, as key=value, that says that the node offers parts of chips; None where it offers whole ones.

        into_slices: whether a product name of a part counts, too, and not only pods that share one.
        """
        shared_by = integer(labels, self.replicas) or 1
        if shared_by > 1:
            return f"{self.replicas}={shared_by}"
        value = labels.get(self.label, "")
        if into_slices and self.divided is not None and self.divided.search(value):
            return f"{self.label}={value}"
        if into_slices and self.partition is not None and self.partition in labels:
            return f"{self.partition}={labels[self.partition]}"
        return None


@value_object
class SliceVariables:
    """Environment variables by which the hosts of one slice, and several slices, find each other."""

    host_index: str
    """Number of the pod's host in the slice."""

    host_names: str
    """Host names of all pods of the slice, separated by commas."""

    slices: str
    """How many slices the program runs on."""

    slice_index: str
    """Number of the pod's slice."""

    coordinator: str
    """Host name of a pod of the first slice."""


@value_object
class DeviceSource:
    """How a driver of Dynamic Resource Allocation lists the vendor's chips in ResourceSlices."""

    driver: str
    """Name of the driver."""

    kind: str
    """Attribute that tells whole chips from parts of them."""

    chip: str
    """Its value for a whole chip."""


@value_object
class Benchmark:
    """How `rightpool calibrate` measures the vendor's chips."""

    platform: str
    """What PyTorch or JAX must find: gpu, tpu or cpu."""

    image: str | None
    """A public image with one of them. None: the user names one."""


@value_object
class Vendor:
    """Who makes the chip. A pod template runs on one vendor's chips unless its user says otherwise.

    Two vendors are equal when their names are.
    """

    name: str
    """As in the column `vendor` of accelerators.csv, and in messages."""

    resource_name: str = field(compare=False)
    """Extended resource that nodes offer and pods request."""

    product_labels: tuple[ProductLabel, ...] = field(default=(), compare=False)
    """Labels that name the chip, the most reliable first. Without any, pools of the vendor have to be declared."""

    family_words: int = field(default=1, compare=False)
    """Words of a catalog key that name the family, for short pool names: 1 for the A100 of A100-SXM4-80GB."""

    topology_label: str | None = field(default=None, compare=False)
    """Label with the shape of the slice that the node belongs to. None: nodes are given out one by one."""

    slice_label: str = field(default=GKE_NODEPOOL, compare=False)
    """Label whose value the hosts of one slice have in common. On GKE a slice of several hosts is a node pool."""

    priced_by_chip: bool = field(default=False, compare=False)
    """Price lists name a price for each chip, whatever the machine type."""

    slice_variables: SliceVariables | None = field(default=None, compare=False)
    """What the vendor's runtime reads on several hosts, where it needs anything."""

    devices: DeviceSource | None = field(default=None, compare=False)
    """Where nodes may offer its chips as devices. None: they offer the extended resource alone."""

    benchmark: Benchmark | None = field(default=None, compare=False)
    """How its chips are measured. None: they cannot be."""

    made_up: bool = field(default=False, compare=False)
    """The catalog's figures are of no real chip, so nothing that is measured contradicts them."""

    def __str__(self) -> str:
        return self.name

    @property
    def discoverable(self) -> bool:
        """Whether node labels can tell the vendor's chips."""
        return bool(self.product_labels)

    @property
    def count_labels(self) -> tuple[str, ...]:
        """Labels with the number of chips of a node."""
        return tuple(source.count for source in self.product_labels if source.count is not None)


def integer(labels: Mapping[str, str], label: str | None) -> int | None:
    """The value of a label that holds a whole number; None where it is absent or holds something else."""
    value = labels.get(label, "") if label is not None else ""
    return int(value) if value.isascii() and value.isdigit() else None
