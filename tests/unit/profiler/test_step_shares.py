"""Shares of a step, of each rank and of the pod: from traces, and from waits for data."""

import pytest

from rightpool import contract
from rightpool_profiler.state import SILENT_AFTER, State
from tests.unit.profiler.test_state import metrics, report, state


def shares(made: State, now: float) -> dict[str, float]:
    samples, _ = made.exposition(now)
    return {one.labels[contract.LABEL_PART]: one.value for one in samples if one.metric == contract.STEP_SHARE}


def test_shares_of_each_rank() -> None:
    made = state()
    for moment in range(1, 6):
        for rank, waited in ((1, 0.05), (0, 0.0)):
            one = report(pid=10 + rank, rank=rank, steps=moment, input_seconds=waited * moment)
            made.apply(one, float(moment), 0.0)
    made.add_shares(11, {contract.PART_EXPOSED_COMMUNICATION: 0.2, contract.PART_IDLE: 0.6}, 5.0)
    found = metrics(made, 5.0)
    shares = {name: value for name, value in found.items() if name.startswith(contract.STEP_SHARE)}
    assert shares == pytest.approx(
        {
            'rightpool_step_share_ratio{part="input",rank="0"}': 0.0,
            'rightpool_step_share_ratio{part="input",rank="1"}': 0.5,
            'rightpool_step_share_ratio{part="idle",rank="1"}': 0.1,
            'rightpool_step_share_ratio{part="exposed_communication",rank="1"}': 0.2,
        }
    )


def test_work_in_a_trace_is_a_share_of_the_usual_step() -> None:
    """Its step took 2.5 times as long, since launches were slow; the chip works 80% of the others."""
    made = state()
    for moment in range(1, 6):
        made.apply(report(steps=moment), float(moment), 0.0)
    traced = {contract.PART_COMPUTE: 0.22, contract.PART_EXPOSED_COMMUNICATION: 0.1, contract.PART_IDLE: 0.68}
    made.add_shares(1, traced, 5.0, 0.25)
    usual = {contract.PART_COMPUTE: 0.55, contract.PART_EXPOSED_COMMUNICATION: 0.25, contract.PART_IDLE: 0.2}
    assert shares(made, 5.0) == pytest.approx(usual)
    for _ in range(2):
        made.add_shares(1, traced, 5.0, 0.05)
    assert shares(made, 5.0) == pytest.approx(traced), "it was no slower"
    for _ in range(2):
        made.add_shares(1, traced, 5.0, 9.0)
    found = shares(made, 5.0)
    assert sum(found.values()) == pytest.approx(1.0) and found[contract.PART_IDLE] == pytest.approx(0.0)


@pytest.mark.parametrize("distorted", [0, 1])
def test_what_one_trace_says_is_derived_until_another_has_said_it(distorted: int) -> None:
    """One of two traces saw a rank wait for half of its step."""
    made = state()
    made.apply(report(steps=1), 1.0, 0.0)
    seen = [{contract.PART_EXPOSED_COMMUNICATION: exposed, contract.PART_COMPUTE: 0.5} for exposed in (0.05, 0.06)]
    seen[distorted][contract.PART_EXPOSED_COMMUNICATION] = 0.5
    for number, quality in enumerate(("derived", "measured")):
        made.add_shares(1, seen[number], 1.0)
        assert metrics(made, 1.0)[f'rightpool_field_quality{{field="{contract.STEP_SHARE}",quality="{quality}"}}'] == 1
    assert shares(made, 1.0)[contract.PART_EXPOSED_COMMUNICATION] < 0.1


def test_a_step_that_takes_longer_than_the_interval_keeps_its_share_of_input() -> None:
    made = State(1.0, 1)
    for step in (1, 2, 3):
        made.apply(report(steps=step, seconds=11.0 * (step - 1), input_seconds=10.0 * (step - 1)), 11.0 * step, 0.0)
    share = f'{contract.STEP_SHARE}{{part="{contract.PART_INPUT}"}}'
    assert metrics(made, 44.0)[share] == pytest.approx(10 / 11)
    assert share not in metrics(made, 33.0 + SILENT_AFTER + 1)


def test_a_process_that_says_late_what_it_waits_for_is_told_from_then_on() -> None:
    made = state()
    for step, waited in ((1, None), (2, None), (3, 0.25), (4, 0.3)):
        made.apply(report(steps=step, seconds=0.1 * step, input_seconds=waited), float(step), 0.0)
    assert shares(made, 4.0)[contract.PART_INPUT] == pytest.approx(0.5)


def test_shares_of_input_come_out_of_idleness_and_sum_to_one() -> None:
    made = state()
    for moment in (1, 11):
        made.apply(report(framework="torch", steps=moment, input_seconds=0.03 * (moment - 1)), float(moment), 0.0)
    made.add_shares(1, {contract.PART_COMPUTE: 0.6, contract.PART_IDLE: 0.4}, 11.0)
    found = shares(made, 11.0)
    assert found[contract.PART_INPUT] == pytest.approx(0.3)
    assert found[contract.PART_IDLE] == pytest.approx(0.1)
    assert sum(found.values()) == pytest.approx(1.0)
    assert shares(made, 11.0 + SILENT_AFTER + 1) == {}, "the program is gone"
