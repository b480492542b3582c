"""What goes on at the same time, against sets of moments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool_profiler.traces import sweep as module
from rightpool_profiler.traces.sweep import COMMUNICATION, COMPUTE, COPY, INPUT, LAUNCH, Working, sweep

KINDS = (COMPUTE, COMMUNICATION, COPY, INPUT, LAUNCH)
PARTS = (*contract.PARTS, contract.PART_LAUNCH)
_SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 60), st.sampled_from(KINDS), st.integers(0, 2)), max_size=14
)


def moments(spans: list[Working], *wanted: int) -> set[int]:
    return {moment for start, end, kind, _ in spans if kind in wanted for moment in range(start, end)}


@given(st.lists(_SPANS, max_size=3), st.integers(0, 30), st.integers(0, 40), st.booleans())
def test_parts_agree_with_sets_of_moments(lanes: list[list[Working]], first: int, length: int, host: bool) -> None:
    """Each moment is of one part, by the order that the module's head says."""
    window = (first, first + length)
    inside = set(range(*window))
    spans = [span for lane in lanes for span in lane]
    compute, communication, copy, loading, launch = (moments(spans, kind) & inside for kind in KINDS)
    first_of_all = loading if host else set()
    computing, busy = compute - first_of_all, compute | communication | copy | first_of_all
    communicating = communication - first_of_all
    expected = {
        contract.PART_COMPUTE: computing - communication,
        contract.PART_OVERLAPPED_COMMUNICATION: computing & communication,
        contract.PART_EXPOSED_COMMUNICATION: communicating - compute,
        contract.PART_MEMCPY: copy - compute - communication - first_of_all,
        contract.PART_INPUT: first_of_all | (loading - busy),
        contract.PART_LAUNCH: launch - busy - loading,
        contract.PART_IDLE: inside - busy - loading - launch,
    }
    swept = sweep([sorted(lane) for lane in lanes], window)
    assert swept.parts(PARTS, loading_first=host) == {part: len(found) for part, found in expected.items()}


@given(st.lists(_SPANS, max_size=3))
def test_spans_of_one_number_count_once(lanes: list[list[Working]]) -> None:
    numbered = [
        [(start, end, kind, number if kind == COMMUNICATION else -1) for start, end, kind, number in lane]
        for lane in lanes
    ]
    spans = [span for lane in numbered for span in lane if span[0] < span[1]]
    covered = moments(spans, COMPUTE, INPUT)
    swept = sweep([sorted(lane) for lane in numbered], (0, 60), COMPUTE | INPUT)
    assert swept.shares.keys() == {number for _, _, _, number in spans} - {-1}
    for number, share in swept.shares.items():
        own = [span for span in spans if span[3] == number]
        at = moments(own, COMMUNICATION)
        assert share == module.Share(len(own), len(at), len(at - covered))
