"""What a chip costs by public lists, where a pool does not say.

The price of the nodes' own instance types, else the chip's usual one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rightpool.hardware.accelerator import Accelerator, Price
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.clouds import INSTANCE_TYPE, REGION, is_spot
from rightpool.hardware.rows import PriceRow


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """A price by public lists."""

    price: Price
    """On demand alone: the price of spot capacity changes by the hour and is in no list."""

    doubt: str | None
    """Why the price may be wrong, for a human; None where nothing speaks against it."""


def listed_price(accelerator: Accelerator, nodes: Iterable[Mapping[str, str]], catalog: Catalog) -> ListedPrice:
    """The list price of one chip-hour for nodes with these labels: the highest where their instance types differ. Of a
    slice, its share of the chip's."""
    if accelerator.part is not None:
        whole = listed_price(catalog.get(accelerator.part.whole), nodes, catalog)
        if whole.price.on_demand is None:
            return whole
        return replace(whole, price=Price(on_demand=whole.price.on_demand * accelerator.part.share))
    kinds = {(labels.get(INSTANCE_TYPE, ""), labels.get(REGION, ""), is_spot(labels)) for labels in nodes}
    if any(spot for _, _, spot in kinds):
        return ListedPrice(Price(), "spot capacity has no list price")
    usual = catalog.usual_prices.get(accelerator.key)
    rows: list[tuple[PriceRow, str]] = []
    unlisted: list[str] = []
    for instance, region, _ in sorted(kinds):
        row = usual if accelerator.vendor.priced_by_chip else catalog.list_price(instance)
        if row is None or row.accelerator != accelerator.key:
            unlisted.append(instance)
        else:
            rows.append((row, region))
    if unlisted or not rows:
        if usual is None:
            return ListedPrice(Price(), f"the catalog has no list price for {accelerator.key}")
        names = ", ".join(filter(None, unlisted))
        doubt = f"no list price is known for {names}; {_money(usual)}" if names else _doubt(usual, "")
        return ListedPrice(Price(on_demand=usual.per_chip_hour), doubt)
    highest, region = max(rows, key=lambda entry: entry[0].per_chip_hour)
    return ListedPrice(Price(on_demand=highest.per_chip_hour), _doubt(highest, region))


def _doubt(row: PriceRow, region: str) -> str | None:
    if not row.verified:
        return f"{_money(row)} was not checked against a second source"
    if region and region != row.region:
        return f"{_money(row)} is another region's price, nodes are in {region}"
    return None


def _money(row: PriceRow) -> str:
    return f"${row.per_chip_hour:g} a chip-hour ({row.provenance})"
