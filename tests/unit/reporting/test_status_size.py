"""A status stays small: it is the operator's memory, and etcd and every watcher hold one for each job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.estimate import Estimate
from rightpool.api.interruption import Interruption
from rightpool.api.ledger import MAX_HISTORY, LedgerEntry, Outcome
from rightpool.api.migration import MAX_BASELINE_RATES, Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.premise import Premise, PremiseKind
from rightpool.api.program_edit import MAX_RATES, ProgramEdit
from rightpool.api.progress import JobProgress
from rightpool.api.recovery import Recovery
from rightpool.api.rescue import Rescue
from rightpool.api.revision import Revision
from rightpool.api.status import ProfiledJobStatus
from rightpool.api.traits import ModelTraits, Parallelism
from rightpool.api.variation import MAX_RECENT, SlowStart, SpanDifference, Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.ending import with_avoided
from rightpool.planning.moves.migration_texts import verified_text
from rightpool.planning.work.unsaved import appended
from rightpool.planning.work.verification import verify
from rightpool.profiles.steadiness import SPANS
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from tests.unit.planning.jobs import DAY, assess, changed, decided_text, running, spec
from tests.unit.planning.jobs import NOW as WHOLE
from tests.unit.planning.world import complete_profile
from tests.unit.prediction.fixtures import A10G_CHIP, A100_CHIP, pool

STATUS: Final = 12 * 1024
"""Bytes of JSON of a whole status, also while the job moves. The newest trace has a bound of its own."""
NOW: Final = WHOLE + 0.123
"""With milliseconds, as the times of a cluster are."""
RATE: Final = 0.0123456
"""Steps a second: the slower, the more characters."""
HERE: Final = Placement("a100-sxm4-80gb-west4", 16, 2)
THERE: Final = Placement("a10g-24gb-reserved", 16, 4)
SIXTEEN: Final = pool(HERE.pool, A100_CHIP, 3.67318, spot=1.46934, labels={"zone": "europe-west4-a"})
POOLS: Final = {SIXTEEN.name: SIXTEEN, THERE.pool: pool(THERE.pool, A10G_CHIP, 0.20637)}
UNCERTAIN: Final = Estimate(
    RATE,
    0.234567,
    (
        Premise(PremiseKind.COMMUNICATION),
        Premise(PremiseKind.CHIP_ACTIVITY),
        Premise(PremiseKind.DEMAND, number=0.712345),
        Premise(PremiseKind.BOUNDARY, ("NVLink", "Ethernet")),
        Premise(PremiseKind.SIZES_SEEN, number=2.0),
        Premise(PremiseKind.SPECIFICATIONS, ("A100-SXM4-80GB", "A10G-24GB")),
        Premise(PremiseKind.PUBLISHED_THROUGHPUT, ("A100-SXM4-80GB", "A10G-24GB")),
        Premise(PremiseKind.CHIPS_SEEN, number=2.0),
        Premise(PremiseKind.FLEET, number=5000.0),
        Premise(PremiseKind.OTHER_HOST),
    ),
    (("chips of a10g-24gb-reserved", 0.123456), ("host", -0.0123456), ("window", 0.0123456)),
)
HASH: Final = "0123456789abcdef"
IMAGE: Final = "trainer-of-a-team:2026.11.29-0123abcd"
COUNTERFACTUAL: Final = Counterfactual(
    HERE, 23.5094, 23.5094, NOW, 12345.67, 0.612345, 1.23456, 1.23456, 0.234567, 12, WorkUnit.STEPS, RATE, NOW, RATE,
    NOW, 24, 9, 12345.67, -12345.67,
)  # fmt: skip


def revision(number: int, placement: Placement) -> Revision:
    return Revision(number, placement, HASH, 16, 1, NOW - DAY, 58.7709, NOW - DAY, 1, chip="A100-SXM4-80GB")


MIGRATION: Final = Migration(
    id="d-12",
    action=Action.MOVE,
    phase=Phase.VERIFYING,
    source=revision(12, HERE),
    target=revision(13, THERE),
    created_at=NOW - 3600.0,
    phase_since=NOW - 600.0,
    reason=Reason.CHEAPER_POOL_MEETS_TARGETS,
    unit=WorkUnit.STEPS,
    predicted=replace(UNCERTAIN, basis=()),
    baseline=RATE,
    healthy_baseline=1.9 * RATE,
    baseline_windows=24,
    baseline_rates=(RATE,) * MAX_BASELINE_RATES,
    saved_before=NOW,
    saved_at=NOW - 0.877,
    stopped_at=NOW - 0.877,
    running_at=NOW - 0.877,
    left=COUNTERFACTUAL.uncounted(),
    lost_seconds=123.456,
    cost=1234.56,
    realised=0.8 * RATE,
    source_work=0.9876,
    target_work=0.9876,
    throttled=True,
    doubt=0.0123456,
)


EDIT: Final = ProgramEdit(
    "123456789abcdef0",
    IMAGE,
    (RATE,) * MAX_RATES,
    WorkUnit.STEPS,
    (0.0123, 0.0123, 0.0123, 0.123, 0.84),
    "bf16",
    4096,
)


def verdict() -> str:
    """What a move says of itself that was worse."""
    profile = complete_profile(13, 0.8 * RATE, NOW, unit=WorkUnit.STEPS)
    return verified_text(MIGRATION, verify(MIGRATION, profile, spec()))


def history() -> tuple[LedgerEntry, ...]:
    """Moves that were measured on either side, some from throttled chips, the last ones undone."""
    found: tuple[LedgerEntry, ...] = ()
    for number in range(123 - MAX_HISTORY, 123):
        undone, throttled = number > 120, number % 3 == 0
        made = LedgerEntry(
            id=f"d-{number}",
            action=Action.RESIZE,
            source=HERE,
            target=THERE,
            source_cost_per_hour=58.7709,
            target_cost_per_hour=23.5094,
            started_at=NOW - 3600.123,
            finished_at=NOW - 60.123,
            outcome=Outcome.ROLLED_BACK if undone else Outcome.VERIFIED,
            reason=Reason.ROLLED_BACK if undone else Reason.BELOW_PREDICTION,
            message=verdict(),
            unit=WorkUnit.STEPS,
            predicted_throughput=RATE,
            baseline_throughput=RATE,
            healthy_baseline_throughput=1.9 * RATE if throttled else None,
            realised_throughput=0.8 * RATE,
            throttled=throttled,
            source_chip="A100-SXM4-80GB",
            target_chip="A100-PCIE-80GB",
            source_work=0.9876,
            target_work=0.9876,
            doubt=0.0123456,
            lost_seconds=123.456,
            cost=1234.56,
        )
        found = appended(found, made)
    return found


def remembered(job: Job, **state: Any) -> Job:
    """The job with all that it remembers."""
    spans = tuple(SpanDifference(length, 288.0, 0.0123456) for length in SPANS)
    for chips in (4, 8, 16):
        job = with_avoided(job, revision(2, replace(THERE, chips=chips)), Reason.ROLLED_BACK, NOW, decision="d-123")
    avoided = job.state.avoid
    account = Account(
        58.7709, 0.123456, 12345.67, -1234.56, NOW, -12.3456, 123.456, 16, 1234567.891, 0.9876, COUNTERFACTUAL
    )
    variation = Variation(1, NOW, (RATE,) * MAX_RECENT, spans, throttled=True)
    job = job.with_state(replace(job.state, variation=variation))
    return changed(
        job,
        revision=revision(1, HERE),
        account=account,
        progress=JobProgress(WorkUnit.SAMPLES, 10**12, NOW, 12, 10**12, RATE, 1234567.891, 10**12),
        recovery=Recovery(NOW, 1234.56),
        moves=4,
        decisions=123,
        last_move_at=NOW - 60.0,
        avoid=avoided,
        history=history(),
        image=IMAGE,
        edit=EDIT,
        **state,
    )


def measured() -> Job:
    """A job of which everything is measured that a profile shows."""
    ratios = {
        "chip_busy": 0.98765, "compute_active": 0.71234, "matrix_active": 0.31234, "memory_bandwidth": 0.41234,
        "memory_used": 1.123e10, "memory_total": 8.5e10, "power": 387.654, "exposed_communication": 0.12345,
        "input_wait": 0.01234, "saving": 0.01234, "step_seconds": 0.123456, "throttle": 0.5, "clock": 0.5,
    }  # fmt: skip
    made = spec(
        16,
        elasticity={"minChips": 8, "maxChips": 16, "batch": "PerChip"},
        progress={"totalSamples": 10**15},
        targets={"budget": "1000000"},
    )
    job = running(HERE, RATE, "a-job-with-a-name-of-fifty-characters-for-a-change", made, pools=POOLS, ratios=ratios)
    profile = job.observed.profile
    assert profile is not None
    traits = ModelTraits(
        "bf16", "fp32", 70_553_706_496, 282_214_825_984, 282_214_825_984, 4096, None, Parallelism(16, 16, 1, 1)
    )
    return changed(job, profile=replace(profile, traits=traits), workload_hash=HASH)


def at(job: Job, ref: Revision) -> Job:
    """The job as this Revision of its migration."""
    child, profile = job.child, job.observed.profile
    assert child is not None and profile is not None and job.state.variation is not None
    pods = ref.placement.replicas
    return changed(
        job,
        revision=ref,
        revisions={ref.revision: replace(child, revision=ref.revision, active=pods, running=pods)},
        profile=replace(profile, key=profile.key._replace(revision=ref.revision)),
        variation=replace(job.state.variation, revision=ref.revision),
    )


def size(body: Mapping[str, Any]) -> int:
    return len(json.dumps(ProfiledJobStatus.stored(body), separators=(",", ":")).encode())


def body_of(job: Job) -> Mapping[str, Any]:
    context = Context(assess(job, POOLS, PlacementPolicySpec(), NOW), SIXTEEN.price, True, NOW)
    body = draft_status(StoredJob(job, packed({}), None, ""), job, context).body
    assert len(body["history"]) == MAX_HISTORY and len(body["avoid"]) == 3
    return body


def aged(one: Counterfactual | None) -> Counterfactual | None:
    """Measured so early that a slow start may have been in it."""
    return None if one is None else replace(one, baseline_age=2345.67)


def slowly(job: Job) -> Job:
    """The job known to start slowly."""
    variation = job.state.variation
    assert variation is not None
    variation = replace(variation, slow_start=SlowStart(2700.0, 1234.56, 12), window_seconds=86_400.0, forgotten=True)
    account = replace(job.state.account, counterfactual=aged(job.state.account.counterfactual))
    return job.with_state(replace(job.state, variation=variation, account=account))


RESCUE: Final = Rescue(1, 2, NOW, "gke-a100-pool-1-0123abcd-x7k2", NOW, NOW)
AHEAD: Final = replace(COUNTERFACTUAL.uncounted(), speed=None, rate=None, rate_at=None, rate_windows=0, readings=0)
"""That of a place which a job has just come to."""
PLANNED: Final = replace(
    MIGRATION, phase=Phase.PLANNED, predicted=UNCERTAIN, baseline_windows=0, baseline_rates=(), saved_before=None,
    saved_at=None, stopped_at=None, running_at=None, left=None, lost_seconds=0.0, cost=0.0, realised=None,
    throttled=False, doubt=None,
)  # fmt: skip
BACK: Final = replace(
    MIGRATION,
    target=revision(14, HERE),
    message="",
    rolling_back=True,
    baseline_rates=(),
    abandoned=revision(13, THERE),
    failure=Reason.ROLLED_BACK,
    failure_message=verdict(),
)


def test_a_status_is_small_with_a_full_history_and_all_else_set() -> None:
    body = body_of(remembered(measured(), rescue=RESCUE))
    conditions = {condition["type"]: condition for condition in body["conditions"]}
    assert conditions["Placed"]["reason"] == "Running"
    recommended = body["recommendation"]
    assert conditions["CostEfficient"]["message"] == recommended["message"]
    assert f"{recommended['id']} is recommended" in conditions["Migrating"]["message"], "why is said twice already"
    assert size(body) <= STATUS


@pytest.mark.parametrize("slow", [False, True], ids=["usual", "starts slowly"])
@pytest.mark.parametrize(
    ("migration", "interrupted"),
    [
        (PLANNED, None),
        (replace(PLANNED, phase=Phase.CHECKPOINTING, saved_before=NOW, last_rate=RATE), None),
        (MIGRATION, AHEAD),
        (MIGRATION, None),
        (replace(BACK, phase=Phase.CHECKPOINTING), None),
        (replace(BACK, phase=Phase.STARTING, left=None), COUNTERFACTUAL.uncounted()),
    ],
    ids=["is planned", "is to leave", "repeats steps", "is verified", "is to go back", "goes back"],
)
def test_a_status_is_small_while_the_job_moves(
    migration: Migration, interrupted: Counterfactual | None, slow: bool
) -> None:
    job = remembered(measured(), rescue=RESCUE)
    if slow:
        job, migration, interrupted = slowly(job), replace(migration, left=aged(migration.left)), aged(interrupted)
    reason = decided_text(assess(job, POOLS, PlacementPolicySpec(), NOW))
    if not migration.rolling_back:
        migration = replace(migration, message=reason)
    state = {"migration": migration}
    if interrupted is not None:
        account = replace(job.state.account, counterfactual=None)  # until the steps have caught up
        interruption = Interruption("d-12", NOW, 12345.67, 10**9, WorkUnit.STEPS, True, interrupted)
        state |= {"account": account, "interruption": interruption}
    leaves = migration.phase in (Phase.PLANNED, Phase.CHECKPOINTING)
    if not leaves or migration.rolling_back:
        state["edit"] = None  # what was compared where it was ends
    body = body_of(at(changed(job, **state), migration.moving if leaves else migration.target))
    conditions = {condition["type"]: condition for condition in body["conditions"]}
    assert conditions["Placed"]["reason"] == "Running"
    assert ("slowStart" in body["variation"]) is slow
    assert size(body) <= STATUS
