"""`rightpool pools`: chips, prices and problems."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from rightpool.cli import connection as connection_module
from rightpool.cli import pools as module
from rightpool.cli.connection import Connection
from rightpool.cli.main import main
from rightpool.cli.pools import accelerators_document, document, print_accelerators, print_pools
from rightpool.cluster.resources import ACCELERATOR_POOLS, CONFIG_MAPS, NODES, PLACEMENT_POLICIES, PODS
from rightpool.contract import CATALOG_KEY, LABEL_CATALOG
from rightpool.hardware.accelerator import Figures
from rightpool.hardware.catalog import load_catalog
from tests.unit.cli.cluster import (
    A100,
    NOW,
    FakeClient,
    condition,
    moment,
    node,
    pod,
    pool,
    printed,
    two_pools,
    view_of,
)


def output(client: FakeClient, width: int | None = None) -> str:
    page, stream = printed(width)
    print_pools(page, view_of(client).fleet())
    return stream.getvalue()


def rows(client: FakeClient) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in output(client).splitlines() if line.strip()}


def test_what_one_more_chip_is_worth_where_more_are_wanted_than_there_are() -> None:
    client = two_pools()
    status = {"chips": [{"pool": "a100", "perChipHour": "1.03"}]}
    client.add(PLACEMENT_POLICIES, {"metadata": {"name": "default"}, "spec": {}, "status": status})
    view = view_of(client)
    fleet = replace(view.fleet(), worth=view.worth())
    page, stream = printed(None)
    print_pools(page, fleet)
    shown = {line.split()[0]: line.split() for line in stream.getvalue().splitlines() if line.strip()}
    assert (shown["POOL"][-1], shown["a100"][-1], shown["a10g"][-1]) == ("WORTH", "6.10", "-"), "5.07 and 1.03 more"
    worth = {one["name"]: one["worthPerChipHour"] for one in document(fleet, NOW)["pools"]}
    assert worth == {"a100": pytest.approx(6.10), "a10g": None}


@pytest.mark.parametrize("status", [{}, {"chips": "many"}], ids=["none", "unreadable"])
def test_where_nothing_is_known_of_worth_nothing_is_shown(status: dict[str, Any]) -> None:
    client = two_pools()
    client.add(PLACEMENT_POLICIES, {"metadata": {"name": "default"}, "spec": {}, "status": status})
    assert view_of(client).worth() == {} == view_of(two_pools()).worth()
    assert "WORTH" not in output(client)


def test_pools_with_their_chips_and_prices() -> None:
    client = two_pools()
    client.add(PODS, pod("job", "team", "a100-0"))
    shown = rows(client)
    assert shown["a100"] == [
        "a100",
        "A100-SXM4-80GB",
        "verified",
        "2",
        "16",
        "12",
        "-",
        "5.07",
        "-",
        "60.84",
        "pool",
        "-",
        "declared",
    ]
    assert shown["a10g"] == [
        "a10g",
        "A10G-24GB",
        "unverified",
        "2",
        "8",
        "8",
        "-",
        "1.006",
        "-",
        "8.05",
        "pool",
        "-",
        "declared",
    ]


def test_discovered_pools_are_shown_before_the_operator_has_written_them() -> None:
    client = FakeClient()
    client.add(NODES, node("n", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "nvidia.com/gpu", 8))
    (found,) = view_of(client).fleet().pools.values()
    assert found.discovered
    assert "discovered" in output(client)


def test_problems_name_their_pool() -> None:
    client = two_pools()
    client.add(ACCELERATOR_POOLS, pool("odd", "H9000", 8, {"pool": "odd"}, "1.00"))
    client.add(ACCELERATOR_POOLS, pool("none", "L4-24GB", 8, {"pool": "none"}, "1.00"))
    text = output(client)
    assert "Problems" in text and "H9000" in text and "no node matches" in text
    found = document(view_of(client).fleet(), NOW)
    assert [problem["pool"] for problem in found["problems"]] == ["odd"]
    assert [entry["problems"] != [] for entry in found["pools"]] == [False, False, True]


def test_an_unreadable_pool_is_a_problem_and_no_crash() -> None:
    client = two_pools()
    client.add(ACCELERATOR_POOLS, {"metadata": {"name": "broken"}, "spec": {"chipsPerNode": "eight"}})
    assert "broken" in output(client)
    client.forbidden.add(NODES)
    assert "broken" in output(client)


def test_without_access_to_nodes_the_pools_status_is_used() -> None:
    client = two_pools()
    client.forbidden.add(NODES)
    text = output(client)
    assert "counted last" in text and "no node matches" not in text
    found = document(view_of(client).fleet(), NOW)
    assert found["pools"][0]["chips"] == {"total": 16, "free": 16, "growable": 0}
    assert found["pools"][0]["pricePerChipHour"] == 5.07


@pytest.mark.parametrize("counted_by", ["nodes", "the pools' status"])
def test_prices_of_before_are_read_whoever_counts_the_chips(counted_by: str) -> None:
    client = two_pools()
    if counted_by != "nodes":
        client.forbidden.add(NODES)
    client.objects[ACCELERATOR_POOLS][0]["status"]["prices"] = [{"since": moment(3600.0), "perChipHour": "4.00"}]
    assert [price.per_chip_hour for price in view_of(client).fleet().pools["a100"].prices] == [4.0]


def test_a_note_names_pools_whose_free_chips_are_unknown() -> None:
    client = two_pools()
    client.forbidden.add(NODES)
    client.objects[ACCELERATOR_POOLS][0]["status"]["chips"] = {"total": 16}
    assert "chips in use of a100 are not counted" in " ".join(view_of(client).fleet().notes)
    assert rows(client)["a100"][4:6] == ["16", "16"]


def test_what_is_idle_and_in_use_is_what_the_pools_cost() -> None:
    client = two_pools()
    client.add(PODS, pod("job", "team", "a100-0"))
    client.add(ACCELERATOR_POOLS, pool("unpriced", "CPU", 1, {"pool": "unpriced"}, None))
    client.add(NODES, node("u", {"pool": "unpriced"}, "nvidia.com/gpu", 1))
    found = document(view_of(client).fleet(), NOW)
    idle = {each["name"]: each["idlePerHour"] for each in found["pools"]}
    assert idle == {"a100": pytest.approx(12 * 5.07), "a10g": pytest.approx(8 * 1.006), "unpriced": None}
    total = found["total"]
    assert total["perHour"] == pytest.approx(16 * 5.07 + 8 * 1.006)
    assert total["idlePerHour"] == pytest.approx(12 * 5.07 + 8 * 1.006)
    assert total["usedPerHour"] + total["idlePerHour"] == pytest.approx(total["perHour"])
    assert total["unpriced"] == ["unpriced"]
    sentence = "the chips cost $89.17 an hour: $20.28 in use, $68.89 idle; without a price, and not counted: unpriced"
    assert sentence in " ".join(output(client).split())


def test_without_pools() -> None:
    assert "there are no pools" in output(FakeClient())


def test_narrow_terminals_omit_less_important_columns() -> None:
    text = output(two_pools(), 60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "FREE" in text and "$/CHIP-H" in text and "SLICE" not in text


def test_the_document_has_its_documented_keys() -> None:
    found = document(view_of(two_pools()).fleet(), NOW)
    json.dumps(found, allow_nan=False)
    assert list(found) == ["apiVersion", "kind", "asOf", "notes", "pools", "total", "problems"]
    for key in (*found, *found["pools"][0]):
        assert key in (module.__doc__ or "")


VALUES = {
    "chips": {"A100-SXM4-80GB": {"watts": "300"}, "L4-24GB": {"watts": "none"}, "H9000": {"watts": "1"}},
    "prices": {"A10G-24GB": {"perChipHour": "0.5"}},
}


def with_values(client: FakeClient, values: Any, namespace: str = "rightpool-system") -> FakeClient:
    labels, data = {LABEL_CATALOG: "true"}, {CATALOG_KEY: json.dumps(values)}
    about = {"name": "rightpool-catalog", "namespace": namespace, "labels": labels}
    client.add(CONFIG_MAPS, {"metadata": about, "data": data})
    return client


def test_what_the_charts_values_say_is_the_users() -> None:
    client = with_values(two_pools(), VALUES)
    del client.objects[ACCELERATOR_POOLS][1]["spec"]["price"]
    client.add(ACCELERATOR_POOLS, pool("l4", "L4-24GB", 8, {"pool": "l4"}, "1.00"))
    found = document(view_of(client).fleet(), NOW)
    a100, a10g, l4 = found["pools"]
    assert (a100["figures"], a100["declaredIn"]) == ("declared", "catalog.chips.A100-SXM4-80GB of the chart's values")
    assert (a100["priceSource"], a100["pricePerChipHour"]) == ("pool", 5.07)
    assert (a10g["figures"], a10g["priceSource"], a10g["pricePerChipHour"]) == ("unverified", "values", 0.5)
    assert any("catalog.chips.L4-24GB.watts" in problem for problem in l4["problems"])
    assert ["catalog.chips.H9000.vendor" in problem["message"] for problem in found["problems"]] == [True]
    assert "declared" in rows(client)["a100"] and "values" in rows(client)["a10g"]


def test_an_estimated_chip_says_the_remedy_once() -> None:
    client = two_pools()
    odd = pool("odd", "X1", 8, A100, "1.00")
    odd["spec"]["chip"] = {"memory": "48Gi"}
    client.objects[ACCELERATOR_POOLS].clear()
    odd = client.add(ACCELERATOR_POOLS, odd)
    for forbidden in (False, True):
        if forbidden:
            client.forbidden.add(NODES)
            message = document(view_of(client).fleet(), NOW)["pools"][0]["problems"][0]
            kinds = ("FiguresVerified", "Calibrated")
            odd["status"]["conditions"] = [condition(kind, "False", "PoolUncalibrated", message) for kind in kinds]
        found = next(entry for entry in document(view_of(client).fleet(), NOW)["pools"] if entry["name"] == "odd")
        assert found["figures"] == "estimated"
        assert ["rightpool calibrate odd" in problem for problem in found["problems"]] == [True]


def test_values_that_a_user_may_not_read_are_told_where_they_matter() -> None:
    client = with_values(two_pools(), VALUES)
    client.forbidden.add(CONFIG_MAPS)
    found = view_of(client).fleet()
    assert found.pools["a100"].accelerator.figures is Figures.DECLARED, "they are in the chart's own namespace"
    client.hidden.add(CONFIG_MAPS)
    assert not view_of(client).fleet().notes, "no pool has anything from them"
    status = client.objects[ACCELERATOR_POOLS][0]["status"]
    status["conditions"] = [condition("FiguresVerified", "False", "ChipFromValues")]
    (note,) = view_of(client).fleet().notes
    assert note.startswith("figures and prices of the chart's values are left out: configmaps is forbidden")


def test_a_tenants_config_map_changes_no_price() -> None:
    client = with_values(two_pools(), VALUES, namespace="vision")
    found = document(view_of(client).fleet(), NOW)
    assert [entry["figures"] for entry in found["pools"]] == ["verified", "unverified"]
    assert found == document(view_of(two_pools()).fleet(), NOW)


def test_values_in_another_namespace_than_the_one_that_was_asked_are_told() -> None:
    client = with_values(two_pools(), VALUES, namespace="platform")
    status = client.objects[ACCELERATOR_POOLS][0]["status"]
    status["conditions"] = [condition("FiguresVerified", "False", "ChipFromValues")]
    (note,) = view_of(client).fleet().notes
    assert "namespace rightpool-system has no figures and prices" in note and "--operator-namespace" in note


def test_the_operators_namespace_can_be_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = with_values(
        with_values(two_pools(), VALUES, namespace="platform"), {"prices": {"A10G-24GB": {"perChipHour": "9"}}}
    )
    del client.objects[ACCELERATOR_POOLS][1]["spec"]["price"]
    connection = Connection(client, "vision")  # type: ignore[arg-type]
    monkeypatch.setattr(connection_module, "connected", lambda _: nullcontext(connection))
    prices = {}
    for words in ([], ["--operator-namespace", "platform"]):
        assert main(["pools", "-o", "json", *words]) == 0
        prices[len(words)] = json.loads(capsys.readouterr().out)["pools"][1]["pricePerChipHour"]
    assert prices == {0: 9.0, 2: 0.5}


def test_accelerators_have_the_charts_values(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = with_values(FakeClient(), VALUES)
    monkeypatch.setattr(module, "connected", lambda _: nullcontext(Connection(client, "default")))  # type: ignore[arg-type]
    assert main(["pools", "--accelerators", "-o", "json"]) == 0
    printed_, complaints = capsys.readouterr()
    items = {item["key"]: item for item in json.loads(printed_)["items"]}
    assert (items["A100-SXM4-80GB"]["figures"], items["A100-SXM4-80GB"]["watts"]) == ("declared", 300.0)
    assert (items["A10G-24GB"]["priceSource"], items["A10G-24GB"]["pricePerChipHour"]) == ("values", 0.5)
    assert items["T4-16GB"]["priceSource"] == "catalog" and items["T4-16GB"]["declaredIn"] is None
    assert "catalog.chips.L4-24GB.watts" in complaints


def test_the_catalog_that_ships_needs_no_cluster() -> None:
    catalog = load_catalog()
    found = accelerators_document(catalog)
    json.dumps(found, allow_nan=False)
    a10g = next(item for item in found["items"] if item["key"] == "A10G-24GB")
    assert (a10g["vendor"], round(a10g["memoryGigabytes"])) == ("NVIDIA", 24)
    page, stream = printed()
    print_accelerators(page, catalog)
    assert all(key in stream.getvalue() for key in catalog.accelerators)
    assert main(["pools", "--accelerators"]) == 0
