"""Sizes that a job may have: without elasticity its own alone, and memory by the worst case where it shrinks."""

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.placement import Placement
from rightpool.api.pool import Slice
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.traits import ModelTraits, Parallelism
from rightpool.planning.offers.rejection import RejectionReason
from tests.unit.planning.jobs import TEMPLATE, decision_and_text, find, fresh, judged, reason, running
from tests.unit.prediction.fixtures import A10G, A100_CHIP, pool, profile

BIG = pool("a100", A100_CHIP, 4.0, total=1024)
SMALL = pool("a100", A100_CHIP, 4.0, total=16)
GB = 1e9
UNSEEN = Parallelism()


def asking(each: int, replicas: int, **sections: Any) -> ProfiledJobSpec:
    workload = {"job": {"chipsPerReplica": each, "replicas": replicas, "template": TEMPLATE}}
    return ProfiledJobSpec.model_validate({"workload": workload, **sections})


@pytest.mark.parametrize(("each", "replicas"), [(8, 100), (4, 1), (2, 3), (1, 5), (8, 1)])
def test_without_elasticity_a_job_starts_with_the_pods_that_it_asks_for(each: int, replicas: int) -> None:
    decision = judged(fresh(made=asking(each, replicas)), {"a100": BIG}).decision
    assert decision.action is Action.START
    assert decision.target == Placement("a100", each * replicas, replicas)


@pytest.mark.parametrize("mode", ["Auto", "Recommend"])
def test_without_elasticity_a_job_does_not_start_smaller(mode: str) -> None:
    made = asking(8, 100, adaptation={"mode": mode})
    decision, text = decision_and_text(judged(fresh(made=made), {"a100": SMALL}))
    assert (decision.action, decision.reason) == (Action.HOLD, Reason.NO_FEASIBLE_POOL)
    assert "no 100 pods of 8 chips: set elasticity.minChips, maxChips and batch" in text


def test_a_pool_without_chips_asks_for_no_other_size() -> None:
    empty = replace(SMALL, total=0, free=0, nodes=0, open_nodes=(), shapes={})
    _, text = decision_and_text(judged(fresh(made=asking(1, 1)), {"a100": empty}))
    assert "a100 has no chips for a job" in text
    assert "elasticity" not in text


def test_without_elasticity_a_job_waits_for_its_size_and_takes_no_smaller_one() -> None:
    full = replace(BIG, free=4)
    assert judged(fresh(made=asking(8, 1)), {"a100": full}).decision.reason is Reason.WAITING_FOR_CAPACITY


def test_without_elasticity_pods_are_not_split() -> None:
    """Two pods of four chips are another program than one of eight."""
    assert judged(fresh(made=asking(8, 1)), {"a10g": A10G}).decision.reason is Reason.NO_FEASIBLE_POOL
    hosts = replace(BIG, slice=Slice(topology="2x4", chips=8), chips_per_node=4)
    assert judged(fresh(made=asking(8, 1)), {"a100": hosts}).decision.reason is Reason.NO_FEASIBLE_POOL
    assert judged(fresh(made=asking(4, 2)), {"a100": hosts}).decision.target == Placement("a100", 8, 2)


def test_without_elasticity_a_running_job_is_never_resized() -> None:
    made = asking(8, 1, targets={"objective": "MinimizeCost"})
    assessment = judged(running(Placement("a100", 8, 1), made=made), {"a100": BIG})
    assert assessment.decision.action is Action.KEEP and not assessment.candidates


def full_chips(state: str | None, batch: str = "PerChip", used: float = 74 * GB, seen: Parallelism = UNSEEN) -> Any:
    elasticity = {"minChips": 1, "maxChips": 8, "batch": batch} | ({} if state is None else {"state": state})
    made = asking(8, 1, elasticity=elasticity)
    measured = profile(8, 1000.0, 0.01, chip_busy=0.98, exposed_communication=0.5, memory_used=used)
    measured = replace(measured, traits=ModelTraits(parallelism=seen))
    return judged(running(Placement("a100", 8, 1), made=made, measured=measured), {"a100": BIG})


def test_a_program_that_is_seen_to_split_nothing_may_shrink() -> None:
    assert full_chips(None, seen=Parallelism(8, 1, 1, 1)).decision.action is Action.RESIZE
    for split in (Parallelism(8, 8, 1, 1), Parallelism(1, 1, 8, 1), Parallelism(8, 1, 1, None)):
        assert reason(full_chips(None, seen=split), "a100", 1) is RejectionReason.MEMORY


def test_a_job_that_fills_eight_chips_does_not_become_one_chip() -> None:
    for state in (None, "Sharded"):
        made = full_chips(state)
        assert reason(made, "a100", 1) is RejectionReason.MEMORY
        assert made.decision.action is not Action.RESIZE
    assert (
        "elasticity.state says it" in decision_and_text(full_chips(None))[1]
        or find(full_chips(None), "a100", 1).rejection
    )


def test_where_every_chip_holds_the_whole_state_it_may_shrink() -> None:
    assert full_chips("Replicated").decision.action is Action.RESIZE
    assert reason(full_chips("Replicated", "Global"), "a100", 1) is RejectionReason.MEMORY, "the batch of a chip grows"
    assert reason(full_chips("Sharded", used=9 * GB), "a100", 1) is not RejectionReason.MEMORY, "the worst case fits"


@pytest.mark.parametrize(("state", "least"), [("Sharded", 4), ("Replicated", 1)])
def test_a_first_start_does_not_shrink_below_what_the_declared_memory_allows(state: str, least: int) -> None:
    elasticity = {"minChips": 1, "maxChips": 8, "batch": "PerChip", "state": state}
    made = asking(8, 1, elasticity=elasticity, placement={"memoryPerChip": "30Gi"})
    little = {"a100": replace(BIG, free=4)}
    assert judged(fresh(made=made), little).decision.target == Placement("a100", 4, 1)
    sizes = {c.placement.chips for c in judged(fresh(made=made), little).candidates if c.rejection is None}
    rejected = {
        c.placement.chips
        for c in judged(fresh(made=made), little).candidates
        if c.rejection is not None and c.rejection.reason is RejectionReason.MEMORY
    }
    assert min({1, 2, 4, 8} - rejected) == least and 4 in sizes
