"""`rightpool report`: what namespaces, teams, jobs, pools, capacity types or days have spent and saved.

Reads the operator's books, one ConfigMap a namespace in the operator's own namespace, which outlive the jobs. They are
stored every ten minutes to an hour, so that they lag behind `rightpool top`. With `-o json`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, ChargebackReport
    asOf, since        time of the request, RFC 3339; the first day that is counted, YYYY-MM-DD
    bookedUntil        when the newest entry was booked, RFC 3339: later use is in no sum yet. null where nothing was
    notes              what is not as it should be, sentences
    by                 namespace, team, job, pool, capacity or day
    rows               highest cost first, days in their order, each {NAME of by, spent, saved, savedLow, savedHigh,
                       chipHours, goodput}: dollars; saved is net of what moves that did not pay have lost, and savedLow
                       to savedHigh is its 80% interval; goodput is the useful share of the chip-hours, null where no
                       chips were held. A job is NAMESPACE/NAME; those that the books do not keep apart are
                       NAMESPACE/(others). By pool and by day of all namespaces also {poolCost, idle, others}: dollars
                       for all chips that were there, for those that nobody held, and the rest, which other pods held
                       and what is not booked yet
    total              the same sums over all rows

With `-o csv` the rows with a header line; with `-o html` one page without external requests.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import re
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rightpool.api.units import write_unix_time
from rightpool.api.wording import cents, span
from rightpool.cli.books import read_all_books, read_all_pool_costs
from rightpool.cli.connection import Connection, add_connection_arguments, carry_out
from rightpool.cli.documents import document_head, print_document
from rightpool.cli.heartbeat import no_leader_text
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.planning.books.charge import Charge
from rightpool.planning.books.chargeback import DAYS, Chargeback
from rightpool.planning.books.pool_costs import PoolCost

BY: Final = ("namespace", "team", "job", "pool", "capacity", "day")
BY_POOL: Final = ("pool", "day")
"""Of these it is known what the pools cost."""

Costs = Mapping[str, PoolCost] | None
"""What pools cost, by the name of the row; None where rows are of something else."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since", type=days, default="30d", metavar="DAYS", help=f"how far back: 1d to {DAYS}d; default: 30d"
    )
    parser.add_argument("--by", choices=BY, default="namespace", help="what a row is of; default: namespace")
    add_connection_arguments(parser, ("table", "csv", "json", "html"), "a namespace; default: all")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit status: 0 success, 1 error."""

    def work(connection: Connection) -> None:
        now = time.time()
        since = first_day(arguments.since, now)
        books = read_all_books(connection.client, arguments.operator_namespace, arguments.namespace)
        rows = charges(books, arguments.by, since)
        costs: Costs = None
        if arguments.by in BY_POOL and arguments.namespace is None:
            costs = read_all_pool_costs(connection.client, arguments.operator_namespace).sums(arguments.by, since)
            rows = with_unused(rows, arguments.by, costs)
        newest = booked_until(books)
        quiet = no_leader_text(connection.client, arguments.operator_namespace, now)
        if arguments.output == "json":
            notes = () if quiet is None else (quiet,)
            print_document(document(rows, arguments.by, since, now, newest, notes, costs), "json")
        elif arguments.output == "csv":
            print(as_csv(rows, arguments.by, costs), end="")
        elif arguments.output == "html":
            print(as_html(rows, arguments.by, since, newest, costs))
        else:
            page = Page()
            _print_table(page, rows, arguments.by, since, arguments.operator_namespace, costs)
            if newest is not None:
                page.line(f"the newest entry was booked {span(max(0.0, now - newest))} ago: later use is not in it yet")
            if quiet is not None:
                page.line(quiet)

    return carry_out(arguments, "report", work)


def days(text: str) -> int:
    """How many `text`, such as 30d, says. Raises ArgumentTypeError."""
    match = re.fullmatch(r"([0-9]{1,3})d", text)
    if match is None or not 1 <= int(match[1]) <= DAYS:
        raise argparse.ArgumentTypeError(f"{text}: write a number of days from 1d to {DAYS}d, such as 30d")
    return int(match[1])


def first_day(days: int, now: float) -> str:
    """The first one of so many that end with today, YYYY-MM-DD."""
    return (datetime.fromtimestamp(now, UTC).date() - timedelta(days=days - 1)).isoformat()


def booked_until(books: Mapping[str, Chargeback]) -> float | None:
    """Unix seconds of the newest entry; None where there is none."""
    return max((each.newest for each in books.values() if each.newest is not None), default=None)


def charges(books: Mapping[str, Chargeback], by: str, since: str) -> list[tuple[str, Charge]]:
    """Sums from that day on, highest cost first, then by name; days in their order."""
    sums: dict[str, Charge] = {}
    first = datetime.fromisoformat(since).date()
    if by == "job":
        for namespace, each in books.items():
            sums |= {f"{namespace}/{job}": charge for job, charge in each.jobs.totals(first).items()}
        return _ranked(sums)
    if by == "day":
        for each in books.values():
            for day, rows in each.rows.items():
                if day >= since:  # what is older than all days has none
                    sums[day] = sums.get(day, Charge()).plus(*rows.values())
        return sorted(sums.items())
    for namespace, each in books.items():
        for key, charge in each.totals(first).items():
            name = namespace if by == "namespace" else str(getattr(key, by))
            sums[name] = sums.get(name, Charge()).plus(charge)
    return _ranked(sums)


def with_unused(rows: list[tuple[str, Charge]], by: str, costs: Mapping[str, PoolCost]) -> list[tuple[str, Charge]]:
    """Also pools and days that no job has used: after the others, and days in their order."""
    known = {name for name, _ in rows}
    every = [*rows, *((name, Charge()) for name in sorted(costs) if name not in known)]
    return sorted(every) if by == "day" else every


def _ranked(sums: Mapping[str, Charge]) -> list[tuple[str, Charge]]:
    return sorted(sums.items(), key=lambda row: (-row[1].spent, row[0]))


def _figures(charge: Charge, cost: PoolCost | None = None) -> dict[str, float | None]:
    goodput = min(1.0, charge.useful_seconds / charge.chip_seconds) if charge.chip_seconds > 0.0 else None
    spent = round(charge.spent, 2)
    figures = {
        "spent": spent,
        "saved": round(charge.saved - charge.lost, 2),
        "savedLow": round(charge.saved_range[0], 2),
        "savedHigh": round(charge.saved_range[1], 2),
        "chipHours": round(charge.chip_seconds / 3600.0, 3),
        "goodput": None if goodput is None else round(goodput, 3),
    }
    if cost is None:
        return figures
    whole, idle = round(cost.cost, 2), round(cost.idle, 2)
    return figures | {"poolCost": whole, "idle": idle, "others": round(whole - idle - spent, 2)}


def _cost_of(name: str, costs: Costs) -> PoolCost | None:
    """Of a row; nothing where its chips have no price."""
    return None if costs is None else costs.get(name, PoolCost())


def _whole(costs: Costs) -> PoolCost | None:
    return None if costs is None else PoolCost(*map(sum, zip(PoolCost(), *costs.values(), strict=True)))


def _total(rows: list[tuple[str, Charge]]) -> Charge:
    total = Charge()
    for _, charge in rows:
        total = total.plus(charge)
    return total


def document(
    rows: list[tuple[str, Charge]],
    by: str,
    since: str,
    now: float,
    newest: float | None,
    notes: Iterable[str] = (),
    costs: Costs = None,
) -> dict[str, Any]:
    """The JSON object described in the module's docstring."""
    return {
        **document_head("ChargebackReport", now),
        "since": since,
        "bookedUntil": None if newest is None else write_unix_time(newest),
        "notes": list(notes),
        "by": by,
        "rows": [{by: name, **_figures(charge, _cost_of(name, costs))} for name, charge in rows],
        "total": _figures(_total(rows), _whole(costs)),
    }


def as_csv(rows: list[tuple[str, Charge]], by: str, costs: Costs = None) -> str:
    """The rows with a header line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((by, *_figures(Charge(), _whole(costs))))
    for name, charge in rows:
        figures = _figures(charge, _cost_of(name, costs)).values()
        writer.writerow((_escaped(name), *("" if value is None else value for value in figures)))
    return text.getvalue()


def _escaped(text: str) -> str:
    """A label's value that a spreadsheet would not take for a formula."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def as_html(rows: list[tuple[str, Charge]], by: str, since: str, newest: float | None, costs: Costs = None) -> str:
    """One page, readable in dark and light. newest: Unix seconds of the newest entry."""
    head = "".join(f"<th scope=col>{title.capitalize()}</th>" for title in (by, *_titles(costs)))
    body = "".join(
        f"<tr><th scope=row>{html.escape(name or '(none)')}</th>{_cells(charge, _cost_of(name, costs))}</tr>"
        for name, charge in rows
    )
    total = _cells(_total(rows), _whole(costs))
    title = f"Rightpool: cost by {by} since {since}"
    booked = "Nothing was booked" if newest is None else f"Booked until {write_unix_time(round(newest))}"
    style = (
        ":root{color-scheme:light dark}body{font:16px/1.5 system-ui;margin:2rem}table{border-collapse:collapse}"
        "th,td{padding:.3rem 1rem;border-bottom:1px solid #8888;text-align:right}th:first-child{text-align:left}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
        f"<h1>{title}</h1><p>{booked}</p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody><tfoot><tr><th scope=row>Total</th>{total}</tr></tfoot></table></html>"
    )


def _cells(charge: Charge, cost: PoolCost | None) -> str:
    return "".join(f"<td>{html.escape(text)}</td>" for text in _texts(charge, cost))


def _titles(costs: Costs) -> tuple[str, ...]:
    """Of the columns of `_texts`."""
    return ("SPENT", "SAVED", "CHIP-HOURS", "GOODPUT", *(() if costs is None else ("IDLE", "OTHERS", "ALL CHIPS")))


def _texts(charge: Charge, cost: PoolCost | None) -> list[str]:
    figures = _figures(charge, cost)
    goodput = figures["goodput"]
    more = () if cost is None else (figures["idle"], figures["others"], figures["poolCost"])
    return [
        cents(figures["spent"] or 0.0),
        _saved(charge),
        f"{figures['chipHours']:,.1f}",
        NOTHING if goodput is None else f"{goodput:.0%}",
        *(cents(amount or 0.0) for amount in more),
    ]


def _saved(charge: Charge) -> str:
    """With the half of its 80% interval."""
    low, high = charge.saved_range
    net = cents(charge.saved - charge.lost)
    return net if high - low < 0.01 else f"{net} ± {cents((high - low) / 2.0)}"


def _print_table(
    page: Page, rows: list[tuple[str, Charge]], by: str, since: str, where: str, costs: Costs = None
) -> None:
    if not rows:
        page.line(f"nothing was booked since {since}; books are in {where} (--operator-namespace)")
        return
    columns = (Column(by.upper()), *(Column(title, right=True) for title in _titles(costs)))
    page.table(columns, [[name or NOTHING, *_texts(charge, _cost_of(name, costs))] for name, charge in rows])
    page.line()
    total = _texts(_total(rows), _whole(costs))
    page.line(f"since {since}: {total[0]} for {total[2]} chip-hours; moves have saved {total[1]}")
    if costs:
        idle, others, whole = total[4:]
        page.line(
            f"the chips cost {whole}: {total[0]} for these jobs, {idle} idle, {others} for others or not booked yet"
        )
