"""`rightpool top`: what runs where, what limits it and what it costs, the dearest first.

Read from the jobs' status alone, in one list. With `-o json`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, JobReport
    asOf               when it was asked, RFC 3339
    jobs               the dearest first, each {namespace, name, state, pool, chips, capacity, samplesPerSecond,
                       costPerHour, costPerMillionSamples, bottleneck, spent, saved}. Dollars, up to asOf; null where
                       nothing is known
    total              {jobs, running, chips, costPerHour, spent, saved, unpriced}: unpriced is how many running jobs
                       are on chips whose price is not known, and so in none of the sums
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from rightpool.api.model import format_time
from rightpool.cli.connection import Connection, add_connection_arguments, carry_out
from rightpool.cli.state import state_of
from rightpool.cli.table import NOTHING, Column, Page, print_json
from rightpool.cli.view import ClusterView
from rightpool.contract import GROUP, VERSION
from rightpool.planning.verification import cost_per_million
from rightpool.planning.wording import cents, dollars, number
from rightpool.runtime.jobs import StoredJob
from rightpool.runtime.persistence import to_time


@dataclass(frozen=True, slots=True)
class Line:
    """One job. Dollars; None where nothing is known."""

    namespace: str
    name: str
    state: str
    pool: str | None
    chips: int | None
    capacity: str | None
    samples_per_second: float | None
    cost_per_hour: float | None
    cost_per_million: float | None
    bottleneck: str | None
    spent: float | None
    saved: float | None

    @property
    def holds_chips(self) -> bool:
        """Whether it costs anything now."""
        return self.chips is not None


_COLUMNS: Final = (
    Column("NAMESPACE"),
    Column("NAME"),
    Column("POOL"),
    Column("CHIPS", right=True),
    Column("SAMPLES/S", right=True, drop=3),
    Column("$/H", right=True),
    Column("$/M SAMPLES", right=True, drop=2),
    Column("BOTTLENECK", drop=4),
    Column("STATE"),
    Column("SPENT", right=True, drop=5),
    Column("SAVED", right=True, drop=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument("-A", "--all-namespaces", action="store_true")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 shown, 1 not possible."""

    def work(connection: Connection) -> None:
        namespace = None if arguments.all_namespaces else connection.namespace
        view = ClusterView(connection.client, connection.namespace)
        now = time.time()
        lines = ranked(view.jobs(namespace).values(), now)
        if arguments.output == "json":
            print_json(document(lines, now))
        else:
            print_jobs(Page(), lines, namespace)

    return carry_out(arguments, "top", work)


def ranked(jobs: Iterable[StoredJob], now: float) -> list[Line]:
    """The dearest first; of equal ones by name."""
    lines = [_line(job, now) for job in jobs]
    return sorted(lines, key=lambda line: (-(line.cost_per_hour or 0.0), line.namespace, line.name))


def _line(stored: StoredJob, now: float) -> Line:
    job, profile = stored.state, stored.status.profile
    ref = job.ref if job.finished is None and not job.spec.suspend else None
    account = job.account.settled(now)
    rate = None if profile is None or profile.samples_per_second is None or ref is None else profile.samples_per_second
    hourly = None if ref is None else ref.cost_per_hour
    known = stored.status.cost is not None
    return Line(
        namespace=job.key.namespace,
        name=job.key.name,
        state=state_of(job),
        pool=None if ref is None else ref.placement.pool,
        chips=None if ref is None else ref.placement.chips,
        capacity=None if ref is None else ref.placement.capacity.value,
        samples_per_second=None if rate is None else float(rate),
        cost_per_hour=hourly,
        cost_per_million=None if rate is None else cost_per_million(float(rate), hourly),
        bottleneck=None if profile is None or ref is None else profile.bottleneck,
        spent=account.spent if known else None,
        saved=account.saved if known and job.moves else None,
    )


def document(lines: list[Line], now: float) -> dict[str, Any]:
    """The object that this module's head describes."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "JobReport",
        "asOf": format_time(to_time(now)),
        "jobs": [
            {
                "namespace": line.namespace,
                "name": line.name,
                "state": line.state,
                "pool": line.pool,
                "chips": line.chips,
                "capacity": line.capacity,
                "samplesPerSecond": line.samples_per_second,
                "costPerHour": line.cost_per_hour,
                "costPerMillionSamples": line.cost_per_million,
                "bottleneck": line.bottleneck,
                "spent": line.spent,
                "saved": line.saved,
            }
            for line in lines
        ],
        "total": {
            "jobs": len(lines),
            "running": sum(line.holds_chips for line in lines),
            "chips": sum(line.chips or 0 for line in lines),
            "costPerHour": sum(line.cost_per_hour or 0.0 for line in lines),
            "spent": sum(line.spent or 0.0 for line in lines),
            "saved": sum(line.saved or 0.0 for line in lines),
            "unpriced": sum(line.holds_chips and line.cost_per_hour is None for line in lines),
        },
    }


def print_jobs(page: Page, lines: list[Line], namespace: str | None) -> None:
    """The table and its sums. namespace: None where all were asked for."""
    if not lines:
        where = "in this cluster" if namespace is None else f"in namespace {namespace}; -A looks in all"
        page.line(f"there are no ProfiledJobs {where}")
        return
    first = 0 if namespace is None else 1
    page.table(_COLUMNS[first:], [_row(line)[first:] for line in lines])
    total = document(lines, 0.0)["total"]
    told = f"{total['running']} of {total['jobs']} jobs hold {total['chips']} chips"
    told += f" for {dollars(total['costPerHour'])} an hour"
    if total["saved"]:
        told += f"; moves have saved {cents(total['saved'])}"
    if total["unpriced"]:
        told += f"; {total['unpriced']} without a price are not counted"
    page.line()
    page.line(told)


def _row(line: Line) -> list[str]:
    def money(value: float | None) -> str:
        return NOTHING if value is None else dollars(value).replace("$", "")

    def total(value: float | None) -> str:
        return NOTHING if value is None else cents(value).replace("$", "")

    return [
        line.namespace,
        line.name,
        NOTHING if line.pool is None else line.pool + (" (spot)" if line.capacity == "Spot" else ""),
        NOTHING if line.chips is None else str(line.chips),
        NOTHING if line.samples_per_second is None else number(line.samples_per_second),
        money(line.cost_per_hour),
        money(line.cost_per_million),
        line.bottleneck or NOTHING,
        line.state,
        total(line.spent),
        total(line.saved),
    ]
