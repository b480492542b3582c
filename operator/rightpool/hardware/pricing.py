"""What a chip costs where a pool does not say: what the chart's values say, else by public lists.

By lists it is the price of the nodes' own instance types, else the chip's usual one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from rightpool.hardware.accelerator import Accelerator, FigureSource, Price
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.clouds import INSTANCE_TYPE, REGION, is_spot
from rightpool.hardware.rows import PriceRow


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """A price that no pool declares."""

    price: Price
    """Of what the nodes are: on demand, or spot. Spot prices change by the hour and are in no list."""

    doubt: str | None
    """Why the price may be wrong, for a human; None where nothing speaks against it."""


def listed_price(accelerator: Accelerator, nodes: Collection[Mapping[str, str]], catalog: Catalog) -> ListedPrice:
    """The price of one chip-hour for nodes with these labels: the user's own, where the chart's values have one, else
    the list price, the highest where instance types differ. Of a slice, its share of the chip's."""
    kinds = {(labels.get(INSTANCE_TYPE, ""), labels.get(REGION, ""), is_spot(labels)) for labels in nodes}
    spot = any(spot for _, _, spot in kinds)
    own = catalog.own_prices.get(accelerator.key, Price())
    if spot and own.spot is not None:
        return ListedPrice(replace(own, on_demand=None), None)
    if not spot and own.on_demand is not None:
        return ListedPrice(replace(own, spot=None), None)
    if accelerator.part is not None:
        whole = listed_price(catalog.get(accelerator.part.whole), nodes, catalog)
        share = accelerator.part.share
        on_demand, at_spot = (None if one is None else one * share for one in (whole.price.on_demand, whole.price.spot))
        return replace(whole, price=replace(whole.price, on_demand=on_demand, spot=at_spot))
    if spot:
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
        return ListedPrice(Price(usual.per_chip_hour, source=FigureSource.CATALOG), doubt)
    highest, region = max(rows, key=lambda entry: entry[0].per_chip_hour)
    return ListedPrice(Price(highest.per_chip_hour, source=FigureSource.CATALOG), _doubt(highest, region))


def _doubt(row: PriceRow, region: str) -> str | None:
    if not row.verified:
        return f"{_money(row)} was not checked against a second source"
    if region and region != row.region:
        return f"{_money(row)} is another region's price, nodes are in {region}"
    return None


def _money(row: PriceRow) -> str:
    return f"${row.per_chip_hour:g} a chip-hour ({row.provenance})"
