"""`rightpool pools`: the pools with their chips, prices and free chips.

With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, PoolReport
    asOf               time of the request, RFC 3339
    notes              what could not be read, sentences
    pools              by name, each {name, accelerator, figures, declaredIn, measuredAt, nodes,
                       chips: {total, free, growable},
                       chipsPerNode, slice, pricePerChipHour, spotPricePerChipHour, worthPerChipHour, idlePerHour,
                       priceSource, source, problems}.
                       figures is verified, unverified, declared, estimated or measured, with the time in measuredAt;
                       declaredIn is the field in which a user has named figures, or null; prices are dollars, null
                       where unknown, and idlePerHour is for what is free; worthPerChipHour is what one more chip would
                       bring the fleet, its price included, null where there are as many as are wanted; priceSource is
                       pool, values, catalog or null; slice is {topology, chips} or null; source is declared or
                       discovered; problems are sentences
    total              {perHour, usedPerHour, idlePerHour, unpriced}: dollars an hour of all chips that are there, of
                       those that pods hold and of the others; unpriced names the pools without a price, in none of them
    problems           of unusable pools, and of nodes that belong to no pool, each {pool, message}
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from typing import Any, Final

from rightpool.api.units import write_unix_time
from rightpool.api.wording import dollars
from rightpool.cli.connection import (
    CliError,
    Connection,
    add_connection_arguments,
    carry_out,
    connected,
    error_message,
)
from rightpool.cli.documents import document_head, print_document
from rightpool.cli.repeat import add_watch_argument, repeated
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.cli.view import ClusterView, FleetView
from rightpool.cluster.errors import ClusterError
from rightpool.hardware.accelerator import Accelerator, Price
from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.hardware.pool import Pool

POOL_COLUMNS: Final = (
    Column("POOL"),
    Column("ACCELERATOR"),
    Column("FIGURES", drop=6),
    Column("NODES", right=True, drop=3),
    Column("CHIPS", right=True),
    Column("FREE", right=True),
    Column("CAN GROW BY", right=True, drop=5),
    Column("$/CHIP-H", right=True),
    Column("SPOT", right=True, drop=2),
    Column("IDLE $/H", right=True, drop=2),
    Column("PRICE BY", drop=7),
    Column("SLICE", drop=4),
    Column("SOURCE", drop=1),
)


_WORTH: Final = Column("WORTH", right=True)
"""Shown where more chips of a pool are wanted than there are."""

_ACCELERATORS: Final = (
    Column("ACCELERATOR"),
    Column("VENDOR"),
    Column("FIGURES"),
    Column("MEMORY GB", right=True),
    Column("GB/S", right=True),
    Column("WATTS", right=True),
    Column("$/CHIP-H", right=True),
    Column("SPOT", right=True),
    Column("PRICE BY"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accelerators",
        action="store_true",
        help="the catalog: the keys that spec.accelerator may have, with what the chart's values say of them",
    )
    add_watch_argument(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit status: 0 success, 1 error."""

    def work(connection: Connection) -> None:
        view = ClusterView(connection.client, connection.namespace, arguments.operator_namespace)
        fleet = replace(view.fleet(), worth=view.worth())
        if arguments.output != "table":
            print_document(document(fleet, time.time()), arguments.output)
        else:
            print_pools(Page(), fleet)

    if arguments.accelerators:
        catalog, note = _catalog(arguments)
        if arguments.output == "table":
            print_accelerators(Page(), catalog)
        else:
            print_document(accelerators_document(catalog), arguments.output)
        for sentence in (*([] if note is None else [note]), *(problem.message for problem in catalog.problems)):
            print(f"rightpool pools: {sentence}", file=sys.stderr)
        return 0
    return carry_out(arguments, "pools", repeated(work, arguments.watch))


def _catalog(arguments: argparse.Namespace) -> tuple[Catalog, str | None]:
    """With the chart's values where a cluster answers; else the one that ships, with a sentence about that."""
    try:
        with connected(arguments) as connection:
            view = ClusterView(connection.client, connection.namespace, arguments.operator_namespace)
            hidden = view.read_values()
            return view.catalog, hidden
    except CliError as error:
        why = str(error)
    except ClusterError as error:
        why = error_message(error)
    return load_catalog(), f"the catalog that ships, without the values of a chart: {why}"


def accelerators_document(catalog: Catalog) -> dict[str, Any]:
    """The catalog as an object: {apiVersion, kind: AcceleratorList, items: [{key, vendor, figures, declaredIn,
    memoryGigabytes, memoryGigabytesPerSecond, watts, pricePerChipHour, spotPricePerChipHour, priceSource}]}, null where
    unknown."""
    return {
        **document_head("AcceleratorList"),
        "items": [
            {
                "key": chip.key,
                "vendor": chip.vendor.name,
                "figures": chip.figures.value,
                "declaredIn": _declared_in(chip),
                "memoryGigabytes": chip.memory_bytes / 1e9,
                "memoryGigabytesPerSecond": chip.memory_bandwidth / 1e9,
                "watts": chip.power_watts,
                "pricePerChipHour": chip.list_price.on_demand,
                "spotPricePerChipHour": chip.list_price.spot,
                "priceSource": _source(chip.list_price),
            }
            for _, chip in sorted(catalog.accelerators.items())
        ],
    }


def print_accelerators(page: Page, catalog: Catalog) -> None:
    """The catalog as a table."""
    rows = [
        [
            item["key"],
            item["vendor"],
            item["figures"],
            f"{item['memoryGigabytes']:.0f}",
            f"{item['memoryGigabytesPerSecond']:.0f}",
            NOTHING if item["watts"] is None else f"{item['watts']:.0f}",
            _price(item["pricePerChipHour"]),
            _price(item["spotPricePerChipHour"]),
            item["priceSource"] or NOTHING,
        ]
        for item in accelerators_document(catalog)["items"]
    ]
    page.table(_ACCELERATORS, rows)


def _figures(chip: Accelerator) -> str:
    """With the day, where they were measured."""
    day = "" if chip.measured is None else f" {write_unix_time(chip.measured.at)[:10]}"
    return f"{chip.figures}{day}"


def _declared_in(chip: Accelerator) -> str | None:
    return None if chip.declared is None else chip.declared.where


def _source(price: Price) -> str | None:
    return None if price.source is None else price.source.value


def source_of(pool: Pool) -> str:
    """Whether the pool was discovered from node labels, or declared."""
    return "discovered" if pool.discovered else "declared"


def document(fleet: FleetView, now: float) -> dict[str, Any]:
    """The JSON object described in the module's docstring."""
    return {
        **document_head("PoolReport", now),
        "notes": list(fleet.notes),
        "pools": [_pool(fleet.pools[name], fleet) for name in sorted(fleet.pools)],
        "total": _total(fleet),
        "problems": [
            {"pool": problem.pool, "message": problem.message}
            for problem in fleet.problems
            if problem.pool not in fleet.pools
        ],
    }


def _pool(pool: Pool, fleet: FleetView) -> dict[str, Any]:
    return {
        "name": pool.name,
        "accelerator": pool.accelerator.key,
        "figures": pool.accelerator.figures.value,
        "declaredIn": _declared_in(pool.accelerator),
        "measuredAt": None if pool.accelerator.measured is None else write_unix_time(pool.accelerator.measured.at),
        "nodes": pool.nodes,
        "chips": {"total": pool.total, "free": pool.free, "growable": pool.growable},
        "chipsPerNode": pool.chips_per_node,
        "slice": None if pool.slice is None else {"topology": pool.slice.topology, "chips": pool.slice.chips},
        "pricePerChipHour": pool.price.on_demand,
        "spotPricePerChipHour": pool.price.spot,
        "worthPerChipHour": _worth(pool, fleet),
        "idlePerHour": _hourly(pool, pool.free),
        "priceSource": _source(pool.price),
        "source": source_of(pool),
        "problems": [problem.message for problem in fleet.problems if problem.pool == pool.name],
    }


def _hourly(pool: Pool, chips: int) -> float | None:
    """Dollars an hour of so many chips; None where the pool has no price."""
    price = pool.price.spot if pool.price.on_demand is None else pool.price.on_demand
    return None if price is None else price * chips


def _worth(pool: Pool, fleet: FleetView) -> float | None:
    """Dollars an hour that one more chip would bring; None where there are as many as are wanted, or no price is."""
    price, more = _hourly(pool, 1), fleet.worth.get(pool.name)
    return None if price is None or more is None else price + more


def _total(fleet: FleetView) -> dict[str, Any]:
    pools = [fleet.pools[name] for name in sorted(fleet.pools)]
    whole = sum(_hourly(pool, pool.total) or 0.0 for pool in pools)
    idle = sum(_hourly(pool, pool.free) or 0.0 for pool in pools)
    unpriced = [pool.name for pool in pools if _hourly(pool, pool.total) is None]
    return {"perHour": whole, "usedPerHour": whole - idle, "idlePerHour": idle, "unpriced": unpriced}


def pools_summary(fleet: FleetView) -> str:
    """What the pools cost, in a sentence; empty where no price is known."""
    total = _total(fleet)
    if not total["perHour"]:
        return ""
    left_out = f"; without a price, and not counted: {', '.join(total['unpriced'])}" if total["unpriced"] else ""
    return (
        f"the chips cost {dollars(total['perHour'])} an hour: {dollars(total['usedPerHour'])} in use, "
        f"{dollars(total['idlePerHour'])} idle{left_out}"
    )


def print_pools(page: Page, fleet: FleetView) -> None:
    """Print the table, the problems, and notes about what could not be read."""
    if fleet.pools:
        pools = [fleet.pools[name] for name in sorted(fleet.pools)]
        worth = [_worth(pool, fleet) for pool in pools]
        if any(more is not None for more in worth):
            rows = [[*pool_cells(pool), _price(more)] for pool, more in zip(pools, worth, strict=True)]
            page.table((*POOL_COLUMNS, _WORTH), rows)
        else:
            page.table(POOL_COLUMNS, [pool_cells(pool) for pool in pools])
        summary = pools_summary(fleet)
        if summary:
            page.line()
            page.line(summary)
    else:
        page.line("there are no pools: create an AcceleratorPool, or label the nodes")
    if fleet.problems:
        page.heading("Problems")
        page.pairs((problem.pool or "nodes", problem.message) for problem in fleet.problems)
    page.notes(fleet.notes)


def pool_cells(pool: Pool) -> list[str]:
    """As the columns show it."""
    idle = _hourly(pool, pool.free)
    return [
        pool.name,
        pool.accelerator.key,
        _figures(pool.accelerator),
        str(pool.nodes),
        str(pool.total),
        str(pool.free),
        str(pool.growable) if pool.growable else NOTHING,
        _price(pool.price.on_demand),
        _price(pool.price.spot),
        NOTHING if idle is None else f"{idle:.2f}",
        _source(pool.price) or NOTHING,
        NOTHING if pool.slice is None else pool.slice.topology,
        source_of(pool),
    ]


def _price(price: float | None) -> str:
    """Up to four decimals, because some list prices have four; at least two."""
    if price is None:
        return NOTHING
    return f"{price:.4f}".rstrip("0").ljust(len(f"{price:.2f}"), "0")
