"""The plan: what is to be done about every job of the fleet, so that all of it fits together.

Jobs are assessed one by one, then admitted in order: first starts, oldest first; what users demand; then moves, the
largest saving first, as long as pools have room and the fleet's limits allow. Whoever is not admitted holds, for a
reason. Nothing depends on the order in which jobs or pools come.

A plan remembers what it was made from. Handed to the next call it spares the work for every job whose inputs are the
same: a survey is kept while the job, its profile (within 2%) and the machines are, a choice while the same wanted
candidates have room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rightpool.api.conditions import Reason
from rightpool.planning.assess import Assessment, choose, fits, room_for, survey
from rightpool.planning.contradiction import contradiction
from rightpool.planning.decision import MIGRATING_ACTIONS, Action, Decision
from rightpool.planning.hysteresis import FleetLimits, Refusal, job_refusal
from rightpool.planning.migration import Phase
from rightpool.planning.progress import age_class
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobKey, JobState, Snapshot
from rightpool.planning.start import late
from rightpool.planning.stranger import stranger
from rightpool.planning.survey import Intent, Survey, demanded
from rightpool.profiles.profile import Profile, Reading
from rightpool.profiles.sample import Field

# Readings that differ by less say nothing new.
SAME_READING: Final = 0.02
SAME_RATIO: Final = 0.01
# Deadlines and budgets run with the clock; a survey that depends on them is this old at most.
CLOCK_SECONDS: Final = 60.0

_READ: Final = (
    Field.SAMPLES_PER_SECOND,
    Field.STEP_SECONDS,
    Field.CHIP_BUSY,
    Field.SLOWEST_CHIP_BUSY,
    Field.COMPUTE_ACTIVE,
    Field.EXPOSED_COMMUNICATION,
    Field.INPUT_WAIT,
    Field.MATRIX_ACTIVE,
    Field.MEMORY_BANDWIDTH,
    Field.MEMORY_USED,
    Field.POWER,
    Field.THROTTLE,
    Field.CHECKPOINT_SECONDS,
)
_HOLDS_NO_CHIPS: Final = frozenset({Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING, Phase.STARTING})


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What an assessment was made from. state: the part of the job that a survey reads, as one comparable value."""

    state: tuple[object, ...]
    profile: Profile | None
    survey: Survey
    made_at: float
    fits: tuple[bool, ...]
    assessment: Assessment


@dataclass(frozen=True, slots=True)
class Plan:
    """assessments: one for each job of the snapshot. reused: surveys that were kept from the plan before."""

    assessments: Mapping[JobKey, Assessment]
    reused: int = 0
    remembered: Mapping[JobKey, _Remembered] = field(default_factory=dict, repr=False)
    machines: tuple[object, ...] = field(default=(), repr=False)


def plan(snapshot: Snapshot, previous: Plan | None = None) -> Plan:
    """Assess and admit. previous: the last cycle's plan, whatever has happened since."""
    machines = _machines(snapshot)
    old = previous.remembered if previous is not None and previous.machines == machines else {}
    reserved = reservations(snapshot.jobs.values())
    remembered: dict[JobKey, _Remembered] = {}
    reused = 0
    for key, job in snapshot.jobs.items():
        before = old.get(key)
        try:
            entry = _assessed(job, snapshot, reserved, before)
        except Exception as error:
            entry = _failed(error, snapshot.now)
        reused += before is not None and entry.survey is before.survey
        remembered[key] = entry
    admitted = _admitted(snapshot, remembered, reserved)
    assessments = {key: admitted.get(key, entry.assessment) for key, entry in remembered.items()}
    return Plan(assessments, reused, remembered, machines)


def reservations(jobs: Iterable[JobState]) -> dict[str, int]:
    """Chips of each pool that are promised and that no pod asks for yet, so that `free` still counts them.

    First starts whose pods are not there yet; targets of migrations that have not come up. A migration that waits for
    its user's approval holds none: that may take days.
    """
    reserved: dict[str, int] = {}
    for job in jobs:
        if job.finished or job.deleting or job.ref is None or job.spec.suspend or contradiction(job):
            continue
        migration = job.migration
        if migration is None:
            if job.ref.since is None:
                _promise(reserved, job, job.ref, 0)
        elif migration.phase in _HOLDS_NO_CHIPS:
            if job.awaits_approval:
                continue
            leaving = migration.moving
            same = leaving.placement.pool == migration.target.placement.pool
            held = _asked(job, leaving) if same and leaving.revision != migration.target.revision else 0
            _promise(reserved, job, migration.target, held)
    return reserved


def _promise(reserved: dict[str, int], job: JobState, ref: RevisionRef, freed: int) -> None:
    """Promise a Revision what its pods do not ask for yet. freed: chips of the same pool that the job gives back."""
    due = ref.placement.chips - _asked(job, ref) - freed
    if due > 0:
        reserved[ref.placement.pool] = reserved.get(ref.placement.pool, 0) + due


def _asked(job: JobState, ref: RevisionRef) -> int:
    """Chips that the pods of a Revision ask for."""
    return min(job.revision(ref.revision).active, ref.placement.replicas) * ref.placement.chips_per_replica


def _assessed(
    job: JobState, snapshot: Snapshot, reserved: Mapping[str, int], before: _Remembered | None
) -> _Remembered:
    """The job's survey and choice, the old ones where nothing has changed that they depend on."""
    state = _state(job, snapshot)
    room = room_for(job, snapshot.pools, reserved)
    if before is not None and before.state == state and _still_true(job, before, snapshot.now):
        possible = fits(before.survey, room)
        if possible == before.fits:
            return before
        assessment = choose(job, before.survey, snapshot.pools, snapshot.policy, room)
        return replace(before, fits=possible, assessment=assessment)
    overdue = late(job, snapshot.policy, snapshot.now)
    surveyed = survey(job, snapshot.pools, snapshot.now, snapshot.telemetry, overdue)
    assessment = choose(job, surveyed, snapshot.pools, snapshot.policy, room)
    return _Remembered(state, job.profile, surveyed, snapshot.now, fits(surveyed, room), assessment)


def _failed(error: Exception, now: float) -> _Remembered:
    """Of a job that can't be judged: that is a defect, and keeps no other from being planned."""
    message = f"the operator failed on this job, which is a defect of it: {type(error).__name__}: {error}"
    decision = Decision(Action.HOLD, Reason.OPERATOR_FAILED, message)
    survey = Survey(Intent.NONE, None, (), (), decision)
    return _Remembered((), None, survey, now, (), Assessment(None, (), decision))


def _state(job: JobState, snapshot: Snapshot) -> tuple[object, ...]:
    """Everything of a job that its assessment reads but the profile; equal where the assessment would be the same.

    The spec is named by uid and generation, the history by its last entry; age counts in powers of two.
    """
    now, ref, migration = snapshot.now, job.ref, job.migration
    return (
        job.uid,
        job.generation,
        job.workload_hash,
        ref,
        None if migration is None else (migration.id, migration.phase, migration.rolling_back, migration.target),
        job.finished,
        job.deleting,
        job.invalid,
        contradiction(job),
        stranger(job),
        job.history[-1].finished_at if job.history else None,
        tuple(entry for entry in job.avoid if entry.until is None or entry.until > now) if job.avoid else (),
        age_class(job, now),
        job.revision(ref.revision).blocked if ref is not None and ref.since is None else None,
        job.absent,
        late(job, snapshot.policy, now),
        snapshot.telemetry,
        snapshot.policy.default_adaptation_mode,
    )


def _still_true(job: JobState, before: _Remembered, now: float) -> bool:
    targets = job.spec.targets
    if (
        targets.deadline is not None or targets.budget is not None or job.spec.progress is not None
    ) and not 0.0 <= now - before.made_at < CLOCK_SECONDS:
        return False
    return job.profile is before.profile or alike(job.profile, before.profile)


def alike(one: Profile | None, other: Profile | None) -> bool:
    """Whether two profiles say the same to whoever judges by them: readings within 2%, ratios within a percentage
    point."""
    if one is None or other is None:
        return one is other
    if (
        one.key != other.key
        or one.steadiness is not other.steadiness
        or one.complete is not other.complete
        or one.pods != other.pods
    ):
        return False
    return all(_near(one.readings.get(name), other.readings.get(name)) for name in _READ)


def _near(one: Reading | None, other: Reading | None) -> bool:
    if one is None or other is None:
        return one is other
    if one is other:
        return True
    slack = max(SAME_READING * abs(other.value), SAME_RATIO if abs(other.value) <= 1.0 else 0.0)
    return (
        abs(one.value - other.value) <= slack
        and abs(one.low - other.low) <= 2.0 * slack
        and abs(one.high - other.high) <= 2.0 * slack
    )


def _machines(snapshot: Snapshot) -> tuple[object, ...]:
    """The pools without what changes from cycle to cycle."""
    pools = (snapshot.pools[name] for name in sorted(snapshot.pools))
    return tuple(replace(pool, free=0, node_labels=dict.fromkeys(pool.node_labels, 0)) for pool in pools)


# --- admission -------------------------------------------------------------------------------------------------------


def _admitted(
    snapshot: Snapshot, remembered: Mapping[JobKey, _Remembered], reserved: Mapping[str, int]
) -> dict[JobKey, Assessment]:
    """Assessments that differ from what each job by itself would get, because others come first."""
    starts, demands, moves = [], [], []
    for key, entry in remembered.items():
        if not entry.survey.wanted or snapshot.jobs[key].migration is not None:
            continue
        action = entry.assessment.decision.action
        if action is Action.START:
            starts.append((snapshot.jobs[key].created_at, key))
        elif action is Action.UPDATE or (action in MIGRATING_ACTIONS and entry.survey.intent is Intent.LEAVE):
            demands.append((snapshot.jobs[key].created_at, key))
        elif action in MIGRATING_ACTIONS:
            moves.append((-entry.assessment.saved_per_hour, key))
    promised = dict(reserved)
    limits = FleetLimits(snapshot.jobs.values(), snapshot.policy, snapshot.now)
    changed: dict[JobKey, Assessment] = {}
    for group in (starts, demands, moves):
        for _, key in sorted(group):
            entry, job = remembered[key], snapshot.jobs[key]
            assessment = entry.assessment
            room = room_for(job, snapshot.pools, promised)
            if fits(entry.survey, room) != entry.fits:
                assessment = choose(job, entry.survey, snapshot.pools, snapshot.policy, room)
            refusal = _refusal(job, assessment, snapshot, limits)
            if refusal is not None:
                assessment = _held(assessment, refusal)
            elif assessment.decision.action is Action.START or assessment.decision.action in MIGRATING_ACTIONS:
                _take(promised, job, assessment.decision)
                if assessment.decision.action in MIGRATING_ACTIONS:
                    limits.admit(demanded(job, assessment.intent))
            if assessment is not entry.assessment:
                changed[key] = assessment
    return changed


def _refusal(job: JobState, assessment: Assessment, snapshot: Snapshot, limits: FleetLimits) -> Refusal | None:
    if assessment.decision.action not in MIGRATING_ACTIONS:
        return None
    if demanded(job, assessment.intent):
        return None
    intent = assessment.intent
    return job_refusal(job, intent, snapshot.policy, snapshot.now) or limits.refusal(intent)


def _held(assessment: Assessment, refusal: Refusal) -> Assessment:
    decision = assessment.decision
    message = f"{refusal.message}; after that: {decision.message}"
    return replace(
        assessment, decision=Decision(Action.HOLD, refusal.reason, message, decision.candidate, decision.purpose)
    )


def _take(promised: dict[str, int], job: JobState, decision: Decision) -> None:
    """The decision's chips are promised; on its own pool a job takes only what it does not have."""
    assert decision.candidate is not None
    target = decision.candidate.placement
    own = job.ref.placement.chips if job.ref is not None and job.ref.placement.pool == target.pool else 0
    promised[target.pool] = promised.get(target.pool, 0) + max(target.chips - own, 0)
