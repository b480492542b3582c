"""`rightpool history [NAME]`: the ledger, of one job or of all in the namespace, the newest first.

With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, History
    asOf               time of the request, RFC 3339
    items              the newest first, each {namespace, name, entry}; entry is one of status.history, its numbers as
                       JSON numbers, with unit: Samples or Steps

A status keeps the last seven decisions of a job. With `--deleted`, those of jobs that do not exist any more, by the
operator's books.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rightpool.api.ledger import LedgerEntry
from rightpool.api.wording import number, short_place, span
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.books import read_all_books
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, add_everywhere_argument, carry_out
from rightpool.cli.documents import document_head, print_document
from rightpool.cli.jobs import add_job_argument, job_key, missing_job, no_jobs_text, stored_jobs
from rightpool.cli.status_document import status_document
from rightpool.cli.table import NOTHING, Column, Page, dollar_cell
from rightpool.planning.books.chargeback import Chargeback
from rightpool.planning.jobs.job import JobKey
from rightpool.reporting.stored_job import StoredJob

Entries = list[tuple[JobKey, LedgerEntry]]


def _columns(units: bool) -> tuple[Column, ...]:
    """units: whether cells name their unit, because not every job was measured in samples."""
    return (
        Column("ENDED"),
        Column("NAMESPACE"),
        Column("NAME"),
        Column("ID"),
        Column("FROM"),
        Column("TO"),
        Column("THROUGHPUT" if units else "SAMPLES/S", right=True, drop=2),
        Column("PROMISED", right=True, drop=3),
        Column("DELIVERED", right=True, drop=3),
        Column("$/M BEFORE", right=True, drop=1),
        Column("$/M AFTER", right=True, drop=1),
        Column("OUTCOME"),
        Column("WHY", wraps=True),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_argument(parser, "all jobs of the namespace")
    add_everywhere_argument(parser)
    parser.add_argument("--deleted", action="store_true", help="show jobs that do not exist any more")
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 listed, 1 not possible."""

    def work(connection: Connection) -> None:
        key = None if arguments.name is None else job_key(arguments.name, connection.namespace)
        namespace = key.namespace if key is not None else None if arguments.all_namespaces else connection.namespace
        jobs = stored_jobs(connection.client, namespace)
        if arguments.deleted:
            books = read_all_books(connection.client, arguments.operator_namespace, namespace)
            alive = {stored.job.uid for stored in jobs.values()}
            entries = [each for each in outlived(books, alive) if key in (None, each[0])]
        elif key is not None and key not in jobs:
            raise CliError(f"{missing_job(connection.client, key)} (`--deleted` shows jobs that are gone)")
        else:
            entries = entries_of(stored for name, stored in jobs.items() if key in (None, name))
        now = time.time()
        if arguments.output == "table" and not jobs and not arguments.deleted:
            Page().line(no_jobs_text(namespace))
        elif arguments.output == "table":
            print_entries(Page(), entries, now)
        else:
            print_document(history_document(entries, now), arguments.output)

    return carry_out(arguments, "history", work)


def entries_of(jobs: Iterable[StoredJob]) -> Entries:
    """The newest first."""
    found = [(stored.job.key, entry) for stored in jobs for entry in stored.job.state.history]
    return sorted(found, key=lambda each: (-each[1].finished_at, each[0]))


def outlived(books: Mapping[str, Chargeback], alive: Collection[str]) -> Entries:
    """Of jobs that are gone, the newest first. alive: uids of those that exist."""
    found = [
        (JobKey(namespace, move.job), move.entry)
        for namespace, each in books.items()
        for move in each.moves
        if move.uid not in alive
    ]
    return sorted(found, key=lambda each: (-each[1].finished_at, each[0]))


def history_document(entries: Entries, now: float) -> dict[str, Any]:
    """The object that this module's head describes."""
    return {
        **document_head("History", now),
        "items": [
            {"namespace": key.namespace, "name": key.name, "entry": status_document(entry)} for key, entry in entries
        ],
    }


def print_entries(page: Page, entries: Entries, now: float) -> None:
    """The table."""
    if not entries:
        page.line("nothing has been moved")
        return
    units = any(entry.unit is WorkUnit.STEPS for _, entry in entries)
    page.table(_columns(units), [_row(key, entry, now, units) for key, entry in entries])


def _row(key: JobKey, entry: LedgerEntry, now: float, units: bool) -> list[str]:
    unit = f" {entry.unit.plural}" if units else ""

    def rate(value: float | None) -> str:
        return NOTHING if value is None else f"{number(value)}{unit}{'/s' if unit else ''}"

    return [
        f"{span(max(0.0, now - entry.finished_at))} ago",
        key.namespace,
        key.name,
        entry.id,
        short_place(entry.source),
        short_place(entry.target),
        rate(entry.baseline_throughput),
        rate(entry.predicted_throughput),
        rate(entry.realised_throughput),
        dollar_cell(entry.baseline_cost_per_million, unit),
        dollar_cell(entry.realised_cost_per_million, unit),
        entry.outcome.value,
        entry.message or entry.reason,
    ]
