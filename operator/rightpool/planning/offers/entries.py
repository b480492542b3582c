"""Entries: what is known of every running job and of every placement that it could have, in columns."""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.api.placement import Placement
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.rows import Numbers
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.predictor import Prediction


@dataclass(frozen=True, slots=True)
class Entries:
    """Rows of candidates, those of one job together, its best first; or one row a job for where it is."""

    option: Ints
    """A placement of the register."""
    gate: Ints
    """What rules it out, by the register's codes."""
    predicted: Ints
    """The row of the prediction; -1 where nothing was asked."""
    efficiency: Floats
    """Throughput / (chips × one-chip throughput)."""
    score: Floats
    """Dollars per million units, time included."""
    saving: Floats
    """Share of the current score that moving saves."""
    probability: Floats
    """That it is better at all."""
    lasting: Floats
    """Share that moving saves over the horizon, where prices of today may not last."""


@dataclass(frozen=True, slots=True)
class Running:
    """What is known of every running job and of every placement that it could have."""

    numbers: Numbers
    """Targets, prices and what is left of each job, in columns."""
    prediction: Prediction
    """Throughput of all that was predicted; entries have the places in it."""
    entries: Entries
    """The placements, a row each, those of a job one after another."""
    current: Entries
    """Where each job is, a row a job."""
    first: Ints
    """A job's entries are those from `first` up to, not including, `last`."""
    last: Ints
    """See `first`."""
    intents: list[Intent]
    """What a decision would be for, one a job."""
    unpriced: Bools
    """Where nothing can be compared for want of a price."""
    value: Floats
    """Dollars that an hour of waiting is worth."""
    best: Ints
    """The first entry that passes all gates; -1 where none does."""
    unsure: Ints
    """The first of them that saves enough and not surely enough; -1 where there is none."""
    unreachable: Ints
    """The gate of the target that no placement holds surely enough, by the register's codes."""
    nears: Bools
    """Whether what is wanted comes nearer to that target, and meets none."""
    holding: Ints
    """The first entry that holds all targets at the median; -1 where none does."""
    unknown: Bools
    """Whether an entry can't be predicted."""
    wanted: list[tuple[int, ...]]
    """Entries that would be acted on, in order of preference."""
    places: list[tuple[Placement, ...]]
    """Where they are."""
