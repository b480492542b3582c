"""What a platform team declares, or discovery finds: an AcceleratorPool."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from rightpool.api.conditions import Condition
from rightpool.api.labels import Labels
from rightpool.api.model import ApiModel
from rightpool.api.quantities import Money, Rate


class LinkKind(StrEnum):
    """What connects chips."""

    NVLINK = "NVLink"
    PCIE = "PCIe"
    ICI = "ICI"
    INFINITY_FABRIC = "InfinityFabric"
    NEURON_LINK = "NeuronLink"
    INFINIBAND = "InfiniBand"
    EFA = "EFA"
    ETHERNET = "Ethernet"


class LinkSpec(ApiModel):
    """A link between chips."""

    kind: LinkKind
    """What connects them."""

    gigabytes_per_second: Rate | None = None
    """Bandwidth of one chip's share in one direction, GB/s. Default: what the catalog says about this kind."""


class Interconnect(ApiModel):
    """How the chips of the pool reach each other."""

    intra_node: LinkSpec | None = None
    """Between chips of one node."""

    inter_node: LinkSpec | None = None
    """Between nodes."""


class Slice(ApiModel):
    """TPU pools are given out in whole slices."""

    topology: str = Field(max_length=16)
    """Shape, such as 2x4 or 4x4x8."""

    chips: int = Field(ge=1, le=65536)
    """Chips of one slice: the product of the topology."""


class PriceSpec(ApiModel):
    """What a chip costs."""

    per_chip_hour: Money | None = None
    """Dollars an hour for one chip on demand. Default: the catalog's list price."""

    spot_per_chip_hour: Money | None = None
    """Dollars an hour for one chip of spot capacity."""


class AcceleratorPoolSpec(ApiModel):
    """Interchangeable nodes with the same chips, links and price."""

    accelerator: str = Field(min_length=1, max_length=63)
    """Key of the catalog, such as A10G-24GB."""

    chips_per_node: int = Field(ge=1, le=256)
    """Chips of one node."""

    resource_name: str = Field(min_length=1, max_length=253)
    """Extended resource that pods request, such as nvidia.com/gpu."""

    node_selector: Labels = Field(default_factory=dict)
    """Labels that the pool's nodes carry. Pods of this pool get them as nodeSelector."""

    tolerations: list[dict[str, Any]] = Field(default_factory=list, max_length=16)
    """Tolerations that pods of this pool get."""

    slice: Slice | None = None
    """For TPU pools: the shape of one slice."""

    interconnect: Interconnect | None = None
    """How the chips reach each other. Default: what the catalog says."""

    price: PriceSpec | None = None
    """What a chip costs. Default: the catalog's list price."""

    max_chips: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    """Chips that an autoscaler can bring the pool to. Default: only what is there."""


class ChipTotals(ApiModel):
    """Chips of the pool's nodes."""

    total: int = Field(default=0, ge=0)
    """Chips that nodes offer."""

    allocated: int = Field(default=0, ge=0)
    """Chips that pods request."""

    free: int = Field(default=0, ge=0)
    """Chips that nobody requests."""


class AcceleratorPoolStatus(ApiModel):
    """What is there."""

    observed_generation: int | None = None
    """The metadata.generation that was looked at."""

    nodes: int = Field(default=0, ge=0)
    """Nodes that match."""

    chips: ChipTotals = Field(default_factory=ChipTotals)
    """Chips of these nodes."""

    conditions: list[Condition] = Field(default_factory=list, max_length=8)
    """Ready, PriceKnown."""
