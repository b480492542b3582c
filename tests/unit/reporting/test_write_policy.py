"""What is written at once, what from the allowance, and what not by itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.reporting.write_policy import (
    ALLOWANCE,
    INFORMING_PER_CYCLE,
    MONEY_SECONDS,
    NUMBERS_SECONDS,
    REFILL_SECONDS,
    WritePolicy,
)

Body = dict[str, Any]


def condition(**more: Any) -> Body:
    return {"type": "Placed", "status": "True", "reason": "Running", "message": "4 chips, $5.67/h", **more}


def profiled(**more: Any) -> Body:
    return condition(type="Profiled", reason="Measured", message="1 pod over 5 min", **more)


AT_ONCE = [
    ({"moves": 1}, {"moves": 2}),
    ({"replicas": 1}, {"replicas": 2}),
    ({"migration": {"phase": "Draining"}}, {}),
    ({"observedGeneration": 1}, {"observedGeneration": 2}),
    ({"conditions": [condition()]}, {"conditions": [condition(status="False")]}),
    ({"conditions": [condition()]}, {"conditions": [condition(reason="Starting")]}),
    ({"conditions": [condition()]}, {"conditions": [condition(), condition(type="Failed")]}),
]
INFORMING = [
    ({"conditions": [condition()]}, {"conditions": [condition(message="other words")]}),
    ({"conditions": [profiled()]}, {"conditions": [profiled() | {"status": "False"}]}),
    ({"conditions": [profiled()]}, {"conditions": [profiled() | {"reason": "WarmingUp"}]}),
    ({"conditions": []}, {"conditions": [profiled()]}),
    ({"profile": {"bottleneck": "Compute"}}, {"profile": {"bottleneck": "InputBound"}}),
    ({"profile": {"inputWait": "0.01"}}, {"profile": {}}),
    ({}, {"profile": {"inputWait": "0.01"}}),
    ({"recommendation": {"placement": {"chips": 4}}}, {"recommendation": {"placement": {"chips": 8}}}),
    ({"recommendation": {"heldBy": "CoolingDown"}}, {"recommendation": {}}),
]
NUMBERS = [
    ({"profile": {"samplesPerSecond": "1000"}}, {"profile": {"samplesPerSecond": "1100"}}),
    ({"profile": {"inputWait": "0.01"}}, {"profile": {"inputWait": "0.20"}}),
    ({"cost": {"perHour": "8.05"}}, {"cost": {"perHour": "9.00"}}),
]
SILENT = [
    ({}, {}),
    ({"cost": {"perHour": "8.05"}}, {"cost": {"perHour": "8.05", "goodput": "0.9"}}),
    ({"cost": {"goodput": "0.5"}}, {"cost": {"goodput": "0.9"}}),
    ({"conditions": [profiled()]}, {"conditions": [profiled() | {"message": "other words"}]}),
    ({"profile": {"samplesPerSecond": "1000"}}, {"profile": {"samplesPerSecond": "1040"}}),
    ({"profile": {"inputWait": "0.01"}}, {"profile": {"inputWait": "0.02"}}),
    ({"profile": {"measuredAt": "a"}}, {"profile": {"measuredAt": "b"}}),
    ({"recommendation": {"message": "a"}}, {"recommendation": {"message": "b"}}),
    ({"recommendation": {"throughput": {"sd": "0.1"}}}, {"recommendation": {"throughput": {"sd": "0.2"}}}),
    ({"recommendation": {"savings": "0.10"}}, {"recommendation": {"savings": "0.12"}}),
    ({"cost": {"spent": "100", "asOf": "a"}}, {"cost": {"spent": "500", "asOf": "b"}}),
    ({}, {"summary": {"saved": "0.00"}}),
    ({"summary": {"perHour": "8.05"}}, {"summary": {"perHour": "9.00"}}),
]


def due(policy: WritePolicy, stored: Body, made: Body, now: float = 0.0, **evidence: float | str) -> bool:
    return policy.wait("uid", stored, made, evidence, now) == 0.0


def spent(policy: WritePolicy, now: float = 0.0) -> WritePolicy:
    """The policy after a job has used up its allowance."""
    for number in range(int(ALLOWANCE)):
        assert due(policy, {}, {"conditions": [profiled() | {"reason": f"Reason{number}"}]}, now)
    assert not due(policy, {}, {"conditions": [profiled() | {"reason": "Another"}]}, now)
    return policy


@pytest.mark.parametrize(("stored", "made"), AT_ONCE)
def test_state_is_written_at_once(stored: Body, made: Body) -> None:
    assert due(spent(WritePolicy()), stored, made)


@pytest.mark.parametrize(("stored", "made"), INFORMING)
def test_what_informs_is_written_from_the_allowance(stored: Body, made: Body) -> None:
    assert due(WritePolicy(), stored, made)
    policy = spent(WritePolicy())
    assert not due(policy, stored, made, REFILL_SECONDS - 1.0)
    assert due(policy, stored, made, REFILL_SECONDS)


@pytest.mark.parametrize(("stored", "made"), NUMBERS)
def test_a_number_is_written_five_minutes_after_the_last_write(stored: Body, made: Body) -> None:
    policy = WritePolicy()
    assert not due(policy, stored, made), "the first look at a job counts as a write"
    assert not due(policy, stored, made, NUMBERS_SECONDS - 1.0)
    assert due(policy, stored, made, NUMBERS_SECONDS)
    assert not due(policy, stored, made, 2 * NUMBERS_SECONDS - 1.0)
    assert due(policy, *INFORMING[0], 2 * NUMBERS_SECONDS - 1.0), "verdicts do not wait for numbers"


@pytest.mark.parametrize(("stored", "made"), SILENT)
def test_what_says_nothing_new_is_not_written(stored: Body, made: Body) -> None:
    assert not due(WritePolicy(), stored, made)


def test_how_long_a_write_has_to_wait() -> None:
    assert WritePolicy().wait("uid", *SILENT[1], {}, 0.0) is None
    policy = spent(WritePolicy())
    assert policy.wait("uid", *INFORMING[0], {}, 20.0) == pytest.approx(REFILL_SECONDS - 20.0)
    assert policy.wait("uid", *NUMBERS[0], {}, 20.0) == pytest.approx(NUMBERS_SECONDS - 20.0)


def test_state_fills_the_allowance() -> None:
    """What follows from an event is told step by step."""
    policy = spent(WritePolicy())
    assert due(policy, {"moves": 1}, {"moves": 2})
    spent(policy)


def test_a_verdict_that_flaps_is_written_every_minute() -> None:
    policy, stored, writes = WritePolicy(), {"conditions": [profiled()]}, 0
    cycles = range(0, 3600, 10)
    for now in cycles:
        truth = {"conditions": [profiled() | {"status": "True" if now // 30 % 2 else "False"}]}
        if due(policy, stored, truth, float(now)):
            stored, writes = truth, writes + 1
    assert writes <= ALLOWANCE + 3600 / REFILL_SECONDS


def test_what_messages_are_made_of_is_remembered() -> None:
    policy = WritePolicy()
    assert not due(policy, {}, {}, rate=100.0, pool="a10g"), "after a restart it is taken for what was written"
    assert not due(policy, {}, {}, NUMBERS_SECONDS, rate=104.0, pool="a10g")
    assert due(policy, {}, {}, NUMBERS_SECONDS, rate=106.0, pool="a10g")
    assert not due(policy, {}, {}, 3 * NUMBERS_SECONDS, rate=104.0, pool="a10g")
    assert due(policy, {}, {}, NUMBERS_SECONDS, rate=104.0, pool="a100"), "another placement is another statement"


def test_money_by_itself() -> None:
    policy = WritePolicy()
    doubled = {"cost": {"spent": "201"}}
    assert not due(policy, {"cost": {"spent": "100"}}, doubled)
    assert not due(policy, {"cost": {"spent": "100"}}, doubled, MONEY_SECONDS - 1.0)
    assert not due(policy, {"cost": {"spent": "101"}}, doubled, MONEY_SECONDS)
    assert due(policy, {"cost": {"spent": "100"}}, doubled, MONEY_SECONDS)
    assert not due(WritePolicy(), {"cost": {"saved": "0"}}, {"cost": {"saved": "0.003"}}, 2.0 * MONEY_SECONDS)


def test_a_cycle_is_bounded_over_all_jobs() -> None:
    policy = WritePolicy()
    stored, made = INFORMING[0]
    written = sum(
        policy.wait(f"job-{number}", stored, made, {}, 0.0) == 0.0 for number in range(2 * INFORMING_PER_CYCLE)
    )
    assert written == INFORMING_PER_CYCLE and policy.exhausted
    assert policy.wait("job", *AT_ONCE[0], {}, 0.0) == 0.0, "state is never held up"
    policy.begin()
    assert policy.wait(f"job-{2 * INFORMING_PER_CYCLE - 1}", stored, made, {}, 0.0) == 0.0


def test_a_job_that_is_gone_is_forgotten() -> None:
    policy = spent(WritePolicy())
    policy.forget({"uid"})
    assert due(policy, *INFORMING[0])


@given(st.floats(1.0, 1e9), st.floats(0.5, 1.5))
def test_a_number_is_written_where_it_moved_by_more_than_its_tolerance(value: float, change: float) -> None:
    stored, made = {"profile": {"stepSeconds": repr(value)}}, {"profile": {"stepSeconds": repr(value * change)}}
    policy, moved = WritePolicy(), abs(change - 1.0) / max(change, 1.0)
    assert not due(policy, stored, stored)
    if moved > 0.0501:
        assert due(policy, stored, made, NUMBERS_SECONDS)
    if moved < 0.0499:
        assert not due(policy, stored, made, NUMBERS_SECONDS)
