"""`rightpool pools`: what is there, what it costs, and what is wrong."""

from __future__ import annotations

import json

from rightpool.cli import pools as module
from rightpool.cli.pools import document, print_pools
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PODS
from tests.unit.cli.cluster import NOW, FakeClient, node, pod, pool, printed, two_pools, view_of


def told(client: FakeClient, width: int | None = None) -> str:
    page, stream = printed(width)
    print_pools(page, view_of(client).fleet())
    return stream.getvalue()


def rows(client: FakeClient) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in told(client).splitlines() if line.strip()}


def test_pools_with_their_chips_and_prices() -> None:
    client = two_pools()
    client.add(PODS, pod("job", "team", "a100-0"))
    shown = rows(client)
    assert shown["a100"] == ["a100", "A100-SXM4-80GB", "2", "16", "12", "-", "5.07", "-", "-", "declared"]
    assert shown["a10g"] == ["a10g", "A10G-24GB", "2", "8", "8", "-", "1.006", "-", "-", "declared"]


def test_what_discovery_finds_is_there_before_the_operator_has_written_it() -> None:
    client = FakeClient()
    client.add(NODES, node("n", {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "nvidia.com/gpu", 8))
    (found,) = view_of(client).fleet().pools.values()
    assert found.discovered
    assert "discovered" in told(client)


def test_problems_are_told_with_their_pool() -> None:
    client = two_pools()
    client.add(ACCELERATOR_POOLS, pool("odd", "H9000", 8, {"pool": "odd"}, "1.00"))
    client.add(ACCELERATOR_POOLS, pool("none", "L4-24GB", 8, {"pool": "none"}, "1.00"))
    text = told(client)
    assert "Problems" in text and "H9000" in text and "no node matches" in text
    found = document(view_of(client).fleet(), NOW)
    assert [problem["pool"] for problem in found["problems"]] == ["odd"]
    assert [entry["problems"] != [] for entry in found["pools"]] == [False, False, True]


def test_an_unreadable_pool_is_a_problem_and_no_crash() -> None:
    client = two_pools()
    client.add(ACCELERATOR_POOLS, {"metadata": {"name": "broken"}, "spec": {"chipsPerNode": "eight"}})
    assert "broken" in told(client)
    client.forbidden.add(NODES)
    assert "broken" in told(client)


def test_without_nodes_the_pools_status_stands_in() -> None:
    client = two_pools()
    client.forbidden.add(NODES)
    text = told(client)
    assert "counted last" in text and "no node matches" not in text
    found = document(view_of(client).fleet(), NOW)
    assert found["pools"][0]["chips"] == {"total": 16, "free": 16, "growable": 0}
    assert found["pools"][0]["pricePerChipHour"] == 5.07


def test_what_is_free_is_not_claimed_where_the_operator_does_not_say_it() -> None:
    client = two_pools()
    client.forbidden.add(NODES)
    client.objects[ACCELERATOR_POOLS][0]["status"]["chips"] = {"total": 16}
    assert "what is in use of a100 is not counted" in " ".join(view_of(client).fleet().notes)
    assert rows(client)["a100"][3:5] == ["16", "16"]


def test_no_pools_at_all() -> None:
    assert "there are no pools" in told(FakeClient())


def test_narrow_terminals_keep_what_matters() -> None:
    text = told(two_pools(), 60)
    assert max(len(line) for line in text.splitlines()) <= 60
    assert "FREE" in text and "$/CHIP-H" in text and "SLICE" not in text


def test_the_document_has_its_documented_keys() -> None:
    found = document(view_of(two_pools()).fleet(), NOW)
    json.dumps(found, allow_nan=False)
    assert list(found) == ["apiVersion", "kind", "asOf", "notes", "pools", "problems"]
    for key in (*found, *found["pools"][0]):
        assert key in (module.__doc__ or "")
