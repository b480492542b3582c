"""`rightpool pools`: the pools with their chips, prices and free chips.

With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, PoolReport
    asOf               time of the request, RFC 3339
    notes              what could not be read, sentences
    pools              by name, each {name, accelerator, figures, measuredAt, nodes, chips: {total, free, growable},
                       chipsPerNode, slice, pricePerChipHour, spotPricePerChipHour, source, problems}. figures is
                       verified, unverified, declared or measured, with the time in measuredAt; prices are dollars,
                       null where unknown; slice is {topology, chips} or null; source is declared or discovered;
                       problems are sentences
    problems           of unusable pools, and of nodes that belong to no pool, each {pool, message}
"""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from rightpool.api.units import write_unix_time
from rightpool.cli.connection import Connection, add_connection_arguments, carry_out
from rightpool.cli.documents import print_document
from rightpool.cli.repeat import add_watch_argument, repeated
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.cli.view import ClusterView, FleetView
from rightpool.contract import GROUP, VERSION
from rightpool.hardware.accelerator import Accelerator
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
    Column("SLICE", drop=4),
    Column("SOURCE", drop=1),
)


_ACCELERATORS: Final = (
    Column("ACCELERATOR"),
    Column("VENDOR"),
    Column("FIGURES"),
    Column("MEMORY GB", right=True),
    Column("GB/S", right=True),
    Column("WATTS", right=True),
    Column("LIST $/CHIP-H", right=True),
    Column("SPOT", right=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    parser.add_argument(
        "--accelerators",
        action="store_true",
        help="the catalog: the keys that spec.accelerator may have; asks no cluster",
    )
    add_watch_argument(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; the exit status: 0 success, 1 error."""

    def work(connection: Connection) -> None:
        view = ClusterView(connection.client, connection.namespace)
        fleet = view.fleet()
        if arguments.output != "table":
            print_document(document(fleet, time.time()), arguments.output)
        else:
            print_pools(Page(), fleet)

    if arguments.accelerators:
        catalog = load_catalog()
        if arguments.output == "table":
            print_accelerators(Page(), catalog)
        else:
            print_document(accelerators_document(catalog), arguments.output)
        return 0
    return carry_out(arguments, "pools", repeated(work, arguments.watch))


def accelerators_document(catalog: Catalog) -> dict[str, Any]:
    """The catalog as an object: {apiVersion, kind: AcceleratorList, items: [{key, vendor, figures, memoryGigabytes,
    memoryGigabytesPerSecond, watts, pricePerChipHour, spotPricePerChipHour}]}, null where unknown."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "AcceleratorList",
        "items": [
            {
                "key": chip.key,
                "vendor": chip.vendor.name,
                "figures": figures_of(chip),
                "memoryGigabytes": chip.memory_bytes / 1e9,
                "memoryGigabytesPerSecond": chip.memory_bandwidth / 1e9,
                "watts": chip.power_watts,
                "pricePerChipHour": chip.list_price.on_demand,
                "spotPricePerChipHour": chip.list_price.spot,
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
        ]
        for item in accelerators_document(catalog)["items"]
    ]
    page.table(_ACCELERATORS, rows)


def figures_of(chip: Accelerator) -> str:
    """How sure it is what a chip can do."""
    if chip.measured is not None:
        return "measured"
    if chip.declared:
        return "declared"
    return "verified" if chip.verified else "unverified"


def _figures(chip: Accelerator) -> str:
    """With the day, where they were measured."""
    day = "" if chip.measured is None else f" {write_unix_time(chip.measured.at)[:10]}"
    return f"{figures_of(chip)}{day}"


def source_of(pool: Pool) -> str:
    """Whether the pool was discovered from node labels, or declared."""
    return "discovered" if pool.discovered else "declared"


def document(fleet: FleetView, now: float) -> dict[str, Any]:
    """The JSON object described in the module's docstring."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PoolReport",
        "asOf": write_unix_time(now),
        "notes": list(fleet.notes),
        "pools": [_pool(fleet.pools[name], fleet) for name in sorted(fleet.pools)],
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
        "figures": figures_of(pool.accelerator),
        "measuredAt": None if pool.accelerator.measured is None else write_unix_time(pool.accelerator.measured.at),
        "nodes": pool.nodes,
        "chips": {"total": pool.total, "free": pool.free, "growable": pool.growable},
        "chipsPerNode": pool.chips_per_node,
        "slice": None if pool.slice is None else {"topology": pool.slice.topology, "chips": pool.slice.chips},
        "pricePerChipHour": pool.price.on_demand,
        "spotPricePerChipHour": pool.price.spot,
        "source": source_of(pool),
        "problems": [problem.message for problem in fleet.problems if problem.pool == pool.name],
    }


def print_pools(page: Page, fleet: FleetView) -> None:
    """Print the table, the problems, and notes about what could not be read."""
    if fleet.pools:
        page.table(POOL_COLUMNS, [pool_cells(fleet.pools[name]) for name in sorted(fleet.pools)])
    else:
        page.line("there are no pools: create an AcceleratorPool, or label the nodes")
    if fleet.problems:
        page.heading("Problems")
        page.pairs((problem.pool or "nodes", problem.message) for problem in fleet.problems)
    if fleet.notes:
        page.heading("Notes")
        for note in fleet.notes:
            page.indented(note)


def pool_cells(pool: Pool) -> list[str]:
    """As the columns show it."""
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
        NOTHING if pool.slice is None else pool.slice.topology,
        source_of(pool),
    ]


def _price(price: float | None) -> str:
    """Up to four decimals, because some list prices have four; at least two."""
    if price is None:
        return NOTHING
    return f"{price:.4f}".rstrip("0").ljust(len(f"{price:.2f}"), "0")
