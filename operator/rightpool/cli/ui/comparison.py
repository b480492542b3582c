"""The page that compares accelerators for one job: what `rightpool compare` says, with a drawing of the rates."""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.cli.compare.comparison import job_comparison, weights_of
from rightpool.cli.compare.question import keys_of
from rightpool.cli.compare.report import ComparisonReport, show_comparison
from rightpool.cli.ui.charts import Interval, rate_intervals
from rightpool.cli.ui.sheet import Section, Sheet
from rightpool.cli.view import ClusterView
from rightpool.cluster.client import ClusterClient
from rightpool.hardware.ownership import CostBook
from rightpool.planning.jobs.job import JobKey


@dataclass(frozen=True, slots=True)
class ComparisonPicture:
    """A comparison as it was read."""

    at: float
    """Unix seconds."""
    found: ComparisonReport
    """What `rightpool compare` has found."""


@dataclass(frozen=True, slots=True)
class ComparisonPage:
    """What the template shows."""

    about: Section
    """The weights, and one row an accelerator."""
    sections: tuple[Section, ...]
    """Gates, costs, and what would change the order."""
    intervals: tuple[Interval, ...]
    """How fast each would be; empty where that is known of none."""
    caption: str
    """Of the drawing."""


def read_comparison(
    client: ClusterClient, key: JobKey, against: str, weights: str, *, operator_namespace: str, now: float
) -> ComparisonPicture:
    """against, weights: as the options of `rightpool compare` have them. Costs are the pools' and the catalog's.

    Raises CliError where that can't be compared, ClusterError where it can't be read.
    """
    view = ClusterView(client, key.namespace, operator_namespace)
    return ComparisonPicture(now, job_comparison(view, key, keys_of(against), CostBook(), weights_of(weights), now))


def comparison_page(picture: ComparisonPicture) -> ComparisonPage:
    """What is shown of it."""
    sheet, ranked = Sheet(), picture.found.ranked
    show_comparison(picture.found, sheet)
    about, *sections = sheet.sections
    unit = ranked[0].unit.plural if ranked else ""
    drawn = tuple(rate_intervals(ranked))
    return ComparisonPage(about, tuple(sections), drawn, f"{unit[:1].upper()}{unit[1:]}/s, with 80% intervals")
