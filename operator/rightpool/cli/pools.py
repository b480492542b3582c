"""`rightpool pools`: the pools, with chips, prices and what is free.

With `-o json`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, PoolReport
    asOf               when it was asked, RFC 3339
    notes              what could not be looked at, sentences
    pools              by name, each {name, accelerator, nodes, chips: {total, free, growable}, chipsPerNode, slice,
                       pricePerChipHour, spotPricePerChipHour, source, problems}. Prices are dollars, null where
                       unknown; slice is {topology, chips} or null; source is declared or discovered; problems are
                       sentences
    problems           those of pools that can't be used, and of nodes that belong to none, each {pool, message}
"""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from rightpool.api.model import format_time
from rightpool.cli.connection import Connection, add_connection_arguments, carry_out
from rightpool.cli.table import NOTHING, Column, Page, print_json
from rightpool.cli.view import ClusterView, FleetView
from rightpool.contract import GROUP, VERSION
from rightpool.hardware.pool import Pool
from rightpool.runtime.persistence import to_time

_COLUMNS: Final = (
    Column("POOL"),
    Column("ACCELERATOR"),
    Column("NODES", right=True, drop=3),
    Column("CHIPS", right=True),
    Column("FREE", right=True),
    Column("CAN GROW BY", right=True, drop=5),
    Column("$/CHIP-H", right=True),
    Column("SPOT", right=True, drop=2),
    Column("SLICE", drop=4),
    Column("SOURCE", drop=1),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of this command."""
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 shown, 1 not possible."""

    def work(connection: Connection) -> None:
        view = ClusterView(connection.client, connection.namespace)
        fleet = view.fleet()
        if arguments.output == "json":
            print_json(document(fleet, time.time()))
        else:
            print_pools(Page(), fleet)

    return carry_out(arguments, "pools", work)


def source_of(pool: Pool) -> str:
    """Who made it: node labels, or somebody."""
    return "discovered" if pool.discovered else "declared"


def document(fleet: FleetView, now: float) -> dict[str, Any]:
    """The object that this module's head describes."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "PoolReport",
        "asOf": format_time(to_time(now)),
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
    """The table, what is wrong, and what could not be looked at."""
    if fleet.pools:
        page.table(_COLUMNS, [_row(fleet.pools[name]) for name in sorted(fleet.pools)])
    else:
        page.line("there are no pools: create an AcceleratorPool, or label the nodes")
    if fleet.problems:
        page.heading("Problems")
        page.pairs((problem.pool or "nodes", problem.message) for problem in fleet.problems)
    if fleet.notes:
        page.heading("Notes")
        for note in fleet.notes:
            page.indented(note)


def _row(pool: Pool) -> list[str]:
    return [
        pool.name,
        pool.accelerator.key,
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
    """Four digits behind the point where there are: some list prices have them."""
    if price is None:
        return NOTHING
    return f"{price:.4f}".rstrip("0").ljust(len(f"{price:.2f}"), "0")
