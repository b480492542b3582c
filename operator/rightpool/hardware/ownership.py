"""What a chip-hour of work costs its owner or its tenant, and the energy that it takes.

Of a bought chip: capital over the hours in which it works, upkeep, and power; of a rented one its price. Figures that a
user does not name are the catalog's, with their source.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from rightpool.api.value_object import value_object
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.rows import CatalogError, Positive, PurchaseRow, RunningCostRow, read_rows

HOURS: Final = 730.0
"""Of a month."""
_FILES: Final = ("purchases.csv", "running_costs.csv")
_KILO: Final = 1000.0

_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Part = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class ChipCost(_Entry):
    """What is known of one accelerator's cost. What is absent is as for all, or the catalog's."""

    per_chip_hour: _Amount | None = None
    """Dollars, of a rented chip."""

    capital: _Amount | None = None
    """Dollars, of a bought chip with its share of the server."""

    months: Positive | None = None
    """In which the capital is written off."""

    duty: _Part | None = None
    """Share of its hours in which it has work."""

    upkeep: _Amount = 0.0
    """Dollars a month for a chip: rack, support."""

    uplink: _Amount = 0.0
    """Dollars a month for a chip: its connection, where it is not in a data center."""

    watts: Positive | None = None
    """At full load."""

    pue: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    """Power of the site over that of the chip."""

    porting_hours: _Amount = 0.0
    """Of staff, to bring the program there."""

    count: Annotated[int, Field(ge=1)] | None = None
    """Chips that each do the work by themselves, such as boards at the edge. Absent: as many as the measured run has,
    together."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.capital is not None and self.per_chip_hour is not None:
            raise ValueError("a chip is bought or rented: write capital or perChipHour")
        return self


class CostBook(_Entry):
    """What users pay. What is absent is the catalog's."""

    tariff: _Amount | None = None
    """Dollars a kWh."""

    pue: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    """Power of a site over that of its chips."""

    kg_per_kwh: _Amount | None = None
    """CO2 of the power."""

    months: Positive | None = None
    """In which capital is written off."""

    utilization: _Part | None = None
    """Share of its hours in which a bought chip has work."""

    staff_per_hour: _Amount | None = None
    """Dollars, of who brings programs to other chips."""

    million_samples: Positive | None = None
    """Of the job's life, over which that is spread. Absent: it is left out."""

    accelerators: Mapping[str, ChipCost] = Field(default_factory=dict)
    """By key."""

    def of(self, key: str) -> ChipCost:
        """What is said of an accelerator."""
        return self.accelerators.get(key, ChipCost())


@value_object
class Sourced:
    """A figure."""

    value: float
    """In its unit."""
    source: str
    """Who says so, and when it was read."""


@value_object
class Ownership:
    """What a chip-hour of work costs and takes."""

    bought: Sourced | None
    """Dollars for a chip; None of one that is rented, or whose price is not known."""
    rented: Sourced | None
    """Dollars a chip-hour; None of one that is bought, or whose price is not known."""
    months: float
    """In which it is written off."""
    utilization: float
    """Share of its hours in which it has work."""
    monthly: float
    """Dollars a month for upkeep and connection."""
    watts: Sourced | None
    """At full load; None where not known."""
    pue: float
    """Power of the site over that of the chip."""
    tariff: float
    """Dollars a kWh."""
    kg_per_kwh: float
    """CO2."""
    porting: float | None
    """Dollars to bring the program there; None where it is not spread over anything."""
    million_samples: float
    """Over which that is spread; 1 where it is not."""

    def dollars_an_hour(self, load: float) -> float | None:
        """Of one chip that works; None where it is not known. load: share of its full power."""
        if self.rented is not None:
            return self.rented.value + self.monthly / HOURS
        kilowatts = self.kilowatts(load)
        if self.bought is None or kilowatts is None:
            return None
        kept = (self.bought.value / self.months + self.monthly) / HOURS / self.utilization
        return kept + kilowatts * self.tariff

    def kilowatts(self, load: float) -> float | None:
        """That the site takes for one chip that works; None where it is not known."""
        return None if self.watts is None else self.watts.value * load / _KILO * self.pue

    def dollars_a_million(self, rate: float, chips: int, load: float) -> float | None:
        """rate: samples a second of all chips while they work."""
        hour = self.dollars_an_hour(load)
        if hour is None:
            return None
        return hour * chips / (rate * 3600.0) * 1e6 + (self.porting or 0.0) / self.million_samples

    def kwh_a_million(self, rate: float, chips: int, load: float) -> float | None:
        """Of the site, for a million samples."""
        kilowatts = self.kilowatts(load)
        return None if kilowatts is None else kilowatts * chips / (rate * 3600.0) * 1e6


def ownership(chip: Accelerator, book: CostBook, price: Sourced | None = None) -> Ownership:
    """By the book, and by the catalog where it says nothing. price: dollars a chip-hour that are known otherwise, such
    as a pool's."""
    named, known = book.of(chip.key), running_costs()
    purchase = purchases().get(chip.key)
    bought = rented = None
    if named.capital is not None:
        bought = Sourced(named.capital, "the file")
    elif named.per_chip_hour is not None:
        rented = Sourced(named.per_chip_hour, "the file")
    elif price is not None:
        rented = price
    elif chip.list_price.on_demand is not None:
        rented = Sourced(chip.list_price.on_demand, chip.provenance["list_price"])
    else:
        bought = purchase
    watts = chip.power_watts if named.watts is None else named.watts
    where = chip.provenance.get("power_watts", "the catalog") if named.watts is None else "the file"
    hours = named.porting_hours * _or(book.staff_per_hour, known["staffPerHour"])
    return Ownership(
        bought=bought,
        rented=rented,
        months=_or(named.months or book.months, known["months"]),
        utilization=_or(named.duty or book.utilization, known["utilization"]),
        monthly=named.upkeep + named.uplink,
        watts=None if watts is None else Sourced(watts, where),
        pue=_or(named.pue or book.pue, known["pue"]),
        tariff=_or(book.tariff, known["tariff"]),
        kg_per_kwh=_or(book.kg_per_kwh, known["kgPerKwh"]),
        porting=hours if book.million_samples else None,
        million_samples=book.million_samples or 1.0,
    )


def _or(named: float | None, known: Sourced) -> float:
    return known.value if named is None else named


@cache
def purchases() -> Mapping[str, Sourced]:
    """What chips cost that are bought, by key."""
    rows = read_rows(_FILES[0], _text(_FILES[0]), PurchaseRow)
    return {row.accelerator: Sourced(row.capital, f"{row.basis}: {row.source}, read {row.read}") for row in rows}


@cache
def running_costs() -> Mapping[str, Sourced]:
    """What holds where the user names nothing, by the names of the file."""
    rows = read_rows(_FILES[1], _text(_FILES[1]), RunningCostRow)
    found = {row.name: Sourced(row.value, f"{row.source}, read {row.read}") for row in rows}
    if missing := {"tariff", "pue", "kgPerKwh", "months", "utilization", "staffPerHour"} - found.keys():
        raise CatalogError(f"{_FILES[1]}: {', '.join(sorted(missing))} missing: add the line")
    return found


def _text(file: str) -> str:
    return resources.files("rightpool.hardware").joinpath("data", file).read_text(encoding="utf-8")
