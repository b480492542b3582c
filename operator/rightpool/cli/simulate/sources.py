"""Where a simulation has its jobs and pools from: a cluster, or files."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.ended_job import BadLine, EndedJob, read_ended_jobs
from rightpool.api.model import ApiModel
from rightpool.api.policy import PlacementPolicySpec
from rightpool.cli.connection import WrongInput, connected
from rightpool.cli.simulate.logs import alibaba_jobs, helios_jobs, philly_jobs
from rightpool.cli.typed_file import FileProblem, read_typed
from rightpool.cli.view import ClusterView
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.contract import LABEL_ENDED_JOBS
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import Catalog, UnknownAcceleratorError, load_catalog
from rightpool.hardware.pool import Pool
from rightpool.reporting.ended_job import so_far
from rightpool.reporting.ended_jobs_object import part_number, read_records
from rightpool.reporting.stored_job import StoredJob
from rightpool.simulation.history import History, Scenario, history_of

SHOWN_LINES: Final = 10
"""Bad lines that are named one by one; of more, how many."""

Reader = Callable[[Iterable[str], Mapping[str, Pool], str], tuple[list[EndedJob], list[BadLine]]]
"""The jobs of a log's lines, and the lines that are none, from the pools and the name of that for unnamed chips."""

READERS: Final[Mapping[str, Reader]] = {
    "records": lambda lines, pools, on: read_ended_jobs(lines),
    "philly": philly_jobs,
    "helios": helios_jobs,
    "alibaba": alibaba_jobs,
}


class NothingToSimulate(WrongInput):
    """The arguments name nothing that can be played; the message says why."""


class PoolEntry(ApiModel):
    """A pool in the file of --pools."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    """Its own."""

    accelerator: str
    """Key of its chips in the catalog."""

    chips: Annotated[int, Field(ge=0, le=10**7)]
    """All that there are."""

    chips_per_node: Annotated[int, Field(ge=1, le=256)] = 8
    """Of one node."""

    price: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """Dollars for a chip-hour. Absent: the catalog's."""

    spot_price: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """The same of spot capacity."""


@dataclass(frozen=True, slots=True)
class HistorySource:
    """What is played, and with what."""

    history: History
    """The jobs."""
    scenario: Scenario
    """Pools, prices and policy as they are."""
    notes: tuple[str, ...]
    """What is left out, and why."""


def source_of_history(arguments: argparse.Namespace) -> HistorySource:
    """As the options say. Raises NothingToSimulate, FileProblem, CliError and ClusterError."""
    if arguments.pools is not None:
        if arguments.history is None:
            raise NothingToSimulate("--pools needs --history: without a cluster there are no records")
        catalog = load_catalog()
        scenario = Scenario(_pools(arguments.pools, catalog), PlacementPolicySpec())
        return _source(scenario, catalog, *_logged(arguments, scenario.pools), str(arguments.history))
    with connected(arguments) as connection:
        view = ClusterView(connection.client, connection.namespace, arguments.operator_namespace)
        if arguments.history is None:
            return source_of_records(view, arguments.namespace, time.time())
        scenario, _, notes = _as_it_is(view)
        records, bad = _logged(arguments, scenario.pools)
        return _source(scenario, view.catalog, records, [*notes, *bad], str(arguments.history))


def source_of_records(view: ClusterView, namespace: str | None, now: float) -> HistorySource:
    """The jobs of a cluster, of all its namespaces where none is given. now: Unix seconds, to which those that run are
    played. Raises NothingToSimulate and ClusterError."""
    scenario, stored, notes = _as_it_is(view)
    records, unread = _records(view.client, view.operator_namespace)
    records += [record for one in stored if (record := so_far(one, now)) is not None]
    if namespace is not None:
        records = [one for one in records if one.job.startswith(f"{namespace}/")]
    where = f"the records in namespace {view.operator_namespace}"
    return _source(scenario, view.catalog, records, [*notes, *unread], where)


def _as_it_is(view: ClusterView) -> tuple[Scenario, list[StoredJob], list[str]]:
    fleet = view.fleet()
    policy = view.policy()
    stored = list(view.all_jobs().values())
    pools = {name: _without_others(pool, stored) for name, pool in fleet.pools.items()}
    return Scenario(pools, policy), stored, [*fleet.notes, *view.notes]


def with_chips(pool: Pool, chips: int) -> Pool:
    """The pool, empty, with so many chips."""
    return replace(
        pool,
        total=chips,
        free=chips,
        growable=0,
        nodes=chips // pool.chips_per_node,
        open_nodes=(),
        shapes={},
        dedicated={},
    )


def _logged(arguments: argparse.Namespace, pools: Mapping[str, Pool]) -> tuple[list[EndedJob], list[str]]:
    """The jobs of --history, and which of its lines are none."""
    on = arguments.on or max(pools, key=lambda name: (pools[name].total, name), default="")
    if on not in pools:
        raise NothingToSimulate(f"--on {on}: there is no such pool; there are {', '.join(sorted(pools)) or 'none'}")
    records, bad = READERS[arguments.format](_lines(arguments.history), pools, on)
    return records, bad_lines(str(arguments.history), bad)


def _source(
    scenario: Scenario, catalog: Catalog, records: list[EndedJob], notes: list[str], where: str
) -> HistorySource:
    """where: the records come from, for a reader."""
    history = history_of(records, scenario.pools, catalog)
    notes = [*notes, *(f"left out is {one.job}: {one.why}" for one in history.left_out[:SHOWN_LINES])]
    if len(history.left_out) > SHOWN_LINES:
        notes.append(f"left out are {len(history.left_out) - SHOWN_LINES} more jobs")
    if not history.records:
        why = f"; {notes[-1]}" if notes else "; jobs are recorded when they end"
        raise NothingToSimulate(f"{where}: there is no job to play{why}")
    return HistorySource(history, scenario, tuple(notes))


def bad_lines(where: str, bad: list[BadLine]) -> list[str]:
    """A sentence for each, and one for those beyond so many."""
    found = [f"{where}, line {line.number} is left out: {line.why}" for line in bad[:SHOWN_LINES]]
    if len(bad) > SHOWN_LINES:
        numbers = ", ".join(str(line.number) for line in bad[SHOWN_LINES:])
        found.append(f"{where}: left out are {len(bad) - SHOWN_LINES} more lines: {numbers}")
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise FileProblem(f"{path}: {error.strerror}") from error


def _records(client: ClusterClient, where: str) -> tuple[list[EndedJob], list[str]]:
    """The operator's records, and what of them can't be read."""
    found: dict[str, EndedJob] = {}
    notes: list[str] = []
    for body in client.list_all(CONFIG_MAPS, where, labels=LABEL_ENDED_JOBS):
        name = str(body["metadata"]["name"])
        if part_number(body) is None:
            continue
        try:
            records, bad = read_records(body)
        except ValueError as error:
            notes.append(f"ConfigMap {where}/{name} is left out: {error}")
            continue
        found |= {record.uid: record for record in records}
        notes += bad_lines(f"ConfigMap {where}/{name}", bad)
    return list(found.values()), notes


def _pools(path: Path, catalog: Catalog) -> dict[str, Pool]:
    found: dict[str, Pool] = {}
    for entry in read_typed(path, list[PoolEntry], "list of pools"):
        try:
            chip = catalog.get(entry.accelerator)
        except UnknownAcceleratorError as error:
            raise FileProblem(f"{path}: pool {entry.name}: {error}") from error
        if entry.name in found:
            raise FileProblem(f"{path}: there are two pools {entry.name}: rename one of them")
        listed = chip.list_price
        price = Price(
            listed.on_demand if entry.price is None else entry.price,
            listed.spot if entry.spot_price is None and entry.price is None else entry.spot_price,
        )
        links = chip.intra_link, chip.inter_link
        bare = Pool(entry.name, chip, entry.chips_per_node, chip.vendor.name, {}, *links, price, 0, 0)
        found[entry.name] = with_chips(bare, entry.chips)
    if not found:
        raise FileProblem(f"{path}: it lists no pool: add one with name, accelerator, chips and price")
    return found


def _without_others(pool: Pool, stored: Iterable[StoredJob]) -> Pool:
    """The pool as far as ProfiledJobs may have it: what pods of others hold now is taken to be held all the time."""
    ours = 0
    for one in stored:
        ref = one.job.state.revision
        if ref is not None and ref.placement.pool == pool.name and one.job.state.finished is None:
            ours += one.job.state.account.chips
    others = max(0, pool.total - pool.free - ours)
    return with_chips(pool, max(0, pool.reach - others))
