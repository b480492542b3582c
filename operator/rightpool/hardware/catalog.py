"""The catalog: every accelerator that can be priced and predicted, read from the data files beside this module.

Each row names its source, the day it was read, and whether a second source confirms it. What was recalled and not
looked up has that in its provenance, which messages to users contain.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from importlib import resources
from typing import Final

from rightpool.api.pool import LinkKind
from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator, ChipPart, FigureSource, Link, Price
from rightpool.hardware.clouds import INSTANCE_TYPE, Purchase, listed_name, region_class
from rightpool.hardware.rows import (
    RATE_COLUMNS,
    AcceleratorRow,
    CatalogError,
    LabelRow,
    LinkRow,
    PartRow,
    PriceRow,
    read_rows,
)
from rightpool.hardware.vendors.registry import VENDORS
from rightpool.hardware.vendors.vendor import PART, Vendor

DATA_FILES: Final = ("accelerators.csv", "mig.csv", "links.csv", "prices.csv", "labels.csv")

_TERA: Final = 1e12
_GIGA: Final = 1e9
_SUGGESTIONS: Final = 3
# A word of a key or of a query: "NVIDIA-A100-SXM4-80GB" → nvidia, a100, sxm4, 80gb.
_WORD: Final = re.compile(r"[a-z0-9]+")


class UnknownAcceleratorError(KeyError):
    """No such key in the catalog. `suggestions` are the nearest keys."""

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


@value_object
class ValuesProblem:
    """Something in the chart's values that can't be used."""

    accelerator: str
    """Which chip it is about. Empty where none of the values can be read."""

    about_price: bool
    """Whether it is a price, and not what the chip can do."""

    message: str
    """With the field and the remedy."""


@value_object
class Catalog:
    """What is known of accelerators, their links and prices, and how node labels name them."""

    vendors: tuple[Vendor, ...]
    """Vendors whose labels are read, the first that names a chip wins."""

    accelerators: Mapping[str, Accelerator]
    """By key."""

    links: Mapping[LinkKind, Link]
    """The slowest of each kind."""

    prices: Mapping[str, tuple[PriceRow, ...]]
    """List prices by instance type: of several regions, and ways to buy it."""

    usual_prices: Mapping[str, PriceRow]
    """By accelerator, the price on demand behind its list_price."""

    labels: Mapping[str, tuple[LabelRow, ...]]
    """Chips that node labels name, by label."""

    own_prices: Mapping[str, Price] = field(default_factory=dict)
    """What the users pay for a chip, by accelerator, as the chart's values say it."""

    problems: tuple[ValuesProblem, ...] = ()
    """What of the chart's values can't be used."""

    def get(self, key: str) -> Accelerator:
        """The accelerator of this key. Raises UnknownAcceleratorError, which suggests the nearest keys."""
        accelerator = self.accelerators.get(key)
        if accelerator is None:
            raise UnknownAcceleratorError(key, self.suggest(key))
        return accelerator

    def link(self, kind: LinkKind, accelerator: Accelerator) -> Link | None:
        """What this kind of link gives the accelerator: its own, else its architecture's, else the slowest there is.

        None where the catalog has no link of this kind.
        """
        kin = [other for other in self.accelerators.values() if other.arch == accelerator.arch]
        for candidates in ((accelerator,), kin):
            own = [link for one in candidates for link in (one.intra_link, one.inter_link) if link.kind is kind]
            if own:
                return min(own, key=lambda link: link.bytes_per_second)
        return self.links.get(kind)

    def suggest(self, key: str) -> tuple[str, ...]:
        """Up to three keys that may have been meant, nearest first: by words in common, then by spelling."""
        wanted = _words(key)

        def nearness(candidate: str) -> float:
            words = _words(candidate)
            common = len(wanted & words)
            prefixes = sum(1 for word in wanted if len(word) > 1 and any(other.startswith(word) for other in words))
            spelling = difflib.SequenceMatcher(None, key.lower(), candidate.lower()).ratio()
            return 2.0 * common + prefixes + spelling

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

    def by_device(self, device: str, memory_mib: int | None = None) -> str | None:
        """The key of the chip that a framework calls so. Labels have the same name with another sign for spaces."""
        spelled = [device.replace(" ", sign) for sign in "-_"]
        keys = (self.by_label(label, value, memory_mib) for label in self.labels for value in spelled)
        return next((key for key in keys if key is not None), None)

    def list_price(self, instance: str, region: str = "", purchase: Purchase = Purchase.ON_DEMAND) -> PriceRow | None:
        """The list price of a cloud's instance type that is bought so, None where the catalog has none: of the region,
        else the highest of the same country or part of the world, else the first."""
        rows = [row for row in self.prices.get(listed_name(instance), ()) if row.capacity is purchase]
        there = [row for row in rows if row.region == region]
        country, part = region.partition("-")[0], region_class(region)
        near = [row for row in rows if part is not None and region_class(row.region) == part]
        near.sort(key=lambda row: (row.region.partition("-")[0] != country, -row.per_chip_hour))
        return next(iter(there or near or rows), None)


def _words(key: str) -> set[str]:
    return set(_WORD.findall(key.lower()))


# --- reading ---------------------------------------------------------------------------------------------------------


def _unique(file: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise CatalogError(f"{file}: {name} is there twice; keep one")
        seen.add(name)


def parse_catalog(files: Mapping[str, str], vendors: Sequence[Vendor] = VENDORS) -> Catalog:
    """The catalog that the data files make up.

    files: their text, by name. Raises CatalogError where a row is wrong or points to something that is not there.
    """
    rows = read_rows("accelerators.csv", files["accelerators.csv"], AcceleratorRow, vendors)
    part_rows = read_rows("mig.csv", files["mig.csv"], PartRow)
    link_rows = read_rows("links.csv", files["links.csv"], LinkRow)
    price_rows = read_rows("prices.csv", files["prices.csv"], PriceRow)
    label_rows = read_rows("labels.csv", files["labels.csv"], LabelRow)
    _unique("accelerators.csv", (row.key for row in rows))
    _unique("mig.csv", (_part_key(row) for row in part_rows))
    _unique("links.csv", (row.name for row in link_rows))
    _unique("prices.csv", (f"{row.instance} {row.region} {row.capacity}" for row in price_rows))
    _unique("labels.csv", (f"{row.label}={row.value} {row.memory_mib or ''}".strip() for row in label_rows))
    named_links = {row.name: row for row in link_rows}
    named_prices: dict[str, PriceRow] = {}
    by_instance: dict[str, list[PriceRow]] = {}
    for price in price_rows:
        by_instance.setdefault(price.instance, []).append(price)
        if price.capacity is Purchase.ON_DEMAND:
            named_prices.setdefault(f"{price.cloud}/{price.instance}", price)
    spot_prices = {f"{row.cloud}/{row.instance}": row for row in reversed(price_rows) if row.capacity is Purchase.SPOT}
    made_by = {row.key: row.vendor for row in rows}
    for file, pointing in (("mig.csv", part_rows), ("prices.csv", price_rows), ("labels.csv", label_rows)):
        for entry in pointing:
            if entry.accelerator not in made_by:
                raise CatalogError(f"{file}: accelerator {entry.accelerator} is not in accelerators.csv")
    whole = {row.key: _accelerator(row, named_links, named_prices, spot_prices) for row in rows}
    parts = {_part_key(row): _part(row, whole[row.accelerator]) for row in part_rows}
    by_label: dict[str, list[LabelRow]] = {}
    for label in label_rows:
        vendor = made_by[label.accelerator]
        if label.label not in (INSTANCE_TYPE, *(source.label for source in vendor.product_labels)):
            raise CatalogError(
                f"labels.csv: {label.label} is not read for {label.accelerator}: add it to product_labels of {vendor}"
            )
        by_label.setdefault(label.label, []).append(label)
        if any(source.label == label.label and source.names_parts for source in vendor.product_labels):
            own = [row for row in part_rows if row.accelerator == label.accelerator]
            by_label[label.label] += [_part_label(label, row) for row in own]
    return Catalog(
        vendors=tuple(vendors),
        accelerators=whole | parts,
        links=_slowest(link_rows),
        prices={instance: tuple(entries) for instance, entries in by_instance.items()},
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


def _accelerator(
    row: AcceleratorRow,
    links: Mapping[str, LinkRow],
    prices: Mapping[str, PriceRow],
    spot_prices: Mapping[str, PriceRow],
) -> Accelerator:
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
    rates = {dtype: getattr(row, column) for dtype, column in RATE_COLUMNS.items()}
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
        list_price=Price() if price is None else _list_price(price, spot_prices.get(row.list_price)),
        verified=row.verified,
        provenance=provenance,
        cache_bytes=None if row.cache_mb is None else round(row.cache_mb * 1e6),
    )


def _list_price(on_demand: PriceRow, spot: PriceRow | None) -> Price:
    return Price(on_demand.per_chip_hour, None if spot is None else spot.per_chip_hour, source=FigureSource.CATALOG)


# --- parts -----------------------------------------------------------------------------------------------------------


def _part_key(row: PartRow) -> str:
    return f"{row.accelerator}{PART}{row.profile}"


def _part_label(label: LabelRow, row: PartRow) -> LabelRow:
    """What a node that offers these slices says in place of the whole chip's product."""
    value = f"{label.value}{PART}{row.profile}"
    return label.model_copy(update={"value": value, "accelerator": _part_key(row), "memory_mib": None})


def _part(row: PartRow, whole: Accelerator) -> Accelerator:
    """Its multiprocessors' share of the chip's rates, and its memory slices' share of bandwidth and cache."""
    computes = row.multiprocessors / row.of_multiprocessors
    sheet = f"{row.source}, read {row.read}; of {whole.key}"
    return replace(
        whole,
        key=_part_key(row),
        peak_flops={dtype: rate * computes for dtype, rate in whole.peak_flops.items()},
        memory_bytes=round(row.memory_gb * _GIGA),
        memory_bandwidth=whole.memory_bandwidth * row.memory_share,
        power_watts=None,
        intra_link=whole.inter_link,  # neither link carries anything
        list_price=Price(),
        verified=False,
        provenance=dict.fromkeys(("peak_flops", "memory_bytes", "memory_bandwidth"), sheet),
        cache_bytes=None if whole.cache_bytes is None else round(whole.cache_bytes * row.memory_share),
        part=ChipPart(whole.key, row.slices / row.of_slices),
    )


@cache
def load_catalog() -> Catalog:
    """The catalog that ships with the package. Read once; the same object afterwards."""
    folder = resources.files("rightpool.hardware").joinpath("data")
    return parse_catalog({file: folder.joinpath(file).read_text(encoding="utf-8") for file in DATA_FILES})
