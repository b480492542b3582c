"""Jobs that divide the model over chips: the sizes that they may have, where, and how much memory a chip needs then."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.api.placement import Placement
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.traits import ModelTraits, Parallelism
from rightpool.planning.jobs.job import Job, parallelism_of
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.reporting.candidate_texts import verdict_text
from tests.unit.planning.jobs import POOLS, changed, find, fresh, judged, reason, running, spec
from tests.unit.prediction.fixtures import A10G, A100

EIGHT = Placement("a100", 8, 1)
SMALL = {"a100": A100, "a10g": replace(A10G, chips_per_node=4)}


def parallel(tensor: int, pipeline: int = 1, chips: int = 8, **elasticity: Any) -> ProfiledJobSpec:
    given = {"minChips": tensor * pipeline, "maxChips": 32, "batch": "PerChip"} | elasticity
    return spec(chips, elasticity=given | {"modelParallel": {"tensor": tensor, "pipeline": pipeline}})


def placed(made: ProfiledJobSpec, where: Placement = EIGHT, **traits: Any) -> Job:
    job = running(where, 1000.0, made=made, ratios={"memory_used": 20e9})
    assert job.observed.profile is not None
    return changed(job, profile=replace(job.observed.profile, traits=ModelTraits(**traits)))


def test_every_size_holds_the_model_a_whole_number_of_times() -> None:
    sizes = {candidate.placement.chips for candidate in judged(placed(parallel(4, 2))).candidates}
    assert sizes and all(size % 8 == 0 for size in sizes)
    free = {candidate.placement.chips for candidate in judged(running(EIGHT, 1000.0)).candidates}
    assert 4 in free, "without modelParallel there are smaller ones"


def test_a_tensor_group_does_not_leave_its_fast_link() -> None:
    assessment = judged(placed(parallel(8)), SMALL)
    assert reason(assessment, "a10g") is RejectionReason.TENSOR_SPLIT
    assert "a10g links 4 chips of a pod, which are no groups of 8" in (verdict_text(find(assessment, "a10g")))
    assert reason(judged(placed(parallel(4)), SMALL), "a10g", 4) is not RejectionReason.TENSOR_SPLIT
    assert reason(judged(placed(parallel(4, 2)), SMALL), "a10g", 8) is not RejectionReason.TENSOR_SPLIT, "stages may"


def test_pods_that_would_split_a_group_are_made_larger_and_fixed_ones_are_refused() -> None:
    made = spec(2, elasticity={"minChips": 4, "maxChips": 8, "batch": "PerChip", "modelParallel": {"tensor": 4}})
    job = fresh(made=made.model_copy(update={"workload": _pods(made, each=2, replicas=2)}))
    decided = judged(job, {"a100": A100}).decision.target
    assert decided == Placement("a100", 4, 1)
    fixed = made.model_copy(
        update={
            "workload": _pods(made, each=2, replicas=2),
            "elasticity": made.elasticity.model_copy(update={"min_chips": None, "max_chips": None}),
        }
    )
    refused = judged(fresh(made=fixed), {"a100": A100})
    assert reason(refused, "a100") is RejectionReason.TENSOR_SPLIT
    assert "2 chips of a pod" in verdict_text(find(refused, "a100"))


def _pods(made: ProfiledJobSpec, each: int, replicas: int) -> Any:
    job = made.workload.job.model_copy(update={"chips_per_replica": each, "replicas": replicas})
    return made.workload.model_copy(update={"job": job})


def test_where_an_edit_makes_the_current_size_impossible_the_job_leaves_it() -> None:
    odd = placed(parallel(8), Placement("a100", 12, 3))
    here = judged(odd).current
    assert here is not None and here.rejection is not None
    assert here.rejection.reason is RejectionReason.SIZE_NOT_OFFERED
    assert "12 chips are no multiple of the 8 that hold the model" in verdict_text(here)


@pytest.mark.parametrize(
    ("traits", "grows"),
    [
        ({}, False),
        ({"parallelism": Parallelism(sharded=1, tensor=4, pipeline=1)}, False),
        ({"parallelism": Parallelism(sharded=2)}, True),
    ],
)
def test_fewer_groups_leave_each_chip_what_it_holds_unless_state_is_sharded_over_them(
    traits: dict[str, Any], grows: bool
) -> None:
    """20 GB a chip on eight chips; four would need 40 in the worst case, and the A10G has 24."""
    found = reason(judged(placed(parallel(4), **traits), SMALL), "a10g", 4)
    assert (found is RejectionReason.MEMORY) is grows
    unsaid = placed(spec(8, elasticity={"minChips": 4, "maxChips": 32, "batch": "PerChip"}), **traits)
    assert reason(judged(unsaid, SMALL), "a10g", 4) is RejectionReason.MEMORY


def test_a_batch_that_stays_still_grows_on_each_chip() -> None:
    found = reason(judged(placed(parallel(4, batch="Global")), SMALL), "a10g", 4)
    assert found is RejectionReason.MEMORY


def test_what_the_user_says_of_the_division_stands_before_what_is_seen() -> None:
    seen = Parallelism(data=8, sharded=2, tensor=1, pipeline=1)
    assert parallelism_of(placed(parallel(4, 2), parallelism=seen)) == Parallelism(8, 2, 4, 2)
    assert parallelism_of(placed(spec(8), parallelism=seen)) == seen
    assert parallelism_of(fresh()) == Parallelism()


def test_a_divided_model_has_fewer_gradients_to_sum() -> None:
    traits = {"parameters": 30_000_000_000, "batch": 4096}
    two = {"chipCounts": [8, 16], "minChips": 8}
    slow = {"a100": replace(A100, inter_link=replace(A100.inter_link, bytes_per_second=2e9))}

    def doubled(tensor: int) -> float:
        estimate = find(judged(placed(parallel(tensor, **two), **traits), slow), "a100", 16).throughput
        assert estimate is not None
        return estimate.median

    assert doubled(8) > doubled(1)


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 3]), st.booleans())
def test_no_candidate_splits_a_group(tensor: int, pipeline: int, started: bool) -> None:
    group = tensor * pipeline
    made = parallel(tensor, pipeline, chips=group, maxChips=group * 8, chipCounts=[group, group * 2, group * 8])
    job = placed(made, Placement("a100", group, 1)) if started and group <= 8 else fresh(made=made)
    for candidate in judged(job).candidates:
        if candidate.rejection is None or candidate.rejection.reason in (
            RejectionReason.NOT_BETTER,
            RejectionReason.BELOW_MIN_SAVINGS,
        ):
            place = candidate.placement
            assert place.chips % group == 0
            fast = place.chips_per_replica if POOLS[place.pool].slice is None else POOLS[place.pool].unit
            assert fast % tensor == 0
