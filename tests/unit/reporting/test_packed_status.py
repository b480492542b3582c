"""What is kept of a status is all of it, whatever was packed before it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from rightpool.reporting import stored_job
from rightpool.reporting.stored_job import LONGER, MOST, packed, unpacked

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
STATUSES = st.dictionaries(st.text(), VALUES)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was packed in it yet."""
    monkeypatch.setattr(stored_job, "_COMMON", [b""])
    yield


def long(number: int) -> dict[str, Any]:
    reasons = [f"{place} chips of pool-{place % 7} would cost ${place}.50 an hour" for place in range(100)]
    return {"conditions": reasons, "number": number}


@given(st.lists(STATUSES | st.builds(long, st.integers(0, 9)), max_size=6))
def test_every_status_is_read_as_it_was_kept(statuses: list[dict[str, Any]]) -> None:
    kept = [packed(status) for status in statuses]
    assert [unpacked(one) for one in kept] == statuses


def test_what_statuses_have_in_common_is_kept_once() -> None:
    short, first, second = packed({"number": 0}), packed(long(1)), packed(long(2))
    assert len(second) < len(zlib.compress(to_json(long(2)), 1)) / 3
    assert [unpacked(one)["number"] for one in (short, first, second)] == [0, 1, 2]


def test_what_longer_statuses_have_in_common_is_kept_once_too() -> None:
    def measured(number: int) -> dict[str, Any]:
        return {**long(number), "profile": [f"of {place} readings the median is {place}.25" for place in range(60)]}

    assert len(to_json(measured(2))) > LONGER * len(to_json(long(1)))
    first, second, third, fourth = (packed(one) for one in (long(1), measured(2), measured(3), long(4)))
    for status, kept in ((measured(3), third), (long(4), fourth)):
        assert len(kept) < len(zlib.compress(to_json(status), 1)) / 3
    assert [unpacked(one)["number"] for one in (first, second, third, fourth)] == [1, 2, 3, 4]


def test_ever_longer_statuses_are_told_apart() -> None:
    statuses = [{"conditions": "x" * int(LONGER**power)} for power in range(70)]
    assert len(to_json(statuses[-1])) > 1.5e6, "longer than what the API server stores"
    kept = [packed(status) for status in statuses]
    assert [unpacked(one) for one in kept] == statuses
    assert len(stored_job._COMMON[-1]) <= MOST


def test_equal_statuses_are_kept_alike() -> None:
    assert packed(long(1)) == packed(long(1))
