"""An accelerator: what one chip can do, from data sheets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Vendor(StrEnum):
    """Who makes the chip; a pod template runs on one vendor's chips unless its user says otherwise."""

    NVIDIA = "NVIDIA"
    GOOGLE = "Google"
    CPU = "CPU"  # development only: a CPU core that plays a chip


class LinkKind(StrEnum):
    """What carries bytes between chips."""

    NVLINK = "NVLink"
    PCIE = "PCIe"
    ICI = "ICI"
    ETHERNET = "Ethernet"
    INFINIBAND = "InfiniBand"
    LOOPBACK = "Loopback"


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chip.

    bytes_per_second: effective all-reduce bus bandwidth per chip, one direction. Below the data sheet's figure: what
    collectives reach, not what the wire could.
    """

    kind: LinkKind
    bytes_per_second: float


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for one chip-hour; None where unknown (unknown is never free)."""

    on_demand: float | None = None
    spot: float | None = None


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One row of the catalog.

    peak_flops: FLOP/s by dtype (fp32, tf32, bf16, fp16, fp8, int8), dense.
    memory_bytes: of one chip. memory_bandwidth: bytes/s. power_watts: board limit; None where the vendor does not say.
    arch: micro-architecture, the unit in which software stacks behave alike (volta, ampere-ga100, tpu-v5e, …).
    list_price: the public list price, used only where a pool names none.
    provenance: field → where the number is from and when it was read; `verified` is False where a second source is due.
    """

    key: str
    vendor: Vendor
    arch: str
    peak_flops: Mapping[str, float]
    memory_bytes: int
    memory_bandwidth: float
    power_watts: float | None
    intra_link: Link
    inter_link: Link
    list_price: Price
    verified: bool
    provenance: Mapping[str, str] = field(default_factory=dict)
