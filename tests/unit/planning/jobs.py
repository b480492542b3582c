"""Jobs and fleets for the tests of planning."""

from collections.abc import Iterable, Mapping
from typing import Any

from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.hardware.placement import Placement, hourly_cost
from rightpool.hardware.pool import Pool
from rightpool.planning.assess import Assessment, assess
from rightpool.planning.candidate import Candidate, RejectionReason
from rightpool.planning.decision import REASONS
from rightpool.planning.ledger import LedgerEntry, Outcome
from rightpool.planning.revision import RevisionRef, RevisionState
from rightpool.planning.snapshot import JobKey, JobState, Snapshot
from rightpool.profiles.profile import Profile
from tests.unit.prediction.fixtures import A10G, A100, TPU, profile

NOW = 1_800_000_000.0
DAY = 86_400.0
AUTO = PlacementPolicySpec.model_validate({"defaultAdaptationMode": "Auto"})
POOLS = {pool.name: pool for pool in (A100, A10G, TPU)}
FOUR = Placement("a100", 4, 1)
TEMPLATE = {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}


def spec(chips: int = 4, **sections: Any) -> ProfiledJobSpec:
    """A spec that may run on 1 to 8 chips of any pool."""
    document: dict[str, Any] = {
        "workload": {"job": {"chipsPerReplica": chips, "replicas": 1, "template": TEMPLATE}},
        "elasticity": {"minChips": 1, "maxChips": 8},
    }
    return ProfiledJobSpec.model_validate(document | sections)


def fresh(name: str = "job", made: ProfiledJobSpec | None = None, **fields: Any) -> JobState:
    """A job that was never placed."""
    defaults: dict[str, Any] = {"uid": name, "generation": 1, "created_at": NOW - DAY, "workload_hash": "h"}
    return JobState(key=JobKey("ns", name), spec=made or spec(), **(defaults | fields))


def running(
    where: Placement = FOUR,
    rate: float = 1000.0,
    name: str = "job",
    made: ProfiledJobSpec | None = None,
    *,
    pools: Mapping[str, Pool] | None = None,
    measured: Profile | None = None,
    ratios: Mapping[str, float | None] | None = None,
    **fields: Any,
) -> JobState:
    """A job that has run for a day on `where`, with a complete profile: half of it communication by default."""
    made = made or spec()
    if measured is None:
        shown: dict[str, Any] = {
            "chip_busy": 0.98,
            "exposed_communication": 0.5 if where.chips > 1 else None,
            "memory_used": 10e9,
        }
        measured = profile(where.chips, rate, 0.01, **(shown | dict(ratios or {})))
    workload = made.workload.job
    pool = (pools or POOLS).get(where.pool)
    price = None if pool is None else hourly_cost(where, pool)
    ref = RevisionRef(1, where, "h", (workload.chips, workload.replicas), NOW - DAY, price, NOW - DAY)
    state = RevisionState(1, True, active=where.replicas, running=where.replicas)
    defaults: dict[str, Any] = {"ref": ref, "revisions": {1: state}, "profile": measured}
    return fresh(name, made, **(defaults | fields))


def fleet(
    jobs: Iterable[JobState],
    pools: Mapping[str, Pool] | None = None,
    policy: PlacementPolicySpec = AUTO,
    now: float = NOW,
    telemetry: bool = True,
) -> Snapshot:
    """A snapshot of these jobs."""
    return Snapshot({job.key: job for job in jobs}, pools or POOLS, policy, now, telemetry)


def entry(outcome: Outcome, finished_at: float, **fields: Any) -> LedgerEntry:
    """A move in the ledger, from the A100 pool to the A10G pool."""
    defaults: dict[str, Any] = {
        "id": "d-1",
        "action": "Move",
        "source": Placement("a100", 4, 1),
        "target": Placement("a10g", 4, 1),
        "predicted_samples_per_second": None,
        "predicted_cost_per_million": None,
        "baseline_samples_per_second": None,
        "baseline_cost_per_million": None,
        "realised_samples_per_second": None,
        "realised_cost_per_million": None,
        "started_at": finished_at - 300.0,
        "finished_at": finished_at,
        "outcome": outcome,
        "reason": "Delivered",
    }
    return LedgerEntry(**(defaults | fields))


def judged(
    job: JobState,
    pools: dict[str, Pool] | None = None,
    policy: PlacementPolicySpec = AUTO,
    reserved: dict[str, int] | None = None,
    telemetry: bool = True,
) -> Assessment:
    """The assessment of a job by itself."""
    assessment = assess(job, pools or POOLS, policy, NOW, reserved or {}, telemetry=telemetry)
    assert assessment.decision.reason in REASONS[assessment.decision.action]
    return assessment


def find(assessment: Assessment, where: str, chips: int | None = None) -> Candidate:
    """The first candidate on this pool, of this size if any."""
    return next(c for c in assessment.candidates if c.placement.pool == where and chips in (None, c.placement.chips))


def reason(assessment: Assessment, where: str, chips: int | None = None) -> RejectionReason | None:
    """Why the candidate was not taken."""
    rejection = find(assessment, where, chips).rejection
    return None if rejection is None else rejection.reason
