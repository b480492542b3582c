"""An accelerator: what one chip can do, from data sheets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rightpool.api.pool import LinkKind
from rightpool.hardware.vendors.vendor import Vendor


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chip."""

    kind: LinkKind
    """What carries the bytes."""

    bytes_per_second: float
    """Effective all-reduce bus bandwidth per chip, one direction. Less than the data sheet says."""


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for one chip-hour; None where unknown (unknown is never free)."""

    on_demand: float | None = None
    spot: float | None = None
    interruptions: float | None = None
    """How often a day spot capacity is taken away; None where the pool does not say it."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What chips of a pool were measured to do."""

    at: float
    """When, Unix seconds."""

    flops: Mapping[str, float]
    """FLOP/s of products of large matrices, by dtype; those that were measured."""

    memory_bandwidth: float | None
    """Bytes a second of a copy, read and written; None where it was not measured."""

    message: str
    """The same in a sentence."""


@dataclass(frozen=True, slots=True)
class ChipPart:
    """What a chip is of a larger one that was divided."""

    whole: str
    """Key of the chip that was divided."""

    share: float
    """Of its price: slices of the chip over those that there are."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One row of the catalog, or what a pool declares in its place; with what was measured in the pool."""

    key: str
    """Name in the catalog and in spec.accelerator of a pool."""

    vendor: Vendor
    """Who makes it."""

    arch: str
    """Micro-architecture, the unit in which software stacks behave alike (volta, ampere-ga100, tpu-v5e, …)."""

    peak_flops: Mapping[str, float]
    """FLOP/s by dtype (fp32, tf32, bf16, fp16, fp8, int8), dense."""

    memory_bytes: int
    """Memory of one chip."""

    memory_bandwidth: float
    """Bytes a second."""

    power_watts: float | None
    """Board limit; None where the vendor publishes none."""

    intra_link: Link
    """Between chips of one node."""

    inter_link: Link
    """Between nodes."""

    list_price: Price
    """The public list price, used only where a pool names none."""

    verified: bool
    """Whether a second source confirms the figures."""

    declared: bool = False
    """Whether the figures are a pool's own, because the catalog has none."""

    provenance: Mapping[str, str] = field(default_factory=dict)
    """For each field, where the number is from and when it was read."""

    cache_bytes: int | None = None
    """Last-level cache; None where not known."""

    part: ChipPart | None = None
    """Set for a MIG slice. Programs can't communicate between slices, so a job has one of them."""

    measured: Measured | None = None
    """Where the rates are from a calibration of the pool. They are as a data sheet would say them: calibration.py."""
