"""Sizes: whole nodes, whole slices, and pods that fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.pool import Slice
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool, gives, keeps_together, replicas, shapes, why_not

CATALOG = load_catalog()


def pool(total: int = 64, per_node: int = 8, growable: int = 0, slice_: Slice | None = None) -> Pool:
    accelerator = CATALOG.get("TPU-v5e" if slice_ else "A100-SXM4-80GB")
    return Pool(
        name="p",
        accelerator=accelerator,
        chips_per_node=per_node,
        resource_name="google.com/tpu" if slice_ else "nvidia.com/gpu",
        node_selector={},
        intra_link=accelerator.intra_link,
        inter_link=accelerator.inter_link,
        price=Price(),
        total=total,
        free=total,
        growable=growable,
        slice=slice_,
    )


def test_powers_of_two_that_the_pool_can_give() -> None:
    assert shapes(pool(32), 1, 64) == [(1, 1), (2, 1), (4, 1), (8, 1), (16, 2), (32, 4)]
    assert shapes(pool(24), 2, 64) == [(2, 1), (4, 1), (8, 1), (16, 2)]
    assert [chips for chips, _ in shapes(pool(8, growable=8), 1, 64)] == [1, 2, 4, 8, 16], "an autoscaler adds"
    assert shapes(pool(0), 1, 64) == []


def test_a_job_has_one_slice_of_a_chip() -> None:
    whole = pool(56, per_node=56)
    parts = replace(whole, accelerator=load_catalog().get("H100-SXM5-80GB-MIG-1g.10gb"))
    assert shapes(parts, 1, 64) == [(1, 1)]
    assert gives(parts, 1, 1) and not gives(parts, 2, 1) and not gives(parts, 1, 2)
    assert shapes(whole, 1, 2) == [(1, 1), (2, 1)]


def test_nodes_that_are_no_power_of_two() -> None:
    assert [chips for chips, _ in shapes(pool(48, per_node=6), 1, 64)] == [1, 2, 4, 6, 12, 24, 48]
    assert [chips for chips, _ in shapes(pool(12, per_node=3), 1, 64)] == [1, 2, 3, 6, 12]


def test_the_users_sizes_are_kept_where_they_can_be_given() -> None:
    assert shapes(pool(), 1, 64, [24, 12, 8, 6, 8, 3]) == [(3, 1), (6, 1), (8, 1), (24, 3)]
    assert shapes(pool(), 4, 8, [2, 4, 8, 16]) == [(4, 1), (8, 1)]
    assert shapes(pool(), 1, 64, []) == []


def test_the_users_pods_are_kept_where_they_fit() -> None:
    assert shapes(pool(), 1, 16, None, 2) == [(1, 1), (2, 1), (4, 2), (8, 4), (16, 8)]
    assert shapes(pool(), 1, 8, None, 1) == [(1, 1), (2, 2), (4, 4), (8, 8)]
    assert shapes(pool(per_node=4), 8, 16, None, 8) == [(8, 2), (16, 4)], "8 do not fit a node of 4"
    assert replicas(pool(), 6, 3) == 2
    assert replicas(pool(), 24, 3) == 3, "pods of 3 would leave 2 chips of each node of 8 over"
    assert replicas(pool(), 8, 0) == 1
    assert replicas(pool(), 8, -2) == 1


def test_slices_are_whole_with_a_pod_a_host() -> None:
    single = pool(32, per_node=8, slice_=Slice(topology="2x4", chips=8))
    assert shapes(single, 1, 64, None, 4) == [(8, 1), (16, 2), (32, 4)], "a pod has all chips of its host"
    multi = pool(64, per_node=4, slice_=Slice(topology="4x4", chips=16))
    assert shapes(multi, 1, 64) == [(16, 4), (32, 8), (64, 16)]
    assert shapes(multi, 1, 64, [4, 8, 16, 48]) == [(16, 4), (48, 12)]


@pytest.mark.parametrize(
    ("chips", "expected"),
    [
        (8, None),
        (64, None),
        (3, None),
        (0, "0 chips: at least 1 is required"),
        (12, "p gives whole nodes of 8 chips above one node, and 12 is not a multiple"),
        (72, "p has 64 chips at most, and 72 are required"),
    ],
)
def test_why_not(chips: int, expected: str | None) -> None:
    assert why_not(pool(), chips) == expected


def test_why_not_on_slices() -> None:
    tpu = pool(32, slice_=Slice(topology="2x4", chips=8))
    assert why_not(tpu, 4) == "p gives whole 2x4 slices of 8 chips, and 4 is not a multiple"
    assert why_not(tpu, 40) == "p has 32 chips at most, and 40 are required"


@st.composite
def any_pool(draw: st.DrawFn) -> Pool:
    per_node = draw(st.integers(1, 16))
    if draw(st.booleans()):
        hosts = draw(st.sampled_from([1, 2, 4]))
        unit = per_node * hosts
        slice_ = Slice(topology="x", chips=unit)
    else:
        unit, slice_ = per_node, None
    return pool(unit * draw(st.integers(0, 20)), per_node, unit * draw(st.integers(0, 5)), slice_)


counts = st.none() | st.lists(st.integers(-1, 300), max_size=8)


@given(any_pool(), st.integers(1, 64), st.integers(1, 300), counts, st.none() | st.integers(1, 20))
def test_every_shape_can_be_given_and_its_pods_fit(
    pool: Pool, least: int, most: int, chip_counts: list[int] | None, wish: int | None
) -> None:
    found = shapes(pool, least, most, chip_counts, wish)
    assert found == sorted(set(found))
    for chips, pods in found:
        assert least <= chips <= most
        assert why_not(pool, chips) is None
        assert chips <= pool.reach
        assert pods >= 1 and chips % pods == 0
        per_pod = chips // pods
        assert per_pod <= pool.chips_per_node
        if pool.slice is not None:
            assert per_pod == pool.chips_per_node and chips % pool.slice.chips == 0
        elif chips > pool.chips_per_node:
            assert pool.chips_per_node % per_pod == 0, "pods use up the nodes that the job pays for"


@given(any_pool(), st.integers(1, 200))
def test_a_size_in_bounds_is_offered_or_there_is_a_reason(pool: Pool, chips: int) -> None:
    assert (shapes(pool, chips, chips, [chips]) == []) == (why_not(pool, chips) is not None)


def test_chips_that_belong_together_share_a_pod_or_a_slice() -> None:
    assert shapes(pool(), 1, 16, None, 2, 4, 4) == [(4, 1), (8, 1), (16, 2)], "pods of two would split a group"
    assert shapes(pool(), 1, 16, None, 4, 4, 8) == [(8, 2), (16, 4)], "pods that hold a group are kept"
    assert shapes(pool(per_node=4), 1, 64, None, None, 8, 8) == []
    assert shapes(pool(48, per_node=6), 1, 64, None, None, 4, 4) == [(4, 1)], "a node of six holds one group and a half"
    slices = pool(per_node=4, slice_=Slice(topology="2x4", chips=8))
    assert shapes(slices, 1, 16, None, None, 8, 8) == [(8, 2), (16, 4)], "hosts of a slice are on its links"
    assert shapes(slices, 1, 16, None, None, 16, 16) == []


@given(
    st.integers(1, 16),
    st.sampled_from([None, 4, 8, 16]),
    st.one_of(st.none(), st.integers(1, 16)),
    st.integers(1, 16),
    st.integers(1, 6),
    st.one_of(st.none(), st.lists(st.integers(1, 128), min_size=1, max_size=8)),
)
def test_sizes_hold_whole_groups_and_are_those_of_before(
    per_node: int, slice_chips: int | None, each: int | None, tensor: int, pipeline: int, counts: list[int] | None
) -> None:
    sliced = None if slice_chips is None or slice_chips % per_node else Slice(topology="2x4", chips=slice_chips)
    where = pool(128, per_node=per_node, slice_=sliced)
    group = tensor * pipeline
    found = shapes(where, 1, 128, counts, each, tensor, group)
    assert {chips for chips, _ in found} <= {chips for chips, _ in shapes(where, 1, 128, counts, each)}
    for chips, pods in found:
        assert chips % group == 0 and chips % pods == 0
        assert keeps_together(where, chips // pods, tensor)
    assert shapes(where, 1, 128, counts, each, 1, 1) == shapes(where, 1, 128, counts, each)
