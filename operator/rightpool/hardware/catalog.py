"""The catalog: every accelerator that can be priced and predicted, read from the data files beside this module.

Each row names its source, the day it was read, and whether a second source is still due. What was recalled and not
looked up says so in its provenance, all the way to the user.
"""

from __future__ import annotations

import csv
import difflib
import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from rightpool.hardware.accelerator import Accelerator, Link, LinkKind, Price, Vendor

RECALLED: Final = "recalled"

_TERA: Final = 1e12
_GIGA: Final = 1e9
_SUGGESTIONS: Final = 3
# A word of a key or of a query: "NVIDIA-A100-SXM4-80GB" → nvidia, a100, sxm4, 80gb.
_WORD: Final = re.compile(r"[a-z0-9]+")
# Columns of accelerators.csv that become peak_flops: dtype → column.
_RATES: Final = {
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
Day = Annotated[str, Field(pattern=r"^20[0-9]{2}-[01][0-9]-[0-3][0-9]$")]


class CatalogError(ValueError):
    """A data file of the catalog can't be used. The message names the file, the row and the remedy."""


class UnknownAcceleratorError(KeyError):
    """No such key in the catalog. `suggestions`: the nearest keys."""

    def __init__(self, key: str, suggestions: tuple[str, ...]) -> None:
        self.key = key
        self.suggestions = suggestions
        self.message = f"unknown accelerator '{key}'"
        if suggestions:
            *others, last = suggestions
            self.message += f"; did you mean {', '.join(others) + ' or ' if others else ''}{last}?"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class AcceleratorRow(_Row):
    """One line of accelerators.csv. Rates in 10¹² operations/s (dense), memory in 10⁹ bytes, bandwidth in 10⁹ bytes/s.

    memory_gb is the data sheet's decimal figure, which never exceeds what the driver reports. intra_link, inter_link:
    names in links.csv. list_price: cloud/instance in prices.csv.
    """

    key: Text
    vendor: Vendor
    arch: Text
    fp32_tflops: Optional
    tf32_tflops: Optional
    bf16_tflops: Optional
    fp16_tflops: Optional
    fp8_tflops: Optional
    int8_tops: Optional
    memory_gb: Positive
    memory_gbps: Positive
    power_watts: Optional
    intra_link: Text
    inter_link: Text
    list_price: str
    source: Text
    read: Day
    verified: bool
    note: str

    @model_validator(mode="after")
    def _computes(self) -> Self:
        if all(getattr(self, column) is None for column in _RATES.values()):
            raise ValueError("names no peak rate: fill in at least one dtype")
        if self.verified and RECALLED in self.source:
            raise ValueError("is recalled and verified at once: verified must be no")
        return self


class LinkRow(_Row):
    """One line of links.csv: effective all-reduce bus bandwidth, 10⁹ bytes/s a direction, and how it came about."""

    name: Text
    kind: LinkKind
    gigabytes_per_second: Positive
    basis: Literal["measured", "derived", "nominal"]
    source: Text


class PriceRow(_Row):
    """One line of prices.csv: dollars an hour for one chip, on demand, its share of the host included."""

    cloud: Literal["aws", "gcp", "azure"]
    instance: Text
    accelerator: Text
    chips: Annotated[int, Field(ge=1)]
    per_chip_hour: Positive
    region: Text
    basis: Text
    source: Text
    read: Day
    verified: bool

    @model_validator(mode="after")
    def _honest(self) -> Self:
        if self.verified and RECALLED in self.source:
            raise ValueError("is recalled and verified at once: verified must be no")
        return self

    @property
    def provenance(self) -> str:
        """Where the price is from, for a message."""
        return f"{self.cloud} {self.instance}, {self.region}, {self.basis}: {self.source}, read {self.read}"


class LabelRow(_Row):
    """One line of labels.csv: what a node label says about the chip. value may be a pattern with `*`.

    memory_mib: the chip memory that must be labelled too, where the name alone is ambiguous.
    """

    label: Text
    value: Text
    memory_mib: Annotated[int | None, BeforeValidator(lambda cell: cell if cell != "" else None)]
    accelerator: Text
    source: Text


@dataclass(frozen=True, slots=True)
class Catalog:
    """accelerators: by key. links: the slowest of each kind.

    prices: list prices by instance type, as nodes are labelled with it. usual_prices: the one behind each
    accelerator's list_price. labels: how node labels name chips.
    """

    accelerators: Mapping[str, Accelerator]
    links: Mapping[LinkKind, Link]
    prices: Mapping[str, PriceRow]
    usual_prices: Mapping[str, PriceRow]
    labels: Mapping[str, tuple[LabelRow, ...]]

    def get(self, key: str) -> Accelerator:
        """The accelerator of this key. Raises UnknownAcceleratorError, which suggests the nearest keys."""
        accelerator = self.accelerators.get(key)
        if accelerator is None:
            raise UnknownAcceleratorError(key, self.suggest(key))
        return accelerator

    def link(self, kind: LinkKind, accelerator: Accelerator) -> Link:
        """What this kind of link gives the accelerator: its own, else its architecture's, else the slowest there is."""
        kin = [other for other in self.accelerators.values() if other.arch == accelerator.arch]
        for candidates in ((accelerator,), kin):
            own = [link for one in candidates for link in (one.intra_link, one.inter_link) if link.kind is kind]
            if own:
                return min(own, key=lambda link: link.bytes_per_second)
        return self.links[kind]

    def suggest(self, key: str) -> tuple[str, ...]:
        """Up to three keys that may have been meant, nearest first: sharing words, then looking alike."""
        wanted = _words(key)

        def nearness(candidate: str) -> float:
            words = _words(candidate)
            shared = len(wanted & words)
            begun = sum(1 for word in wanted if len(word) > 1 and any(other.startswith(word) for other in words))
            alike = difflib.SequenceMatcher(None, key.lower(), candidate.lower()).ratio()
            return 2.0 * shared + begun + alike

        scores = {candidate: nearness(candidate) for candidate in self.accelerators}
        near = [candidate for candidate, score in scores.items() if score >= 0.6]
        return tuple(sorted(near, key=lambda candidate: (-scores[candidate], candidate))[:_SUGGESTIONS])

    def by_label(self, label: str, value: str, memory_mib: int | None = None) -> str | None:
        """The key of the chip that this label of a node names, None where the catalog does not know it."""
        for row in self.labels.get(label, ()):
            if row.memory_mib is not None and row.memory_mib != memory_mib:
                continue
            if row.value == value or ("*" in row.value and fnmatch.fnmatchcase(value, row.value)):
                return row.accelerator
        return None

    def list_price(self, instance: str) -> PriceRow | None:
        """The list price of a cloud's instance type, None where the catalog has none."""
        return self.prices.get(instance.removeprefix("Standard_"))


def _words(key: str) -> set[str]:
    return set(_WORD.findall(key.lower()))


# --- reading ---------------------------------------------------------------------------------------------------------

_R = TypeVar("_R", bound=_Row)


def read_rows(file: str, text: str, model: type[_R]) -> list[_R]:
    """The lines of one data file, each validated. Raises CatalogError, which names the file and the line."""
    rows: list[_R] = []
    reader = csv.DictReader(text.splitlines())
    for number, line in enumerate(reader, start=2):
        cells: dict[Any, Any] = dict(line)
        if None in cells or None in cells.values():
            raise CatalogError(f"{file}, line {number}: {len(reader.fieldnames or ())} cells are due")
        try:
            rows.append(model.model_validate(cells))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "row"
            raise CatalogError(f"{file}, line {number}, {where}: {first['msg']}") from error
    return rows


def _unique(file: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise CatalogError(f"{file}: {name} is there twice; keep one")
        seen.add(name)


def build_catalog(
    accelerators: Iterable[AcceleratorRow],
    links: Iterable[LinkRow],
    prices: Iterable[PriceRow],
    labels: Iterable[LabelRow],
) -> Catalog:
    """A catalog of validated rows. Raises CatalogError where one row points to another that is not there."""
    rows, link_rows, price_rows, label_rows = list(accelerators), list(links), list(prices), list(labels)
    _unique("accelerators.csv", (row.key for row in rows))
    _unique("links.csv", (row.name for row in link_rows))
    _unique("prices.csv", (row.instance for row in price_rows))
    _unique("labels.csv", (f"{row.label}={row.value} {row.memory_mib or ''}".strip() for row in label_rows))
    named_links = {row.name: row for row in link_rows}
    named_prices = {f"{row.cloud}/{row.instance}": row for row in price_rows}
    keys = {row.key for row in rows}
    for file, pointing in (("prices.csv", price_rows), ("labels.csv", label_rows)):
        for entry in pointing:
            if entry.accelerator not in keys:
                raise CatalogError(f"{file}: accelerator {entry.accelerator} is not in accelerators.csv")
    by_label: dict[str, list[LabelRow]] = {}
    for label in label_rows:
        by_label.setdefault(label.label, []).append(label)
    return Catalog(
        accelerators={row.key: _accelerator(row, named_links, named_prices) for row in rows},
        links=_slowest(link_rows),
        prices={row.instance: row for row in price_rows},
        usual_prices={row.key: named_prices[row.list_price] for row in rows if row.list_price in named_prices},
        labels={name: tuple(entries) for name, entries in by_label.items()},
    )


def _slowest(rows: Iterable[LinkRow]) -> Mapping[LinkKind, Link]:
    slowest: dict[LinkKind, Link] = {}
    for row in rows:
        link = Link(row.kind, row.gigabytes_per_second * _GIGA)
        known = slowest.get(row.kind)
        if known is None or link.bytes_per_second < known.bytes_per_second:
            slowest[row.kind] = link
    return slowest


def _accelerator(row: AcceleratorRow, links: Mapping[str, LinkRow], prices: Mapping[str, PriceRow]) -> Accelerator:
    for name in (row.intra_link, row.inter_link):
        if name not in links:
            raise CatalogError(f"accelerators.csv, {row.key}: link {name} is not in links.csv")
    intra, inter = links[row.intra_link], links[row.inter_link]
    price = prices.get(row.list_price) if row.list_price else None
    if row.list_price and price is None:
        raise CatalogError(f"accelerators.csv, {row.key}: price {row.list_price} is not in prices.csv")
    if price is not None and price.accelerator != row.key:
        raise CatalogError(f"accelerators.csv, {row.key}: price {row.list_price} is one of {price.accelerator}")
    sheet = f"{row.source}, read {row.read}" + (f"; {row.note}" if row.note else "")
    provenance = dict.fromkeys(("peak_flops", "memory_bytes", "memory_bandwidth"), sheet)
    if row.power_watts is not None:
        provenance["power_watts"] = sheet
    provenance["intra_link"] = f"{intra.basis}: {intra.source}"
    provenance["inter_link"] = f"{inter.basis}: {inter.source}"
    if price is not None:
        provenance["list_price"] = price.provenance
    rates = {dtype: getattr(row, column) for dtype, column in _RATES.items()}
    return Accelerator(
        key=row.key,
        vendor=row.vendor,
        arch=row.arch,
        peak_flops={dtype: rate * _TERA for dtype, rate in rates.items() if rate is not None},
        memory_bytes=round(row.memory_gb * _GIGA),
        memory_bandwidth=row.memory_gbps * _GIGA,
        power_watts=row.power_watts,
        intra_link=Link(intra.kind, intra.gigabytes_per_second * _GIGA),
        inter_link=Link(inter.kind, inter.gigabytes_per_second * _GIGA),
        list_price=Price(on_demand=None if price is None else price.per_chip_hour),
        verified=row.verified,
        provenance=provenance,
    )


@cache
def load_catalog() -> Catalog:
    """The catalog that ships with the package. Read once; the same object afterwards."""
    folder = resources.files("rightpool.hardware").joinpath("data")

    def rows(file: str, model: type[_R]) -> list[_R]:
        return read_rows(file, folder.joinpath(file).read_text(encoding="utf-8"), model)

    return build_catalog(
        rows("accelerators.csv", AcceleratorRow),
        rows("links.csv", LinkRow),
        rows("prices.csv", PriceRow),
        rows("labels.csv", LabelRow),
    )
