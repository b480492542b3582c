"""Jobs and fleets for the tests of planning."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rightpool.api.action import Action
from rightpool.api.altered import altered
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.placement import Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.profiledjob import ProfiledJobSpec
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.hardware.node_needs import NodeNeeds
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.greedy import GreedyAllocator
from rightpool.planning.allocate.limits import FleetLimits
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.allocate.plan import plan as plan_by
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.offers.assessment import Assessment
from rightpool.planning.offers.candidate import Candidate
from rightpool.planning.offers.decision import REASONS, Decision
from rightpool.planning.offers.evaluate import evaluate
from rightpool.planning.offers.evidence import Limit
from rightpool.planning.offers.intent import Intent
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.select import select
from rightpool.prediction.step_model import StepModelPredictor
from rightpool.profiles.profile import Profile
from rightpool.profiles.sample import Field
from rightpool.reporting.decision_texts import decision_text
from rightpool.workloads.kinds.registry import pod_sets_of
from rightpool.workloads.pod_set import scaled_of
from tests.unit.prediction.fixtures import A10G, A100, TPU, profile

GREEDY = GreedyAllocator()
NOW = 1_800_000_000.0
DAY = 86_400.0
AUTO = PlacementPolicySpec.model_validate({"defaultAdaptationMode": "Auto"})
POOLS = {pool.name: pool for pool in (A100, A10G, TPU)}
FOUR = Placement("a100", 4, 1)
THERE = Placement("a10g", 4, 1)
TEMPLATE = {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}


# Names that both have, such as `variation`, are what is observed now.
_OBSERVED = set(Observed._fields)
_STATE = {field.name for field in dataclasses.fields(JobState)}


def spec(chips: int = 4, **sections: Any) -> ProfiledJobSpec:
    """A spec that may run on 1 to 8 chips of any pool."""
    document: dict[str, Any] = {
        "workload": {"job": {"chipsPerReplica": chips, "replicas": 1, "template": TEMPLATE}},
        "elasticity": {"minChips": 1, "maxChips": 8, "batch": "PerChip"},
    }
    return ProfiledJobSpec.model_validate(document | sections)


def fresh(name: str = "job", made: ProfiledJobSpec | None = None, **fields: Any) -> Job:
    """A job that was never placed."""
    defaults: dict[str, Any] = {"uid": name, "generation": 1, "created_at": NOW - DAY, "workload_hash": "h"}
    made = made or spec()
    defaults["needs"] = NodeNeeds.of(scaled_of(pod_sets_of(made.workload)).template)
    given = {name: fields.pop(name) for name in defaults if name in fields}
    return changed(Job(key=JobKey("ns", name), spec=made, **(defaults | given)), **fields)


def changed(job: Job, **fields: Any) -> Job:
    """The same job with other values; a field of the state or of what is observed is named without saying so."""
    observed = {name: fields.pop(name) for name in _OBSERVED & fields.keys()}
    state = {name: fields.pop(name) for name in _STATE & fields.keys()}
    if state:
        fields["state"] = altered(job.state, **state)
    if observed:
        fields["observed"] = job.observed._replace(**observed)
    return altered(job, **fields)


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
) -> Job:
    """A job that has run for a day on `where`, with a complete profile: half of it communication by default."""
    made = made or spec()
    if measured is None:
        shown: dict[str, Any] = {
            "chip_busy": 0.98,
            "exposed_communication": 0.5 if where.chips > 1 else None,
            "memory_used": 10e9,
        }
        measured = profile(where.chips, rate, 0.01, **(shown | dict(ratios or {})))
    workload = made.workload
    pool = (pools or POOLS).get(where.pool)
    price = None if pool is None else pool.price.hourly(where)
    ref = Revision(1, where, "h", workload.chips, workload.replicas, NOW - DAY, price, NOW - DAY)
    state = RevisionState(1, True, active=where.replicas, running=where.replicas)
    defaults: dict[str, Any] = {"revision": ref, "revisions": {1: state}, "profile": measured}
    return fresh(name, made, **(defaults | fields))


def in_steps(job: Job) -> Job:
    """The same job, of which steps are seen alone."""
    profile = job.observed.profile
    assert profile is not None
    readings = dict(profile.readings)
    readings[Field.STEPS_PER_SECOND] = readings.pop(Field.SAMPLES_PER_SECOND)
    return changed(job, profile=replace(profile, readings=readings))


def fleet(
    jobs: Iterable[Job],
    pools: Mapping[str, Pool] | None = None,
    policy: PlacementPolicySpec = AUTO,
    now: float = NOW,
    telemetry: bool = True,
) -> Fleet:
    """A fleet of these jobs."""
    return Fleet({job.key: job for job in jobs}, pools or POOLS, policy, now, telemetry)


def entry(outcome: Outcome, finished_at: float, **fields: Any) -> LedgerEntry:
    """A move in the ledger, from the A100 pool to the A10G pool."""
    defaults: dict[str, Any] = {
        "id": "d-1",
        "action": Action.MOVE,
        "source": Placement("a100", 4, 1),
        "target": Placement("a10g", 4, 1),
        "predicted_throughput": None,
        "baseline_throughput": None,
        "realised_throughput": None,
        "started_at": finished_at - 300.0,
        "finished_at": finished_at,
        "outcome": outcome,
        "reason": "Delivered",
    }
    return LedgerEntry(**(defaults | fields))


def plan(whole: Fleet, previous: Plan | None = None, allocator: Allocator = GREEDY) -> Plan:
    """The plan by the step model."""
    return plan_by(whole, StepModelPredictor(), allocator, previous)


def assess(
    job: Job,
    pools: Mapping[str, Pool],
    policy: PlacementPolicySpec,
    now: float,
    promised: Iterable[Job] = (),
    telemetry: bool = True,
) -> Assessment:
    """A job by itself, without the limits of the fleet. promised: to whom chips are promised, this job included."""
    evaluated = evaluate(Fleet({job.key: job}, pools, policy, now, telemetry), StepModelPredictor())[job.key]
    return select(job, evaluated, policy, Room(pools, promised).fits(job, evaluated.places))


def judged(
    job: Job,
    pools: dict[str, Pool] | None = None,
    policy: PlacementPolicySpec = AUTO,
    telemetry: bool = True,
) -> Assessment:
    """The assessment of a job by itself."""
    assessment = assess(job, pools or POOLS, policy, NOW, telemetry=telemetry)
    assert assessment.decision.reason in REASONS[assessment.decision.action]
    return assessment


def decision_and_text(assessment: Assessment, now: float = NOW) -> tuple[Decision, str]:
    """The decision, and what is said of it."""
    assert assessment.evaluated is not None
    return assessment.decision, decision_text(assessment.evaluated.job, assessment, now)


def decided_text(assessment: Assessment, now: float = NOW) -> str:
    """What is said of the decision."""
    return decision_and_text(assessment, now)[1]


def find(assessment: Assessment, where: str, chips: int | None = None) -> Candidate:
    """The first candidate on this pool, of this size if any."""
    return next(c for c in assessment.candidates if c.placement.pool == where and chips in (None, c.placement.chips))


def reason(assessment: Assessment, where: str, chips: int | None = None) -> RejectionReason | None:
    """Why the candidate was not taken."""
    rejection = find(assessment, where, chips).rejection
    return None if rejection is None else rejection.reason


def auto_policy(**fields: Any) -> PlacementPolicySpec:
    """The policy of the tests, with these fields."""
    return PlacementPolicySpec.model_validate({"defaultAdaptationMode": "Auto"} | fields)


def limit_of(limits: FleetLimits, intent: Intent = Intent.SAVE) -> Limit | None:
    """What holds back the next move to `THERE`, of a job without a history."""
    return limits.limit_on(intent, running(name="next"), THERE)
