"""Reading specs and writing statuses."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from rightpool.api.action import Action
from rightpool.api.choices import (
    AdaptationMode,
    Capacity,
    CheckpointMode,
    CheckpointSignal,
    ModelState,
    Objective,
    Switch,
)
from rightpool.api.conditions import Condition, Reason
from rightpool.api.estimate import Estimate
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.pool import AcceleratorPoolSpec, LinkKind
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.quantities import LARGE_PATTERN
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.status import ProfiledJobStatus, ProfileStatus

T0 = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TEMPLATE = {
    "spec": {"containers": [{"name": "trainer", "image": "example/train", "env": [{"name": "A", "value": "1"}]}]}
}


def spec(**fields: Any) -> ProfiledJobSpec:
    return ProfiledJobSpec.model_validate({"workload": {"job": {"template": TEMPLATE}}, **fields})


def test_the_least_spec_has_the_documented_defaults() -> None:
    job = spec()
    assert (job.suspend, job.managed_by, job.queue_name, job.managed) == (False, "rightpool.dev/operator", None, True)
    assert (job.workload.job.chips_per_replica, job.workload.job.replicas, job.chips) == (1, 1, 1)
    assert (job.min_chips, job.max_chips, job.fixed) == (1, 1, True)
    assert job.elasticity.batch is None and job.elasticity.state is ModelState.SHARDED
    assert job.placement.capacity is Capacity.ON_DEMAND
    assert job.targets.objective is Objective.MINIMIZE_COST
    assert job.progress is None
    assert (job.checkpoint.mode, job.checkpoint.signal) == (CheckpointMode.SIGNAL, CheckpointSignal.SIGUSR1)
    assert job.checkpoint.timeout == timedelta(seconds=120)
    assert (job.profiling.mode, job.profiling.trace) == (Switch.AUTO, Switch.AUTO)
    assert (job.profiling.interval, job.profiling.window) == (timedelta(seconds=10), timedelta(minutes=5))
    assert job.adaptation.mode is None, "the policy's default holds"
    assert (job.adaptation.cooldown, job.adaptation.max_moves) == (timedelta(minutes=15), 4)
    assert (job.adaptation.min_savings, job.adaptation.require_approval) == (Decimal("0.10"), False)


def test_a_full_spec_is_read() -> None:
    job = spec(
        elasticity={"minChips": 1, "maxChips": 64, "chipCounts": [1, 2, 4], "batch": "Global"},
        placement={
            "pools": {"allow": ["a10g"], "deny": ["a100"], "selector": {"matchLabels": {"tier": "cheap"}}},
            "capacity": "Any",
            "memoryPerChip": "14Gi",
        },
        targets={
            "objective": "MinimizeTime",
            "minScalingEfficiency": "0.85",
            "minModelFlopsUtilization": "0.35",
            "maxCostPerHour": "40",
            "maxCostPerMillionSamples": "1.20",
            "budget": "500",
            "deadline": "2026-12-01T01:00:00+01:00",
        },
        progress={"totalSamples": 40_000_000, "flopsPerSample": "2.1e12"},
        checkpoint={"mode": "None", "path": "/ckpt"},
        adaptation={"mode": "Auto", "minSavings": "0.2"},
    )
    assert job.elasticity.chip_counts == (1, 2, 4)
    assert job.placement.memory_per_chip == 14 * 2**30
    assert job.targets.max_cost_per_million_samples == Decimal("1.20")
    assert job.targets.deadline == datetime(2026, 12, 1, tzinfo=UTC).timestamp()
    assert job.progress is not None and job.progress.total_samples == 40_000_000
    assert job.checkpoint.mode is CheckpointMode.NONE
    assert (job.flops_per_sample, spec().flops_per_sample) == (2.1e12, None)
    assert job.targets.min_model_flops_utilization == Decimal("0.35")
    assert job.adaptation.mode is AdaptationMode.AUTO


@given(st.one_of(st.from_regex(LARGE_PATTERN, fullmatch=True), st.text(max_size=8)))
def test_flops_are_numbers_of_some_size_and_survive_the_wire(text: str) -> None:
    allowed = re.fullmatch(LARGE_PATTERN, text) is not None and 1 <= Decimal(text) <= Decimal("1e30")
    if not allowed:
        with pytest.raises(ValidationError, match="flopsPerSample"):
            spec(progress={"flopsPerSample": text})
        return
    job = spec(progress={"flopsPerSample": text})
    assert job.flops_per_sample == float(text)
    assert ProfiledJobSpec.model_validate(job.to_dict()) == job


def test_a_spec_survives_the_wire() -> None:
    job = spec(
        targets={"budget": "500.00", "deadline": "2026-12-01T00:00:00.25Z"}, placement={"memoryPerChip": "1.5Gi"}
    )
    assert ProfiledJobSpec.model_validate(job.to_dict()) == job


def test_fields_of_a_newer_version_are_ignored_and_the_template_is_kept() -> None:
    job = spec(latency={"p99": "50ms"}, targets={"objective": "Balanced", "carbon": "1"})
    assert job.targets.objective is Objective.BALANCED
    assert job.workload.job.template == TEMPLATE


@pytest.mark.parametrize(
    ("elasticity", "bounds"),
    [
        ({}, (8, 8)),
        ({"minChips": 2}, (2, 8)),
        ({"maxChips": 16}, (8, 16)),
        ({"chipCounts": [2, 16]}, (2, 16)),
        ({"chipCounts": [2, 16], "maxChips": 32}, (2, 32)),
    ],
)
def test_sizes_default_to_the_counts_else_to_the_request(elasticity: dict[str, Any], bounds: tuple[int, int]) -> None:
    eight = {"job": {"template": TEMPLATE, "chipsPerReplica": 4, "replicas": 2}}
    job = spec(workload=eight, elasticity={**elasticity, "batch": "Global"})
    assert (job.min_chips, job.max_chips) == bounds
    assert job.fixed is (not elasticity)
    without = spec(workload=eight, elasticity=elasticity)
    assert (without.min_chips, without.max_chips) == (8, 8), "what another size would do is not known"


def test_a_workload_has_the_fields_of_its_kind() -> None:
    kind = {"template": TEMPLATE, "chipContainer": "other", "chipsPerReplica": 4, "replicas": 2}
    workload = spec(workload={"job": kind}).workload
    assert workload.field == "job"
    assert workload.chosen == workload.job
    assert (workload.chips_per_replica, workload.replicas, workload.chips) == (4, 2, 8)


def test_a_spec_is_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        spec().suspend = True  # type: ignore[misc]


def test_a_deadline_needs_a_zone() -> None:
    with pytest.raises(ValidationError, match="time zone"):
        spec(targets={"deadline": "2026-12-01T00:00:00"})


def test_a_pool_is_read() -> None:
    pool = AcceleratorPoolSpec.model_validate(
        {
            "accelerator": "A10G-24GB",
            "chipsPerNode": 4,
            "resourceName": "nvidia.com/gpu",
            "tolerations": [{"operator": "Exists"}],
            "interconnect": {"intraNode": {"kind": "PCIe", "gigabytesPerSecond": "24"}},
            "price": {"perChipHour": "1.006"},
        }
    )
    assert pool.interconnect is not None and pool.interconnect.intra_node is not None
    assert pool.interconnect.intra_node.kind is LinkKind.PCIE
    assert pool.interconnect.intra_node.gigabytes_per_second == Decimal(24)
    assert pool.price is not None and pool.price.per_chip_hour == Decimal("1.006")
    assert AcceleratorPoolSpec.model_validate(pool.to_dict()) == pool


def test_an_absent_policy_has_safe_defaults() -> None:
    policy = PlacementPolicySpec()
    assert policy.default_adaptation_mode is AdaptationMode.RECOMMEND
    assert (policy.max_concurrent_migrations, policy.max_moves_per_hour) == (None, None)
    assert policy.min_run_time == timedelta(minutes=5)
    assert (policy.circuit_breaker.window, policy.circuit_breaker.max_rolled_back_share) == (10, Decimal("0.5"))


def test_unknown_values_are_absent_from_the_status() -> None:
    status = ProfiledJobStatus(profile=ProfileStatus(samples_per_second=1180.3, scaling_efficiency=0.9712))
    assert status.to_dict()["profile"] == {"samplesPerSecond": "1180", "scalingEfficiency": "0.97"}
    assert "migration" not in status.to_dict()


def test_an_empty_status_is_read() -> None:
    status = ProfiledJobStatus.from_dict({})
    assert status.conditions == () and status.state == JobState()


def test_a_status_survives_the_wire() -> None:
    old = Revision(1, Placement("a100", 8, 1), cost_per_hour=32.77, since=T0.timestamp())
    new = Revision(2, Placement("a10g", 8, 2, CapacityType.SPOT))
    status = ProfiledJobStatus(
        observed_generation=3,
        conditions=(Condition("Placed", "True", "Running", "8 chips on a100", 3, T0.timestamp()),),
        state=JobState(
            revision=old,
            migration=Migration(
                id="d-7",
                action=Action.MOVE,
                phase=Phase.VERIFYING,
                source=old,
                target=new,
                created_at=T0.timestamp(),
                phase_since=T0.timestamp() + 0.002,
                reason=Reason.CHEAPER_POOL_MEETS_TARGETS,
                predicted=Estimate(1150.0, 0.1),
            ),
            history=(
                LedgerEntry(
                    id="d-6",
                    action=Action.MOVE,
                    source=old.placement,
                    target=new.placement,
                    started_at=T0.timestamp(),
                    finished_at=T0.timestamp(),
                    outcome=Outcome.ROLLED_BACK,
                    reason=Reason.ROLLED_BACK,
                ),
            ),
        ),
    )
    wire = status.to_dict()
    assert wire["placement"]["pool"] == "a100"
    assert wire["migration"]["from"]["pool"] == "a100"
    assert wire["conditions"][0]["lastTransitionTime"] == "2026-03-01T12:00:00Z"
    assert wire["history"][0]["outcome"] == "RolledBack"
    assert ProfiledJobStatus.from_dict(wire) == status
    assert ProfiledJobStatus.from_dict(json.loads(json.dumps(wire))) == status


def test_times_are_read_in_any_zone_and_written_in_utc() -> None:
    status = ProfiledJobStatus.from_dict({"lastMoveAt": "2026-03-01T13:00:00+01:00"})
    assert status.to_dict()["lastMoveAt"] == "2026-03-01T12:00:00Z"
