"""The page of the fleet: what needs attention, its sums, its pools, potential savings, and its jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rightpool.api.wording import cents, dollars
from rightpool.cli.connection import error_message
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.job_table import Line, document, job_cells, job_columns, jobs_summary, name_units, ranked
from rightpool.cli.pools import POOL_COLUMNS, pool_cells, pools_summary
from rightpool.cli.recommend import OFFER_COLUMNS, Offers, offer_cells, ranked_offers
from rightpool.cli.table import NOTHING, Column, dollar_cell
from rightpool.cli.ui.attention import Attention, Need, attention
from rightpool.cli.ui.job import job_address
from rightpool.cli.ui.sheet import Table
from rightpool.cli.view import ClusterView, FleetView
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError
from rightpool.planning.allocate.breaker import Outcomes
from rightpool.planning.allocate.limits import FleetLimits
from rightpool.planning.jobs.job import JobKey

# Of potential savings; the list of jobs has all.
OFFERS_SHOWN: Final = 10
# Of what needs attention; how much there is of each kind is said above.
NEEDS_SHOWN: Final = 12
# A browser takes half a second to lay out a thousand rows. All are shown where that is asked for.
JOBS_SHOWN: Final = 200

_MORE_COLUMNS: Final = (
    Column("$/M PROMISED", right=True),
    Column("$/M DELIVERED", right=True),
)
_POOL_COLUMNS: Final = (*POOL_COLUMNS, Column("UNDONE IN A DAY", right=True))

SORTS: Final[Mapping[str, tuple[str, Callable[[Line], tuple[float, str, str]]]]] = {
    "NAMESPACE": ("namespace", lambda line: (0.0, line.namespace, line.name)),
    "NAME": ("name", lambda line: (0.0, line.name, line.namespace)),
    "$/H": ("cost", lambda line: (-(line.cost_per_hour or 0.0), line.namespace, line.name)),
    "STATE": ("state", lambda line: (0.0, line.state, line.name)),
    "SAVES": ("saves", lambda line: (-(_offered(line)), line.namespace, line.name)),
    "ENDS IN": ("end", lambda line: (_or_never(line.ends_in), line.namespace, line.name)),
}
"""By the title of a column: the word for it in an address, and what it is sorted by."""


@dataclass(frozen=True, slots=True)
class FleetPicture:
    """The fleet as it was read."""

    at: float
    """Unix seconds."""
    lines: tuple[Line, ...]
    """One a job."""
    offers: Offers
    """The recommendations, and what they would save together."""
    needs: tuple[Attention, ...]
    """What somebody has to see to, the most urgent first."""
    fleet: FleetView | None
    """None where the pools can't be read."""
    outcomes: Outcomes
    """Of the last moves to each pool."""
    breaker: str | None
    """Why no job is moved; None where the breaker is closed."""
    quiet: str | None
    """That no operator leads."""
    notes: tuple[str, ...]
    """What is not shown, and why."""


def read_fleet(
    client: ClusterClient, namespace: str, *, everywhere: bool, operator_namespace: str, now: float
) -> FleetPicture:
    """Read jobs, pools, policy and Lease. everywhere: the jobs of all namespaces, where the user may list them.

    Raises ClusterError where the jobs can't be read.
    """
    view = ClusterView(client, namespace, operator_namespace)
    jobs = view.all_jobs() if everywhere else view.jobs(namespace)
    try:
        fleet: FleetView | None = view.fleet()
    except ClusterError as error:
        fleet = None
        view.notes.append(f"the pools are not shown: {error_message(error)}")
    known = [stored.job for stored in jobs.values()]
    outcomes = view.outcomes()
    pools = {} if fleet is None else fleet.pools
    limits = FleetLimits(known, view.policy(), now, outcomes=outcomes, pools=pools)
    return FleetPicture(
        at=now,
        lines=tuple(ranked(jobs.values(), now)),
        offers=ranked_offers(jobs.values()),
        needs=attention(jobs.values()),
        fleet=fleet,
        outcomes=limits.outcomes,
        breaker=None if limits.stop is None else limits.stop.text(now),
        quiet=no_leader_text(client, operator_namespace, now),
        notes=(*view.notes, *(() if fleet is None else fleet.notes)),
    )


# --- what is shown ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the fleet."""

    name: str
    """What is counted, for a reader."""
    value: str
    """For a reader."""
    warns: bool = False
    """Whether it is drawn as a warning."""


@dataclass(frozen=True, slots=True)
class Header:
    """The title of a column."""

    column: Column
    """How it is set, with its title."""
    sort: str = ""
    """The word to sort by it; empty where that can't be."""
    sorted: bool = False
    """Whether rows are sorted by it."""


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job in the list."""

    id: str
    """Of the HTML element."""
    href: str
    """Path of the job's page."""
    cells: tuple[str, ...]
    """Texts, in the order of the columns."""
    holds_chips: bool
    """Whether it has chips now."""
    need: Need | None
    """The most urgent thing that somebody has to see to."""


@dataclass(frozen=True, slots=True)
class NeedRow:
    """One thing that needs attention."""

    need: Need
    """The word that is shown, and the class of its colour."""
    reason: str
    """In one CamelCase word."""
    message: str
    """The evidence, and what can be done."""
    job: str
    """The job; of several the first one, by name."""
    href: str
    """Path of its page."""
    others: int
    """Further jobs that it holds for."""


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool."""

    cells: tuple[str, ...]
    """Texts, in the order of the columns."""
    used: float | None
    """Share of its chips that are in use, 0 to 1; None where it has none."""


@dataclass(frozen=True, slots=True)
class FleetPage:
    """What the template shows."""

    picture: FleetPicture
    """As it was read."""
    needs: tuple[NeedRow, ...]
    """The most urgent first."""
    need_counts: tuple[tuple[Need, int], ...]
    """Of each kind that there is, how many jobs have it."""
    needs_more: int
    """Things that are not in the table."""
    tiles: tuple[Tile, ...]
    """In the order in which they are shown."""
    sums: str
    """What the jobs shown cost together."""
    pool_columns: tuple[Column, ...]
    """Of the table of pools."""
    pools: tuple[PoolRow, ...]
    """One an AcceleratorPool that can be used."""
    pools_summary: str
    """What their chips cost, in use and idle; empty where no price is known."""
    problems: tuple[tuple[str, str], ...]
    """Name and message of pools that can't be used."""
    offers: Table
    """The largest recommendations."""
    offer_links: tuple[str, ...]
    """One a row of `offers`."""
    offers_more: int
    """Recommendations that are not in the table."""
    headers: tuple[Header, ...]
    """Of the list of jobs."""
    rows: tuple[JobRow, ...]
    """One a job that the filter finds, as they are sorted."""
    widths: tuple[float, ...]
    """Of each column, in widths of a digit, where there are very many rows."""
    found: int
    """Jobs that the filter finds."""
    jobs: int
    """All of them."""


def fleet_page(picture: FleetPicture, text: str = "", sort: str = "", *, everything: bool = False) -> FleetPage:
    """text: only jobs that have it in their name, namespace, pool, state or bottleneck. everything: however many."""
    lines = list(picture.lines)
    order = sort if sort in {word for word, _ in SORTS.values()} else "cost"
    key = next(by for word, by in SORTS.values() if word == order)
    found = sorted((line for line in lines if _has(line, text.strip().lower())), key=key)
    first = picture.offers[:OFFERS_SHOWN]
    units = name_units(lines)
    needs = {job: each.need for each in reversed(picture.needs) for job in each.jobs}
    rows = [_job_row(line, units, needs) for line in (found if everything else found[:JOBS_SHOWN])]
    columns, rows = _filled((*job_columns(units), *_MORE_COLUMNS), rows)
    pools = {} if picture.fleet is None else picture.fleet.pools
    problems = () if picture.fleet is None else picture.fleet.problems
    return FleetPage(
        picture=picture,
        needs=tuple(_need_row(each) for each in picture.needs[:NEEDS_SHOWN]),
        need_counts=tuple(
            (need, count)
            for need in Need
            if (count := sum(len(each.jobs) for each in picture.needs if each.need is need))
        ),
        needs_more=len(picture.needs) - len(picture.needs[:NEEDS_SHOWN]),
        tiles=tuple(_tiles(picture, lines)),
        sums=jobs_summary(lines),
        pool_columns=_POOL_COLUMNS,
        pools=tuple(
            PoolRow(
                cells=(*pool_cells(pools[name]), _undone(picture.outcomes, name)),
                used=(pools[name].total - pools[name].free) / pools[name].total if pools[name].total else None,
            )
            for name in sorted(pools)
        ),
        pools_summary="" if picture.fleet is None else pools_summary(picture.fleet),
        problems=tuple((problem.pool or "nodes", problem.message) for problem in problems),
        offers=Table(OFFER_COLUMNS, tuple(tuple(offer_cells(key, offer)) for key, offer in first)),
        offer_links=tuple(job_address(key) for key, _ in first),
        offers_more=len(picture.offers) - len(first),
        headers=tuple(_header(column, order) for column in columns),
        rows=tuple(rows),
        widths=_widths(rows, (column.title for column in columns)) if len(rows) > JOBS_SHOWN else (),
        found=len(found),
        jobs=len(lines),
    )


def _tiles(picture: FleetPicture, lines: Sequence[Line]) -> list[Tile]:
    total = document(list(lines), picture.at)["total"]
    pools = [] if picture.fleet is None else list(picture.fleet.pools.values())
    there = sum(pool.total for pool in pools)
    tiles = [
        Tile("an hour", dollars(total["costPerHour"])),
        Tile("an hour that can be saved", dollars(total["potentialSavingsPerHour"])),
        Tile("jobs that hold chips", f"{total['running']} of {total['jobs']}"),
    ]
    if there:
        tiles.append(Tile("chips in use", f"{there - sum(pool.free for pool in pools)} of {there}"))
    tiles += [
        Tile("spent", cents(total["spent"])),
        Tile("saved by moves", cents(total["saved"])),
        Tile("circuit breaker", "closed" if picture.breaker is None else "open", warns=picture.breaker is not None),
    ]
    return tiles


def _undone(outcomes: Outcomes, pool: str) -> str:
    judged = outcomes.get(pool, ())
    return f"{sum(outcome.undone for outcome in judged)} of {len(judged)}" if judged else NOTHING


def _header(column: Column, order: str) -> Header:
    word = SORTS[column.title][0] if column.title in SORTS else ""
    return Header(column, word, word == order)


def _job_row(line: Line, units: bool, needs: Mapping[JobKey, Need]) -> JobRow:
    unit = f" {line.promised_unit.plural}" if units and line.promised_unit is not None else ""
    costs = (dollar_cell(each, unit) for each in (line.promised_per_million, line.delivered_per_million))
    key = JobKey(line.namespace, line.name)
    return JobRow(f"job-{key}", job_address(key), (*job_cells(line, units), *costs), line.holds_chips, needs.get(key))


def _need_row(each: Attention) -> NeedRow:
    first, *others = each.jobs
    return NeedRow(each.need, each.reason, each.message, str(first), job_address(first), len(others))


def _filled(columns: Sequence[Column], rows: list[JobRow]) -> tuple[list[Column], list[JobRow]]:
    """Without the columns that may be left out and in which no row says anything: with all of them the table would be
    wider than a screen."""
    kept = [
        index
        for index, column in enumerate(columns)
        if not (column.drop or column in _MORE_COLUMNS) or any(row.cells[index] != NOTHING for row in rows)
    ]
    return (
        [columns[index] for index in kept],
        [replace(row, cells=tuple(row.cells[index] for index in kept)) for row in rows],
    )


def _widths(rows: Sequence[JobRow], titles: Iterable[str]) -> tuple[float, ...]:
    """Of each column, in widths of a digit, with room for wider letters."""
    words = (max(map(len, title.split())) for title in titles)  # titles wrap
    longest = map(max, zip(words, *(map(len, row.cells) for row in rows), strict=True))
    return tuple(round(1.1 * length + 2.0, 1) for length in longest)


def _or_never(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _offered(line: Line) -> float:
    return 0.0 if line.offer is None else line.offer.dollars_per_hour or 0.0


def _has(line: Line, text: str) -> bool:
    return text in f"{line.namespace}/{line.name} {line.pool or ''} {line.state} {line.bottleneck or ''}".lower()
