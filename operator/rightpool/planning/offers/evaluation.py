"""An evaluation: every placement that jobs could have, in columns, and what is known of the jobs that were measured."""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.api.placement import Placement
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.offers import Offers
from rightpool.planning.offers.register import Register
from rightpool.planning.offers.targets.target import JobTarget
from rightpool.prediction.columns import Bools, Floats, Ints
from rightpool.prediction.predictor import Prediction


@dataclass(frozen=True, slots=True)
class Running:
    """What is known of every running job and of every placement that it could have."""

    prediction: Prediction
    """Throughput of all that was predicted; offers have the places in it."""
    offers: Offers
    """The placements, a row each, those of a job one after another."""
    current: Offers
    """Where each job is, a row a job."""
    rows: list[range]
    """The offers of each job."""
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
    hour: Floats
    """Dollars that an hour of each job is worth: what it is worth to have it sooner, its price at most, and its
    price."""
    unreachable: list[JobTarget | None]
    """The target that no placement holds surely enough."""
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


@dataclass(frozen=True, slots=True, eq=False)
class EvaluationBatch:
    """Evaluations that were made for one plan."""

    size: int
    """How many jobs they are of."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """What evaluating some jobs of a fleet together gave. It is kept whole while one of its jobs is kept from it."""

    register: Register
    """What the numbers in the columns stand for."""
    running: Running
    """Of the jobs that were measured."""
    now: float
    """Unix seconds when it was made."""
    batch: EvaluationBatch
    """What it was made with."""
