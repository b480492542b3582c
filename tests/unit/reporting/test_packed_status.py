"""What is kept of a status is all of it, whatever was packed before it."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from rightpool.reporting import packed_status
from rightpool.reporting.packed_status import LONG, packed, unpacked

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
STATUSES = st.dictionaries(st.text(), VALUES)


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing was packed in it yet."""
    monkeypatch.setattr(packed_status, "_COMMON", [])
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
    assert len(to_json(long(1))) >= LONG
    assert len(second) < len(zlib.compress(to_json(long(2)), 1)) / 3
    assert [unpacked(one)["number"] for one in (short, first, second)] == [0, 1, 2]


def test_equal_statuses_are_kept_alike() -> None:
    assert packed(long(1)) == packed(long(1))
