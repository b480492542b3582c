"""The chart's values about chips and prices, put over the catalog that ships: `catalog` in values.yaml.

They reach the operator as a file and commands as a ConfigMap, in JSON. A mistake in an entry costs this entry alone:
the rest holds, and the catalog says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pydantic import ConfigDict, Field, ValidationError

from rightpool.api.labels import Labels
from rightpool.api.pool import ChipSpec, PriceSpec
from rightpool.hardware.accelerator import Accelerator, Declaration, FigureSource, Price
from rightpool.hardware.catalog import Catalog, ValuesProblem
from rightpool.hardware.clouds import INSTANCE_TYPE
from rightpool.hardware.declared_chip import ChipError, new_chip, with_figures
from rightpool.hardware.rows import LabelRow

VALUES: Final = "the chart's values"
_REMEDY: Final = "correct it in the Helm release; until then it does not count"
_MOST_TEXT: Final = 200


class PriceValues(PriceSpec):
    """One entry of catalog.prices."""

    model_config = ConfigDict(extra="forbid")


class ChipValues(ChipSpec):
    """One entry of catalog.chips."""

    model_config = ConfigDict(extra="forbid")

    vendor: str | None = None
    """Who makes it. Needed for a chip that the catalog lacks."""

    node_labels: Labels = Field(default_factory=dict)
    """Labels by which nodes name the chip, so that its pools are discovered."""


def with_values(catalog: Catalog, text: str) -> Catalog:
    """The catalog with what these values say. text: the object `catalog` of the chart's values, in JSON."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        return without_values(catalog, f"no JSON: {error}")
    if not isinstance(body, dict):
        return without_values(catalog, "no object")
    entries = {place: {} if body.get(place) is None else body[place] for place in ("prices", "chips")}
    for place, found in entries.items():
        if not isinstance(found, dict):
            return without_values(catalog, f"catalog.{place} is no object by accelerator")
    # Prices first: a chip without figures is estimated from what it costs.
    for key, entry in entries["prices"].items():
        catalog = _with_price(catalog, key, entry)
    for key, entry in entries["chips"].items():
        catalog = _with_chip(catalog, key, entry)
    unknown = [key for key in catalog.own_prices if key not in catalog.accelerators]
    return _with_problems(catalog, *(_unpriceable(key) for key in unknown if not _named(catalog, key)))


def without_values(catalog: Catalog, why: str) -> Catalog:
    """The catalog that ships, with the problem that values can't be read at all."""
    message = f"catalog of {VALUES} can't be read ({why[:_MOST_TEXT]}): none of it counts until the release is upgraded"
    return _with_problems(catalog, ValuesProblem("", False, message))


def _with_price(catalog: Catalog, key: str, entry: object) -> Catalog:
    where = f"catalog.prices.{key}"
    try:
        spec = PriceValues.model_validate(entry)
    except ValidationError as error:
        return _with_problems(catalog, *(ValuesProblem(key, True, text) for text in _texts(where, error)))
    if spec.per_chip_hour is None and spec.spot_per_chip_hour is None:
        text = f"{where} of {VALUES} names no price: write perChipHour or spotPerChipHour"
        return _with_problems(catalog, ValuesProblem(key, True, text))
    on_demand, spot = (None if one is None else float(one) for one in (spec.per_chip_hour, spec.spot_per_chip_hour))
    price = Price(on_demand, spot, source=FigureSource.VALUES)
    accelerators = dict(catalog.accelerators)
    if key in accelerators:
        accelerators[key] = _priced(accelerators[key], price)
    return replace(catalog, own_prices={**catalog.own_prices, key: price}, accelerators=accelerators)


def _priced(chip: Accelerator, price: Price) -> Accelerator:
    return replace(chip, list_price=price, provenance={**chip.provenance, "list_price": _source("prices", chip.key)})


def _with_chip(catalog: Catalog, key: str, entry: object) -> Catalog:
    where = f"catalog.chips.{key}"
    try:
        named = ChipValues.model_validate(entry)
    except ValidationError as error:
        return _with_problems(catalog, *(ValuesProblem(key, False, text) for text in _texts(where, error)))
    try:
        chip = _chip(catalog, key, named, where)
        rows = list(_label_rows(named, chip, where))
    except ChipError as error:
        return _with_problems(catalog, ValuesProblem(key, False, f"{error} ({VALUES}); {_REMEDY}"))
    labels = dict(catalog.labels)
    for row in rows:
        labels[row.label] = (row, *labels.get(row.label, ()))
    return replace(catalog, accelerators={**catalog.accelerators, key: chip}, labels=labels)


def _chip(catalog: Catalog, key: str, named: ChipValues, where: str) -> Accelerator:
    known = catalog.accelerators.get(key)
    declared = Declaration(FigureSource.VALUES, _source("chips", key))
    if known is not None:
        if named.vendor not in (None, known.vendor.name):
            raise ChipError(f"{where}.vendor: the catalog has {key} of {known.vendor}; leave it out")
        return with_figures(known, named, field=where, by=declared)
    vendor = next((vendor for vendor in catalog.vendors if vendor.name == named.vendor), None)
    if vendor is None:
        raise ChipError(f"{where}.vendor: write one of {', '.join(map(str, catalog.vendors))}")
    price = catalog.own_prices.get(key, Price())
    chip = new_chip(key, vendor, named, price.on_demand, catalog, field=where, by=declared)
    return chip if price.source is None else _priced(chip, price)


def _label_rows(named: ChipValues, chip: Accelerator, where: str) -> Iterator[LabelRow]:
    read = [INSTANCE_TYPE, *(source.label for source in chip.vendor.product_labels)]
    for label, value in sorted(named.node_labels.items()):
        if label not in read or not value:
            raise ChipError(f"{where}.nodeLabels: chips of {chip.vendor} are named by {' or '.join(read)} alone")
        yield LabelRow(
            label=label, value=value, memory_mib=None, accelerator=chip.key, source=_source("chips", chip.key)
        )


def _named(catalog: Catalog, key: str) -> bool:
    return any(problem.accelerator == key for problem in catalog.problems)


def _unpriceable(key: str) -> ValuesProblem:
    text = (
        f"catalog.prices.{key} of {VALUES}: neither the catalog nor catalog.chips has {key}, so that the price holds "
        "only in pools that declare it in spec.chip; see `rightpool pools --accelerators` for the names"
    )
    return ValuesProblem(key, True, text)


def _source(place: str, key: str) -> str:
    return f"catalog.{place}.{key} of {VALUES}"


def _texts(where: str, error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_context=False):
        field = ".".join((where, *(str(part) for part in problem["loc"])))
        what = problem["msg"].removeprefix("Value error, ")[:_MOST_TEXT]
        yield f"{field} of {VALUES}: {what}; {_REMEDY}"


def _with_problems(catalog: Catalog, *found: ValuesProblem) -> Catalog:
    return replace(catalog, problems=(*catalog.problems, *found))
