"""`rightpool pools`: chips, prices and problems."""

from __future__ import annotations

import json

from rightpool.cli import pools as module
from rightpool.cli.main import main
from rightpool.cli.pools import accelerators_document, document, print_accelerators, print_pools
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PODS
from rightpool.hardware.catalog import load_catalog
from tests.unit.cli.cluster import NOW, FakeClient, node, pod, pool, printed, two_pools, view_of


def output(client: FakeClient, width: int | None = None) -> str:
    page, stream = printed(width)
    print_pools(page, view_of(client).fleet())
    return stream.getvalue()


def rows(client: FakeClient) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in output(client).splitlines() if line.strip()}


def test_pools_with_their_chips_and_prices() -> None:
    client = two_pools()
    client.add(PODS, pod("job", "team", "a100-0"))
    shown = rows(client)
    assert shown["a100"] == ["a100", "A100-SXM4-80GB", "verified", "2", "16", "12", "-", "5.07", "-", "-", "declared"]
    assert shown["a10g"] == ["a10g", "A10G-24GB", "unverified", "2", "8", "8", "-", "1.006", "-", "-", "declared"]


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


def test_a_note_names_pools_whose_free_chips_are_unknown() -> None:
    client = two_pools()
    client.forbidden.add(NODES)
    client.objects[ACCELERATOR_POOLS][0]["status"]["chips"] = {"total": 16}
    assert "chips in use of a100 are not counted" in " ".join(view_of(client).fleet().notes)
    assert rows(client)["a100"][4:6] == ["16", "16"]


def test_without_pools() -> None:
    assert "there are no pools" in output(FakeClient())


def test_narrow_terminals_omit_less_important_columns() -> None:
    text = output(two_pools(), 60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "FREE" in text and "$/CHIP-H" in text and "SLICE" not in text


def test_the_document_has_its_documented_keys() -> None:
    found = document(view_of(two_pools()).fleet(), NOW)
    json.dumps(found, allow_nan=False)
    assert list(found) == ["apiVersion", "kind", "asOf", "notes", "pools", "problems"]
    for key in (*found, *found["pools"][0]):
        assert key in (module.__doc__ or "")


def test_the_catalog_needs_no_cluster() -> None:
    catalog = load_catalog()
    found = accelerators_document(catalog)
    json.dumps(found, allow_nan=False)
    a10g = next(item for item in found["items"] if item["key"] == "A10G-24GB")
    assert (a10g["vendor"], round(a10g["memoryGigabytes"])) == ("NVIDIA", 24)
    page, stream = printed()
    print_accelerators(page, catalog)
    assert all(key in stream.getvalue() for key in catalog.accelerators)
    assert main(["pools", "--accelerators"]) == 0
