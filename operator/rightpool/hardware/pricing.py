"""What a chip costs where a pool does not say: what the chart's values say, else by public lists.

By lists it is the price of the nodes' own instance types, else the chip's usual one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator, FigureSource, Price
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.clouds import INSTANCE_TYPE, REGION, Purchase, purchase_of
from rightpool.hardware.rows import PriceRow


@value_object
class ListedPrice:
    """A price that no pool declares."""

    price: Price
    """On demand or spot, as the nodes are."""

    doubt: str | None
    """Why the price may be wrong, for a human; None where nothing speaks against it."""


def listed_price(accelerator: Accelerator, nodes: Collection[Mapping[str, str]], catalog: Catalog) -> ListedPrice:
    """The price of one chip-hour for nodes with these labels: the user's own, where the chart's values have one, else
    the list price, the highest where instance types differ. Of a slice, its share of the chip's."""
    kinds = {(labels.get(INSTANCE_TYPE, ""), labels.get(REGION, ""), purchase_of(labels)) for labels in nodes}
    spot = any(purchase is Purchase.SPOT for _, _, purchase in kinds)
    if spot:  # nodes on demand say nothing of what spot capacity costs
        kinds = {kind for kind in kinds if kind[2] is Purchase.SPOT}
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
    found = _rows(accelerator, sorted(kinds), catalog)
    if not found:
        what = "spot capacity of " if spot else ""
        return ListedPrice(Price(), f"the catalog has no list price for {what}{accelerator.key}")
    found.sort(key=lambda entry: -entry[0].per_chip_hour)
    row, doubt = found[0][0], next((doubt for _, doubt in found if doubt is not None), None)
    if spot:
        return ListedPrice(Price(spot=row.per_chip_hour, source=FigureSource.CATALOG), doubt)
    return ListedPrice(Price(row.per_chip_hour, source=FigureSource.CATALOG), doubt)


def _rows(
    accelerator: Accelerator, kinds: Sequence[tuple[str, str, Purchase]], catalog: Catalog
) -> list[tuple[PriceRow, str | None]]:
    """A price for each kind of node, with its doubt; that of the chip's usual instance type where it has none."""
    usual = catalog.usual_prices.get(accelerator.key)
    found: list[tuple[PriceRow, str | None]] = []
    for instance, region, purchase in kinds or [("", "", Purchase.ON_DEMAND)]:
        own = None if accelerator.vendor.priced_by_chip else _bought(catalog, instance, region, purchase)
        if own is not None and own.accelerator == accelerator.key:
            found.append((own, _doubt(own, region, purchase)))
            continue
        row = None if usual is None else _bought(catalog, usual.instance, region, purchase)
        if row is not None:
            unlisted = instance and not accelerator.vendor.priced_by_chip
            doubt = f"no list price is known for {instance}; {_money(row)}" if unlisted else None
            found.append((row, doubt or _doubt(row, region, purchase)))
    return found


def _bought(catalog: Catalog, instance: str, region: str, purchase: Purchase) -> PriceRow | None:
    """What is reserved and has no price of its own counts as on demand, which is more. Of spot nothing is guessed."""
    row = catalog.list_price(instance, region, purchase)
    if row is None and purchase is Purchase.RESERVED:
        return catalog.list_price(instance, region)
    return row


def _doubt(row: PriceRow, region: str, purchase: Purchase) -> str | None:
    if row.capacity is Purchase.SPOT:
        return f"spot prices change by the hour, and this is that of one day; {_money(row)}"
    if purchase is not row.capacity:
        return f"nodes are reserved, and this is the price on demand; {_money(row)}"
    if not row.verified:
        return f"no second source confirms the price; {_money(row)}"
    if region and region != row.region:
        return f"nodes are in {region}, and this is another region's price; {_money(row)}"
    return None


def _money(row: PriceRow) -> str:
    return f"${row.per_chip_hour:g} a chip-hour ({row.provenance})"
