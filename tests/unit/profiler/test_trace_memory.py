"""Memory in use over a trace, what the program does at its peak, and FLOPs and bytes of products by their shapes."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool_profiler.traces.costs import cost_of
from rightpool_profiler.traces.kineto_summary import summarise
from rightpool_profiler.traces.memory import STEPS, TIMELINE, DevicePeak, Levels, Memory, Owner
from rightpool_profiler.traces.phases import Phases

END = 10 * TIMELINE
GPU = Owner("cuda:0", host=False)
HOST = Owner("cpu", host=True, whole=False)


def levels(*changes: tuple[int, int], owner: Owner = GPU, before: int = 0, held: int | None = None) -> Levels:
    """Changes in the order in which they come in the file; bytes in use follow from the order of time."""
    found, used, after = Levels(), before, {}
    for moment, change in sorted(changes):
        used += change
        after[moment] = used
    for moment, change in changes:
        found.add(owner, moment, after[moment], change, held)
    return found


def test_peak_and_timeline() -> None:
    found = levels((75, 100), (15, 30), (78, -100), before=50).within((0, END))
    line = (50, 80, 80, 80, 80, 80, 80, 180, *[80] * (TIMELINE - 8))
    assert found == Memory("cuda:0", 180, 75 / END, line)
    assert found.to_dict() == {"device": "cuda:0", "peak": 180, "at": 75 / END, "timeline": list(line)}


def test_what_was_in_use_before_the_window_is_in_use_in_it() -> None:
    found = levels((5, 1000), (20, -900), (300, 5)).within((100, 100 + END))
    assert found is not None and found.peak == 105 and found.timeline[:19] == (100,) * 19


def test_the_device_goes_before_the_host() -> None:
    both = levels((1, 10))
    both.add(HOST, 2, 5000, 5000)
    found = both.within((0, END))
    assert found is not None and (found.device, found.peak, found.others) == ("cuda:0", 10, ())
    assert levels().within((0, END)) is None


def test_several_devices() -> None:
    found = levels((1, 10), held=50)
    found.add(GPU._replace(name="cuda:1"), 5, 400, 400, 500)
    found.add(GPU._replace(name="cuda:1"), 6, 0, -400, 600)
    found.add(GPU._replace(name="cuda:2"), 7, 20, 20)
    shown = found.within((0, END), capacities={"cuda:1": 1000})
    assert shown is not None and (shown.device, shown.peak, shown.reserved, shown.capacity) == (
        "cuda:1",
        400,
        600,
        1000,
    )
    assert shown.others == (DevicePeak("cuda:2", 20, None), DevicePeak("cuda:0", 10, 50))


def test_the_peak_in_its_step_and_what_each_step_leaves() -> None:
    changes = [(5, 100), (15, -90), (25, 100), (30, 50), (38, -140), (50, 100), (55, -90)]
    found = levels(*changes, before=1000).within((0, END), ends=[20, 40, 60], phase=lambda moment: f"at {moment}")
    assert found is not None
    assert (found.peak, found.step, found.phase) == (1160, 0.5, "at 30")
    assert found.ends == (1010, 1020, 1030)
    start = levels((5, -1), before=10).within((0, END), ends=[20], phase=lambda moment: "told")
    assert start is not None and (start.peak, start.step, start.phase) == (10, 0.0, None), "it was as high before"
    late = levels((5, 1), (100, 7)).within((0, END), ends=[20, 40])
    assert late is not None and (late.step, late.ends) == (None, (1, 1)), "no step ends after the peak"


def test_a_host_counts_from_the_start_of_the_trace() -> None:
    found = levels((10, 100), (20, -300), (30, 50), owner=HOST, before=7000).within((0, END), ends=[15, 25])
    assert found is not None and (found.peak, found.ends) == (100, (100, 0)), "less than at the start is none"


@pytest.mark.parametrize(("used", "change", "held"), [(-1, 5, 9), (1 << 60, 5, 9), (5, -(1 << 60), 9)])
def test_bytes_that_nobody_has_are_passed_over(used: int, change: int, held: int) -> None:
    found = Levels()
    found.add(GPU, 5, used, change, held)
    assert found.within((0, END)) is None
    found.add(GPU, 6, 10, 10, 3)
    shown = found.within((0, END), capacities={"cuda:0": 4})
    assert shown is not None and (shown.peak, shown.reserved, shown.capacity) == (10, None, None), "less than in use"


_CHANGES = st.dictionaries(st.integers(0, END), st.integers(-50, 50), min_size=1, max_size=30)


@given(
    _CHANGES,
    st.randoms(use_true_random=False),
    st.integers(0, END - 1),
    st.integers(1, END),
    st.lists(st.integers(0, 2 * END), max_size=STEPS),
)
def test_the_timeline_is_what_each_moment_had(
    changes: dict[int, int], random: Any, first: int, length: int, ends: list[int]
) -> None:
    order = list(changes.items())
    random.shuffle(order)
    window = first, first + length
    found = levels(*order, before=2000).within(window, sorted(ends))
    assert found is not None
    in_use = {at: 2000 + sum(change for moment, change in order if moment <= at) for at in range(first, first + length)}
    assert found.peak == max(in_use.values()) == max(found.timeline)
    assert in_use[first + round(found.at * length)] == found.peak
    assert min(found.timeline) >= min(in_use.values())
    within = sorted(end for end in ends if first < end <= first + length)
    assert found.ends == tuple(in_use[min(end, first + length - 1)] for end in within)
    assert (found.step is None) == (not within or first + round(found.at * length) > within[-1])
    assert found.step is None or 0.0 <= found.step <= 1.0


def test_phases() -> None:
    """Two backward passes before the first step of an optimizer, and an evaluation after the second."""
    phases = Phases()
    backward = "autograd::engine::evaluate_function: AddmmBackward0"
    for start, end in ((10, 12), (13, 20), (30, 40), (60, 70)):
        phases.add(backward, start, end)
    for start, end in ((80, 90), (45, 50)):
        phases.add("Optimizer.step#AdamW.step", start, end)
    phases.add("aten::mm", 0, 100)
    found = {at: phases.at(at) for at in (5, 11, 20, 25, 42, 47, 55, 65, 75, 85, 95)}
    forward, optimizer = contract.PHASE_FORWARD, contract.PHASE_OPTIMIZER
    assert found == {
        **dict.fromkeys((5, 25, 55), forward),
        **dict.fromkeys((11, 20, 65), contract.PHASE_BACKWARD),
        **dict.fromkeys((47, 85), optimizer),
        **dict.fromkeys((42, 75, 95), None),
    }
    assert (phases.steps, phases.ends(100)) == (2, [50, 90])


@pytest.mark.parametrize("end", [90, 130])
def test_a_trace_that_ends_within_a_step_of_the_optimizer(end: int) -> None:
    """Without a length, or beyond the trace: as PyTorch 2.4 and 2.15 record it."""
    phases = Phases()
    phases.add("Optimizer.step#SGD.step", 45, 50)
    phases.add("Optimizer.step#SGD.step", 90, end)
    assert phases.ends(100) == [50, 100]


def test_more_steps_than_a_short_trace_has() -> None:
    phases = Phases()
    for moment in range(10_001):
        phases.add("Optimizer.step#SGD.step", moment, moment + 1)
    assert (phases.steps, phases.ends(20_000)) == (10_001, [])


def test_a_recorded_trace_of_a_gpu() -> None:
    """Of a program of tests/gpu/check_trace_memory.py, whose backward pass takes 64 MiB for a moment, on an H100 with
    PyTorch 2.11. The program was told the same bytes by PyTorch's allocator."""
    recorded = Path(__file__).parent / "fixtures" / "memory_h100.kineto.json.gz"
    found = summarise([gzip.decompress(recorded.read_bytes())]).memory
    assert found is not None and found.step is not None
    assert (found.device, found.peak, found.phase) == ("cuda:0", 142_883_328, contract.PHASE_BACKWARD)
    assert (found.ends, found.reserved) == ((76_693_504,) * 4, 169_869_312)
    assert found.capacity == 85_017_493_504
    assert sum(level == found.peak for level in found.timeline) == 4, "once a step"


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
