"""An accelerator: what one chip can do, from data sheets."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from rightpool.api.placement import CapacityType, Placement
from rightpool.api.pool import LinkKind
from rightpool.api.value_object import value_object
from rightpool.hardware.vendors.vendor import Vendor


@value_object
class Link:
    """One link of a chip."""

    kind: LinkKind
    """What carries the bytes."""

    bytes_per_second: float
    """Effective all-reduce bus bandwidth per chip, one direction. Less than the data sheet says."""


class Figures(StrEnum):
    """How sure it is what a chip can do."""

    VERIFIED = "verified"  # two sources have the same figures
    UNVERIFIED = "unverified"  # one source has them
    DECLARED = "declared"  # a user has named them, in a pool or in the chart's values
    ESTIMATED = "estimated"  # some are guessed from the chip's memory and price
    MEASURED = "measured"  # by a calibration of the pool


class FigureSource(StrEnum):
    """Who says what a chip can do, or costs."""

    POOL = "pool"  # spec.chip or spec.price of a pool
    VALUES = "values"  # the chart's values
    CATALOG = "catalog"  # the catalog that ships; of a price its list prices


@value_object
class Declaration:
    """Where a user has named figures of a chip."""

    source: FigureSource
    """In a pool or in the chart's values."""

    where: str
    """The field with its object, such as spec.chip of AcceleratorPool a100."""


@value_object
class Price:
    """Dollars for one chip-hour; None where unknown (unknown is never free)."""

    on_demand: float | None = None
    """Of capacity that is kept until it is given back."""
    spot: float | None = None
    """Of capacity that may be taken away."""
    interruptions: float | None = None
    """How often a day spot capacity is taken away; None where the pool does not say it."""

    source: FigureSource | None = None
    """Who says so; None where nobody does."""

    def of(self, capacity: CapacityType) -> float | None:
        """That of a chip of this capacity type."""
        return self.spot if capacity is CapacityType.SPOT else self.on_demand

    def hourly(self, placement: Placement) -> float | None:
        """Dollars an hour of a placement in the pool."""
        per_chip = self.of(placement.capacity)
        return None if per_chip is None else per_chip * placement.chips


@value_object
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


@value_object
class ChipPart:
    """What a chip is of a larger one that was divided."""

    whole: str
    """Key of the chip that was divided."""

    share: float
    """Of its price: slices of the chip over those that there are."""


@value_object
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

    declared: Declaration | None = None
    """Where a user has named figures; None where all are the catalog's."""

    doubts: Mapping[str, float] = field(default_factory=dict)
    """Figures that were estimated, with the standard deviation of their logarithm."""

    provenance: Mapping[str, str] = field(default_factory=dict)
    """For each field, where the number is from and when it was read."""

    cache_bytes: int | None = None
    """Last-level cache; None where not known."""

    part: ChipPart | None = None
    """Set for a MIG slice. Programs can't communicate between slices, so a job has one of them."""

    measured: Measured | None = None
    """Where the rates are from a calibration of the pool. They are as a data sheet would say them: calibration.py."""

    @property
    def published_flops(self) -> Mapping[str, float]:
        """peak_flops, as far as somebody has published them: an estimate contradicts nothing."""
        return {} if "peak_flops" in self.doubts else self.peak_flops

    @property
    def published_bandwidth(self) -> float | None:
        """memory_bandwidth; None where it is an estimate."""
        return None if "memory_bandwidth" in self.doubts else self.memory_bandwidth

    @property
    def figures(self) -> Figures:
        """How sure all of it is: as sure as the least sure figure of those that predictions need."""
        if self.doubts:
            return Figures.ESTIMATED
        if self.measured is not None:
            return Figures.MEASURED
        if self.declared is not None:
            return Figures.DECLARED
        return Figures.VERIFIED if self.verified else Figures.UNVERIFIED
