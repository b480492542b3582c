"""The price of a pool that two operators on one cluster know differently, each by values of its own chart."""

from __future__ import annotations

import json

import pytest

from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.hardware.chart_values import with_values
from rightpool.runtime.act.pool_publisher import PoolPublisher
from rightpool.runtime.observe.pool_inventory import take_inventory
from rightpool.runtime.observe.usage import ChipUsage
from tests.unit.runtime.test_pool_publisher import NODES, NOW, SPEC, Lister, Server, publisher_of


def test_two_operators_with_other_prices_say_so_once() -> None:
    """Two releases on one cluster, each with prices of its own, or one with none."""
    chip = {"memory": "48Gi", "memoryGigabytesPerSecond": "864", "teraflops": {"bf16": "181"}}
    server = Server({**SPEC, "accelerator": "X1", "chip": chip})
    priced = with_values(load_catalog(), json.dumps({"prices": {"X1": {"perChipHour": "2"}}}))
    catalogs = [priced, load_catalog()]
    publishers = [publisher_of(server) for _ in catalogs]

    def cycle(which: int, now: float) -> int:
        usage = ChipUsage(Lister({None: []}), interval=0.0)
        fleet = take_inventory([server.pool], NODES, [], usage, catalogs[which])
        return publishers[which].publish(fleet, now)

    for moment in range(8):
        cycle(moment % 2, NOW + moment)
    assert [cycle(moment % 2, NOW + moment) for moment in range(8, 20)] == [0] * 12
    (known,) = (one for one in server.pool["status"]["conditions"] if one["type"] == "PriceKnown")
    assert (known["status"], known["reason"]) == ("False", "PriceContradictory")
    assert known["message"] == (
        "two operators differ; $2 for a chip-hour, by catalog.prices of the chart's values: give both the same "
        "catalog.prices, or set spec.price"
    )
    before = server.statements()
    assert before.count(("Warning", "PriceContradictory")) == 1 and len(before) <= 3
    catalogs[1] = catalogs[0]  # the other release is upgraded
    assert [cycle(moment % 2, NOW + moment) for moment in range(20, 26)] == [0, 1, 0, 0, 0, 0]
    assert server.statements()[len(before) :] == [("Normal", "PriceFromValues")]


def test_that_another_operator_is_gone_is_seen_within_a_day() -> None:
    server = Server(SPEC)
    catalog = with_values(load_catalog(), json.dumps({"prices": {SPEC["accelerator"]: {"perChipHour": "2"}}}))
    mine, other = publisher_of(server), publisher_of(server)

    def cycle(publisher: PoolPublisher, prices: Catalog, now: float) -> str:
        fleet = take_inventory([server.pool], NODES, [], ChipUsage(Lister({None: []}), interval=0.0), prices)
        publisher.publish(fleet, now)
        return str(next(one["reason"] for one in server.pool["status"]["conditions"] if one["type"] == "PriceKnown"))

    for moment in range(6):
        cycle(*((mine, catalog) if moment % 2 else (other, load_catalog())), NOW + moment)
    assert cycle(mine, catalog, NOW + 7) == "PriceContradictory"
    assert [cycle(mine, catalog, NOW + 86_420 + moment) for moment in range(3)] == ["PriceFromValues"] * 3


@pytest.mark.parametrize("dollars", [("2", "3"), ("2", "3", "4")])
def test_what_they_pay_is_no_price_that_changes_all_the_time(dollars: tuple[str, ...]) -> None:
    """Nothing is written for hours, and the history tells of no market, whose prices last for minutes."""
    server = Server(SPEC)
    prices = [{"prices": {SPEC["accelerator"]: {"perChipHour": each}}} for each in dollars]
    catalogs = [with_values(load_catalog(), json.dumps(values)) for values in prices]
    publishers = [publisher_of(server) for _ in dollars]
    usage = ChipUsage(Lister({None: []}), interval=0.0)
    writes = []
    for moment in range(200):
        which = moment % len(dollars)
        fleet = take_inventory([server.pool], NODES, [], usage, catalogs[which])
        writes.append(publishers[which].publish(fleet, NOW + 60.0 * moment))
    assert sum(writes[20:]) == 0
    assert len(server.pool["status"]["prices"]) <= len(dollars)
