"""Scores of those that pass the gates, and what would change which of them is first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from rightpool.api.wording import dollars, number, share
from rightpool.cli.compare.rows import ComparedRow
from rightpool.hardware.ownership import Sourced

_STEPS: Final = 40  # from a figure to ten times as much, or to a tenth
_HALVINGS: Final = 40
_FULL: Final = 100.0

Rows = Sequence[ComparedRow]


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts how much."""

    performance: float = 0.3
    """Of the rate."""
    cost: float = 0.5
    """Of dollars for a million."""
    energy: float = 0.2
    """Of kWh for a million."""


def scores(rows: Rows, weights: Weights) -> dict[str, float]:
    """By name, of 100: for each figure the best over one's own. Of those alone that pass the gates and whose figures
    that count are known."""
    known = [(row, measures) for row in rows if row.passes and (measures := _measures(row, weights)) is not None]
    if not known:
        return {}
    counts = [weight for weight in _weights(weights) if weight]
    least = [min(column) for column in zip(*(measures for _, measures in known), strict=True)]
    total = sum(counts)
    return {
        row.name: _FULL
        * sum(
            weight * (1.0 if mine <= best else best / mine)
            for weight, best, mine in zip(counts, least, measures, strict=True)
        )
        / total
        for row, measures in known
    }


def _weights(weights: Weights) -> list[float]:
    return [getattr(weights, field.name) for field in fields(weights)]


def _measures(row: ComparedRow, weights: Weights) -> list[float] | None:
    """Less is better; None where one that counts is not known."""
    seconds = None if row.rate is None else 1.0 / row.rate.median
    found = [
        one for one, weight in zip((seconds, row.dollars, row.kwh), _weights(weights), strict=True) if weight > 0.0
    ]
    return None if None in found else [one for one in found if one is not None]


def first(rows: Rows, weights: Weights) -> str | None:
    """The name of the best; None where none passes."""
    found = scores(rows, weights)
    return max(found, key=lambda name: found[name], default=None)


# --- what would change the order -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A figure at which another one is first."""

    figure: str
    """What it is of: the tariff, or what of which accelerator."""
    now: float
    """As it is."""
    at: float
    """From there on another one is first."""
    instead: str
    """Which one."""
    text: str
    """The same as a sentence."""


def changes(rows: Rows, weights: Weights) -> list[Change]:
    """The nearest first. Figures are tried up to ten times as large and as small; rates within their 80% interval."""
    found = [change for dial in _dials(rows) for change in _turned(rows, weights, dial)]
    return sorted(found, key=lambda change: max(change.at / change.now, change.now / change.at))


@dataclass(frozen=True, slots=True)
class _Dial:
    """A figure that can be another one."""

    figure: str
    now: float
    least: float
    most: float
    at: Callable[[float], Rows]
    says: Callable[[float], str]


def _turned(rows: Rows, weights: Weights, dial: _Dial) -> Iterator[Change]:
    leader = first(rows, weights)
    if leader is None or dial.now <= 0.0:
        return
    for end in (dial.most, dial.least):
        if end <= 0.0 or end == dial.now:
            continue
        ratio, before = (end / dial.now) ** (1.0 / _STEPS), dial.now
        for step in range(1, _STEPS + 1):
            value = dial.now * ratio**step
            if first(dial.at(value), weights) != leader:
                for _ in range(_HALVINGS):
                    middle = (before + value) / 2.0
                    if first(dial.at(middle), weights) == leader:
                        before = middle
                    else:
                        value = middle
                other = first(dial.at(value), weights)
                assert other is not None
                at = f"{'above' if end > dial.now else 'below'} {dial.says(value)}"
                text = f"{other} would be first if {dial.figure} were {at}; it is {dial.says(dial.now)}"
                yield Change(dial.figure, dial.now, value, other, text)
                break
            before = value


def _dials(rows: Rows) -> Iterator[_Dial]:
    shown = [row for row in rows if row.passes]
    for attribute, figure, most, says in (
        ("tariff", "the tariff", None, lambda value: f"{dollars(value)} a kWh"),
        ("pue", "the PUE", None, lambda value: f"{value:.3g}"),
        ("utilization", "the utilization of bought chips", 1.0, share),
        ("months", "the time of writing off", None, lambda value: f"{value:.3g} months"),
    ):
        values: set[float] = {getattr(row.owned, attribute) for row in shown if row.owned.bought is not None}
        if len(values) == 1:
            now = values.pop()
            least = 1.0 if attribute == "pue" else now / 10.0
            yield _Dial(figure, now, least, most or now * 10.0, _all_with(rows, attribute, now), says)
    for index, row in enumerate(rows):
        if not row.passes:
            continue
        if row.owned.rented is not None:
            yield _price(rows, index, "rented", f"a chip-hour of {row.name}", row.owned.rented)
        if row.owned.bought is not None:
            yield _price(rows, index, "bought", f"the capital for a chip of {row.name}", row.owned.bought)
        if row.rate is not None and row.rate.low < row.rate.high:
            yield _rate(rows, index, row)


def _all_with(rows: Rows, attribute: str, now: float) -> Callable[[float], Rows]:
    def at(value: float) -> Rows:
        return [
            replace(row, owned=replace(row.owned, **{attribute: value}))  # type: ignore[arg-type]
            if getattr(row.owned, attribute) == now
            else row
            for row in rows
        ]

    return at


def _price(rows: Rows, index: int, attribute: str, figure: str, price: Sourced) -> _Dial:
    def at(value: float) -> Rows:
        owned = replace(rows[index].owned, **{attribute: Sourced(value, price.source)})  # type: ignore[arg-type]
        return _with(rows, index, replace(rows[index], owned=owned))

    return _Dial(figure, price.value, price.value / 10.0, price.value * 10.0, at, dollars)


def _rate(rows: Rows, index: int, row: ComparedRow) -> _Dial:
    rate = row.rate
    assert rate is not None

    def at(value: float) -> Rows:
        return _with(rows, index, replace(row, rate=rate.times(value / rate.median)))

    unit = f"{row.unit.plural}/s"
    return _Dial(
        f"the rate of {row.name}", rate.median, rate.low, rate.high, at, lambda value: f"{number(value)} {unit}"
    )


def _with(rows: Rows, index: int, row: ComparedRow) -> Rows:
    return [*rows[:index], row, *rows[index + 1 :]]


def named_weights(text: str) -> Weights:
    """Of an option's value, such as performance=0.5,cost=0.5; what is not named counts nothing. Raises ValueError."""
    known = [field.name for field in fields(Weights)]
    found: dict[str, float] = dict.fromkeys(known, 0.0)
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if name.strip() not in known or not sign:
            raise ValueError(f"{part!r} is not NAME=NUMBER with one of {', '.join(known)}")
        found[name.strip()] = float(value)
    if min(found.values()) < 0.0 or not 0.0 < sum(found.values()) < float("inf"):
        raise ValueError("weights are numbers from 0, and one is above it")
    return Weights(**found)
