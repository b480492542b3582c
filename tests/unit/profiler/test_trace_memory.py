"""Memory in use over a trace, and FLOPs and bytes of matrix products by their shapes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool_profiler.traces.costs import cost_of
from rightpool_profiler.traces.memory import TIMELINE, Levels, Memory

END = 10 * TIMELINE


def levels(*changes: tuple[int, int], owner: str = "1:0", host: bool = False, before: int = 0) -> Levels:
    """Changes in the order in which they come in the file; bytes in use follow from the order of time."""
    found, used, after = Levels(), before, {}
    for moment, change in sorted(changes):
        used += change
        after[moment] = used
    for moment, change in changes:
        found.add(owner, host, moment, after[moment], change)
    return found


def test_peak_and_timeline() -> None:
    found = levels((75, 100), (15, 30), (78, -100), before=50).within((0, END))
    assert found == Memory(180, 75 / END, (50, 80, 80, 80, 80, 80, 80, 180, *[80] * (TIMELINE - 8)))


def test_what_was_in_use_before_the_window_is_in_use_in_it() -> None:
    found = levels((5, 1000), (20, -900), (300, 5)).within((100, 100 + END))
    assert found is not None and found.peak == 105 and found.timeline[:19] == (100,) * 19


def test_the_device_goes_before_the_host() -> None:
    both = levels((1, 10))
    both.add("0:-1", True, 2, 5000, 5000)
    found = both.within((0, END))
    assert found is not None and found.peak == 10
    assert levels().within((0, END)) is None


_CHANGES = st.dictionaries(st.integers(0, END), st.integers(-50, 50), min_size=1, max_size=30)


@given(_CHANGES, st.randoms(use_true_random=False), st.integers(0, END - 1), st.integers(1, END))
def test_the_timeline_is_what_each_moment_had(changes: dict[int, int], random: Any, first: int, length: int) -> None:
    order = list(changes.items())
    random.shuffle(order)
    found = levels(*order, before=2000).within((first, first + length))
    assert found is not None
    in_use = {at: 2000 + sum(change for moment, change in order if moment <= at) for at in range(first, first + length)}
    assert found.peak == max(in_use.values()) == max(found.timeline)
    assert in_use[first + round(found.at * length)] == found.peak
    assert min(found.timeline) >= min(in_use.values())


def product(name: str, *shapes: list[int], kind: str = "float") -> Any:
    return cost_of(name, {"Input Dims": [*shapes, []], "Input type": [*[kind] * len(shapes), "Scalar"]})


def test_matrix_products() -> None:
    assert product("aten::mm", [2, 3], [3, 5]) == (60.0, 4 * (6 + 15 + 10))
    assert product("aten::addmm", [5], [2, 3], [3, 5], kind="c10::BFloat16") == (60.0, 2 * (5 + 6 + 15 + 10))
    assert product("aten::bmm", [7, 2, 3], [7, 3, 5], kind="double") == (420.0, 8 * 7 * 31)
    assert product("aten::baddbmm", [7, 2, 5], [7, 2, 3], [7, 3, 5]) == (420.0, 4 * 7 * 41)
    assert product("aten::mm", [2, 3], [3, 5], kind="a new type") == (60.0, None)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"Input Dims": "x", "Input type": ["float"] * 2},
        {"Input Dims": [[2, 3]], "Input type": ["float"] * 2},
        {"Input Dims": [[2, 3], [4, 5]], "Input type": ["float"] * 2},
        {"Input Dims": [[2, 3], [3, 1 << 50]], "Input type": ["float"] * 2},
        {"Input Dims": [[2, True], [1, 5]], "Input type": ["float"] * 2},
        {"Input Dims": [[2, 3], 7], "Input type": ["float"] * 2},
        {"Input Dims": [[], []], "Input type": ["float"] * 2},
    ],
)
def test_shapes_from_which_nothing_follows(arguments: dict[str, Any]) -> None:
    assert cost_of("aten::mm", arguments) is None
    assert cost_of("aten::add", {"Input Dims": [[2, 3], [2, 3]], "Input type": ["float"] * 2}) is None
