"""The page that plays the jobs of the past again: what `rightpool simulate` says, with a drawing of what changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rightpool.api.choices import Objective
from rightpool.cli.simulate.changes import Changes, changed, pools_of, prices_of
from rightpool.cli.simulate.report import show_simulation
from rightpool.cli.simulate.runs import Simulated, simulated
from rightpool.cli.simulate.sources import NothingToSimulate, source_of_records
from rightpool.cli.ui.charts import Interval, change_intervals
from rightpool.cli.ui.sheet import Section, Sheet
from rightpool.cli.view import ClusterView
from rightpool.cluster.client import ClusterClient

SEEDS: Final = 3
"""Simulations of each, as the command has by default."""


@dataclass(frozen=True, slots=True)
class SimulationPicture:
    """What was played."""

    at: float
    """Unix seconds."""
    found: Simulated
    """What `rightpool simulate` has found."""


@dataclass(frozen=True, slots=True)
class SimulationPage:
    """What the template shows."""

    sections: tuple[Section, ...]
    """The check and one row a figure, then notes."""
    intervals: tuple[Interval, ...]
    """What the changes make of each figure; empty where nothing is changed."""


def read_simulation(
    client: ClusterClient,
    namespace: str | None,
    asked: tuple[str, str, str],
    *,
    operator_namespace: str,
    now: float,
) -> SimulationPicture:
    """namespace: jobs of it alone, of all where it is None. asked: pools and prices, as the options of the command have
    them with commas between, and an objective; each may be empty.

    Raises CliError where that can't be played, ClusterError where it can't be read.
    """
    pools, prices, objective = asked
    if objective and objective not in {one.value for one in Objective}:
        raise NothingToSimulate(f"{objective} is no objective: take {', '.join(one.value for one in Objective)}")
    changes = Changes(
        pools_of(_parts(pools)), prices_of(_parts(prices)), Objective(objective) if objective else None, None
    )
    source = source_of_records(ClusterView(client, namespace or "", operator_namespace), namespace, now)
    what_if = changed(source.scenario, changes) if changes.any else None
    return SimulationPicture(now, simulated(source, what_if, SEEDS))


def simulation_page(picture: SimulationPicture) -> SimulationPage:
    """What is shown of it."""
    sheet = Sheet()
    show_simulation(picture.found, sheet)
    return SimulationPage(tuple(sheet.sections), tuple(change_intervals(picture.found)))


def _parts(text: str) -> Sequence[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
