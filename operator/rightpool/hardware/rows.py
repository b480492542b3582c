"""The lines of the catalog's data files, validated one by one."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from rightpool.api.pool import LinkKind
from rightpool.hardware.clouds import Purchase
from rightpool.hardware.vendors.registry import VENDORS
from rightpool.hardware.vendors.vendor import Vendor

RECALLED: Final = "recalled"

# Columns of accelerators.csv that become peak_flops: dtype → column.
RATE_COLUMNS: Final = {
    "fp32": "fp32_tflops",
    "tf32": "tf32_tflops",
    "bf16": "bf16_tflops",
    "fp16": "fp16_tflops",
    "fp8": "fp8_tflops",
    "int8": "int8_tops",
}

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Optional = Annotated[Positive | None, BeforeValidator(lambda cell: cell if cell != "" else None)]
Text = Annotated[str, Field(min_length=1)]
OptionalCount = Annotated[int | None, BeforeValidator(lambda cell: cell if cell != "" else None)]
Day = Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]


class CatalogError(ValueError):
    """A data file of the catalog can't be used. The message names the file, the row and the remedy."""


def _registered(cell: object, info: ValidationInfo) -> Vendor:
    vendors: Sequence[Vendor] = info.context or ()
    for vendor in vendors:
        if vendor.name == cell:
            return vendor
    raise ValueError(f"{cell} is not one of {', '.join(vendor.name for vendor in vendors)}")


class CatalogRow(BaseModel):
    """One line of a data file."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class _Sourced(CatalogRow):
    source: Text
    read: Day
    verified: bool

    @model_validator(mode="after")
    def _looked_up(self) -> Self:
        if self.verified and RECALLED in self.source:
            raise ValueError("is recalled and verified at once: verified must be no")
        return self


class AcceleratorRow(_Sourced):
    """One line of accelerators.csv. Rates are in 10¹² operations a second, dense."""

    key: Text
    vendor: Annotated[InstanceOf[Vendor], BeforeValidator(_registered)]
    """By its name in the registry of hardware/vendors."""

    arch: Text
    fp32_tflops: Optional
    tf32_tflops: Optional
    bf16_tflops: Optional
    fp16_tflops: Optional
    fp8_tflops: Optional
    int8_tops: Optional
    memory_gb: Positive
    """10⁹ bytes: the data sheet's decimal figure, which never exceeds what the driver reports."""

    memory_gbps: Positive
    """10⁹ bytes a second."""

    cache_mb: Optional
    """10⁶ bytes of last-level cache."""

    power_watts: Optional
    intra_link: Text
    """Name in links.csv."""

    inter_link: Text
    """Name in links.csv."""

    list_price: str
    """cloud/instance in prices.csv; may be empty."""

    note: str

    @model_validator(mode="after")
    def _computes(self) -> Self:
        if all(getattr(self, column) is None for column in RATE_COLUMNS.values()):
            raise ValueError("names no peak rate: fill in at least one dtype")
        return self


class PartRow(CatalogRow):
    """One line of mig.csv: a part of a chip, by NVIDIA's Multi-Instance GPU."""

    accelerator: Text
    """Key of the chip that is divided."""

    profile: Text
    """Such as 1g.10gb. The slice's key, and its product in node labels, end in -MIG- and this."""

    slices: Positive
    """How many of the chip's compute slices it has."""

    of_slices: Positive
    multiprocessors: Positive
    of_multiprocessors: Positive
    memory_share: Annotated[float, Field(gt=0, le=1)]
    """Of the chip's memory bandwidth and cache."""

    memory_gb: Positive
    """As in accelerators.csv."""

    source: Text
    read: Day

    @model_validator(mode="after")
    def _part(self) -> Self:
        if self.slices > self.of_slices or self.multiprocessors > self.of_multiprocessors:
            raise ValueError("has more than the chip: correct slices or multiprocessors")
        return self


class LinkRow(CatalogRow):
    """One line of links.csv."""

    name: Text
    kind: LinkKind
    gigabytes_per_second: Positive
    """Effective all-reduce bus bandwidth, 10⁹ bytes a second in one direction."""

    basis: Literal["measured", "derived", "nominal"]
    """How the figure was found."""

    source: Text


class PriceRow(_Sourced):
    """One line of prices.csv."""

    cloud: Literal["aws", "gcp", "azure"]
    instance: Text
    accelerator: Text
    chips: Annotated[int, Field(ge=1)]
    per_chip_hour: Positive
    """Dollars, the chip's share of the host included."""

    region: Text
    capacity: Purchase
    """How the chip is bought."""

    basis: Text

    @property
    def provenance(self) -> str:
        """Where the price is from, for a message."""
        what = f"{self.cloud} {self.instance}, {self.region}, {self.capacity}, {self.basis}"
        return f"{what}: {self.source}, read {self.read}"


class LabelRow(CatalogRow):
    """One line of labels.csv: the chip that a node label names."""

    label: Text
    """The label of the instance type, or one of the `product_labels` of the accelerator's vendor."""

    value: Text
    """May be a pattern with `*`."""

    memory_mib: OptionalCount
    """The chip memory that must be labelled too, where the name alone is ambiguous."""

    accelerator: Text
    source: Text


class PurchaseRow(_Sourced):
    """One line of purchases.csv."""

    accelerator: Text
    capital: Positive
    """Dollars of one chip that is bought."""

    basis: Text
    """What of it that is the price of."""


class RunningCostRow(CatalogRow):
    """One line of running_costs.csv."""

    name: Text
    """As a file of costs has it."""

    value: Positive
    source: Text
    read: Day


_R = TypeVar("_R", bound=CatalogRow)


def read_rows(file: str, text: str, model: type[_R], vendors: Sequence[Vendor] = VENDORS) -> list[_R]:
    """The lines of one data file, each validated. Raises CatalogError, which names the file and the line."""
    rows: list[_R] = []
    reader = csv.DictReader(text.splitlines())
    for number, line in enumerate(reader, start=2):
        cells: dict[Any, Any] = dict(line)
        if None in cells or None in cells.values():
            raise CatalogError(f"{file}, line {number}: {len(reader.fieldnames or ())} cells are required")
        try:
            rows.append(model.model_validate(cells, context=vendors))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "row"
            raise CatalogError(f"{file}, line {number}, {where}: {first['msg']}") from error
    return rows
