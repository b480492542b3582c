"""How the pod's steps are known, as its page says it."""

import pytest

from rightpool import contract
from rightpool_profiler.report import Model
from rightpool_profiler.state import SILENT_AFTER
from tests.unit.profiler.test_state import metrics, report, state


def test_steps_without_an_optimizer_are_derived() -> None:
    made = state()
    made.apply(report(derived=True), 1.0, 0.0)
    found = metrics(made, 1.0)
    for field in (contract.STEPS, contract.STEP_SECONDS, contract.SAMPLES):
        assert found[f'rightpool_field_quality{{field="{field}",quality="derived"}}'] == 1


def test_who_steps_now_says_how_steps_are_known() -> None:
    """A program whose steps are derived ends, and another one follows: what it said of its own is over."""
    made, name = state(), f'rightpool_field_quality{{field="{contract.STEPS}",quality="derived"}}'
    made.apply(report(steps=5, world=1, derived=True), 1.0, 0.0)
    gone = 1.0 + SILENT_AFTER + 1.0
    assert name in metrics(made, gone), "nobody else has made any"
    made.apply(report(pid=2, steps=3, world=1), gone, 0.0)
    found = metrics(made, gone)
    assert name not in found and found[contract.STEPS] == 8


@pytest.mark.parametrize(
    ("flops", "world", "expected"),
    [
        ((2e12, 3e12), 2, 5e12),
        ((2e12, None), 2, None),
        ((2e12, 3e12), 1, None),  # programs of their own, whose steps are added up
        ((2e12,), 1, 2e12),
    ],
)
def test_flops_are_of_a_step_of_all_processes(
    flops: tuple[float | None, ...], world: int, expected: float | None
) -> None:
    made = state()
    for rank, each in enumerate(flops):
        made.apply(report(pid=10 + rank, rank=rank, world=world, model=Model("bf16", step_flops=each)), 1.0, 0.0)
    assert metrics(made, 1.0).get(contract.STEP_FLOPS) == expected
