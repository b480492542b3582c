"""The datagram's checks: nothing from the user's container is believed by its looks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool_profiler import report
from rightpool_profiler.report import Malformed, Report, parse


def message(**changes: Any) -> dict[str, Any]:
    good = {
        "pid": 12,
        "start": 3456,
        "rank": 0,
        "at": 10.5,
        "framework": "jax",
        "steps": 4,
        "seconds": 1.5,
        "counts": [0] * 8 + [3] + [0] * 8,
        "cpu": 2.0,
        "samples": 64,
        "platform": "cpu",
    }
    return {**good, **changes}


def encode(**changes: Any) -> bytes:
    return json.dumps(message(**changes)).encode()


def test_a_good_one() -> None:
    found = parse(encode())
    assert (found.steps, found.samples, found.key, found.chips) == (4, 64, (12, 3456), ())


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": -1},
        {"steps": 1.5},
        {"steps": True},
        {"steps": "4"},
        {"steps": None},
        {"steps": 1e300},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"counts": [0] * 16},
        {"counts": [0] * 18},
        {"counts": "0" * 17},
        {"counts": [-1] + [0] * 16},
        {"framework": "cobol"},
        {"platform": "a b"},
        {"platform": "x" * 100},
        {"command": "d-7"},
        {"command": {"id": 1, "state": "x"}},
        {"chips": [{}]},
        {"model": []},
        {"model": {"precision": "quantum"}},
        {"model": {"parameters": -1}},
        {"model": {"step_flops": -1.0}},
        {"model": {"step_flops": "many"}},
        {"model": {"step_flops": 10**400}},
        {"model": {"data": 1.5}},
        {"chips": [{"uuid": "GPU\n1"}]},
        {"chips": [{"uuid": "GPU-1", "busy": -0.1}]},
        {"chips": [{"uuid": "GPU-1", "busy": 97}]},
        {"chips": [{"uuid": "GPU-1", "throttle": {"power_cap": "no"}}]},
        {"chips": [{"uuid": "GPU-1", "throttle": {"power_cap": 0}}]},
        {"chips": [{"uuid": "GPU-1", "links": [["wifi", "tx", 1]]}]},
        {"chips": [{"uuid": "GPU-1", "links": [[[], {}, 1]]}]},
        {"chips": [{"uuid": "GPU-1", "errors": []}]},
        {"chips": [{"uuid": "GPU-1"}] * 33},
        {"chips": {}},
    ],
)
def test_bad_fields_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        parse(encode(**changes))


@pytest.mark.parametrize(("flops", "known"), [(1e18, 1e18), (3e18, None), (1e300, None)])
def test_flops_that_nobody_would_read_are_missing_and_the_steps_are_not(flops: float, known: float | None) -> None:
    """A call of many accumulated batches has so many, and steps all the same."""
    found = parse(encode(model={"precision": "bf16", "step_flops": flops}))
    assert found.model is not None and (found.model.step_flops, found.steps) == (known, 4)


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b"\xff\xfe", b"[" * 30000, b" " * 40000, b'{"pid": 1e999}']
)
def test_invalid_reports_are_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse(data)


@given(st.binary(max_size=300))
def test_any_bytes_are_refused_in_order(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse(data)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*message(), "chips", "command", "saved", "memory"]), _values))
def test_any_values_give_a_report_or_a_refusal(changes: dict[str, Any]) -> None:
    try:
        found = parse(json.dumps(message(**changes)).encode())
    except Malformed:
        return
    assert isinstance(found, Report)


def test_ratios_of_a_chip_are_clipped_and_unknown_names_dropped() -> None:
    chip = {
        "uuid": "GPU-1",
        "busy": 1.0001,
        "wattage": 3,
        "errors": {"bogus": 1, "ecc_corrected": 2},
        "throttle": {"odd": 1},
    }
    found = parse(encode(chips=[chip])).chips[0]
    assert found.ratios == {"busy": 1.0}
    assert found.errors == {"ecc_corrected": 2}
    assert found.throttle == {}


def test_a_state_is_cut_and_cleaned() -> None:
    found = parse(encode(command={"id": "d-7", "state": "no\x1b[0m " + "x" * 500}))
    assert found.command is not None
    assert "\x1b" not in found.command[1] and len(found.command[1]) <= 120


def test_the_agent_has_the_same_buckets_and_places() -> None:
    """The agent cannot import the sidecar's constants; these two must not drift apart."""
    from rightpool_agent import reporter, steps  # type: ignore[import-not-found]

    from rightpool import contract

    assert steps.BUCKETS == report.BUCKETS
    source = (reporter.__file__, steps.__file__)
    assert all(source)
    for path in (contract.AGENT_SOCKET, contract.COMMAND_DIR, contract.TRACE_DIR, contract.AGENT_DIR):
        assert path.startswith(contract.SHARED_DIR + "/") and path.count("/") == 3
    assert [p.rpartition("/")[2] for p in (contract.AGENT_SOCKET, contract.COMMAND_DIR, contract.TRACE_DIR)] == [
        "profiler.sock",
        "commands",
        "traces",
    ]
