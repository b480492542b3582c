"""An assessment: everywhere one job could be, and what is to be done about it now.

Two halves. The survey judges every placement by all but room and is kept while its inputs are the same. The choice
takes the best wanted candidate that has room at this moment, and is made anew whenever the room changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rightpool.api.choices import AdaptationMode, CheckpointMode, Switch
from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.hardware.placement import Placement, hourly_cost
from rightpool.hardware.pool import Pool
from rightpool.planning import gates, messages
from rightpool.planning.candidate import Candidate, Rejection, RejectionReason
from rightpool.planning.contradiction import contradiction
from rightpool.planning.decision import Action, Decision
from rightpool.planning.snapshot import JobState
from rightpool.planning.start import forbidden, late, survey_leave, survey_start, survey_update
from rightpool.planning.stranger import stranger
from rightpool.planning.survey import Intent, Survey, action_reason, demanded, survey_running
from rightpool.planning.wording import share, span
from rightpool.prediction.predict import unusable
from rightpool.profiles.profile import Profile, Steadiness

_UNDER_WAY: Final = {
    Action.RESIZE: Reason.RESIZING,
    Action.UPDATE: Reason.UPDATING,
    Action.START: Reason.STARTING,
}

# Chips that a job could have on a pool: free ones, growth, and its own, less what is promised to others.
Room = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Assessment:
    """current: where the job is, None before its first start. candidates: everywhere else, by score, the best first.

    A candidate without rejection is what the decision takes, or would take. saved_per_hour: dollars, time at its value
    included; 0 where nothing is to be done. intent: what the decision is for.
    """

    current: Candidate | None
    candidates: tuple[Candidate, ...]
    decision: Decision
    saved_per_hour: float = 0.0
    intent: Intent = Intent.NONE


def assess(
    job: JobState,
    pools: Mapping[str, Pool],
    policy: PlacementPolicySpec,
    now: float,
    reserved: Mapping[str, int],
    *,
    telemetry: bool = True,
) -> Assessment:
    """Assess one job by itself. reserved: chips of each pool that are promised and not taken yet, this job's included.

    The limits of the fleet (hysteresis.py) are not applied here: `plan` does, when it admits decisions one by one.
    """
    surveyed = survey(job, pools, now, telemetry, late(job, policy, now))
    return choose(job, surveyed, pools, policy, room_for(job, pools, reserved))


def room_for(job: JobState, pools: Mapping[str, Pool], reserved: Mapping[str, int]) -> Room:
    """Chips that this job could have on a pool.

    Its own count: they are either held by its pods or promised to it, and both are taken off `free` or added to
    `reserved`. Where it is under way from one size to another on one pool, the larger of the two is its own. Nodes that
    its template does not select have no room for it; chips that are promised may be those of any node.
    """
    selected = gates.node_selector(job.spec)
    own: dict[str, int] = {}
    if job.ref is not None and not job.finished:
        own[job.ref.placement.pool] = job.ref.placement.chips
    if job.migration is not None:
        target = job.migration.target.placement
        own[target.pool] = max(own.get(target.pool, 0), target.chips)

    def room(name: str) -> int:
        pool = pools[name]
        return pool.free_on(selected) + pool.growable - reserved.get(name, 0) + own.get(name, 0)

    return room


def survey(
    job: JobState, pools: Mapping[str, Pool], now: float, telemetry: bool = True, overdue: bool = False
) -> Survey:
    """Everything about a job that does not depend on free chips, nor on the limits of the fleet.

    overdue: whether it does not start where it was placed (`start.late`).
    """
    rest = _at_rest(job)
    if rest is not None:
        return Survey(Intent.NONE, None, (), (), rest)
    if job.ref is None:
        return survey_start(job, pools, now)
    here = job.ref.placement
    if here.pool not in pools:
        return _homeless(job, pools, now, overdue)
    if job.migration is None and _edited(job):
        return survey_update(job, pools, now)
    gap = _gap(job, telemetry)
    if gap is None:
        return survey_running(job, pools, now)
    current = Candidate(here, None, hourly_cost(here, pools[here.pool]), None)
    if job.migration is not None:
        return Survey(Intent.NONE, current, (), (), gap)
    why = forbidden(job, pools)
    if why is not None:
        return survey_leave(job, pools, now, why)
    start = survey_start(job, pools, now)
    if overdue and start.wanted:
        return start
    unknown = Rejection(RejectionReason.NOT_PREDICTABLE, gap.message)
    candidates = tuple(
        replace(candidate, rejection=candidate.rejection or unknown)
        for candidate in start.candidates
        if candidate.placement != here
    )
    return Survey(Intent.NONE, current, candidates, (), gap)


def _homeless(job: JobState, pools: Mapping[str, Pool], now: float, overdue: bool) -> Survey:
    """Of a job whose pool is not there. What runs is left alone; what can't start is started elsewhere."""
    assert job.ref is not None
    absent = job.absent or f"pool {job.ref.placement.pool} is not known any more"

    def hold(message: str) -> Decision:
        return Decision(Action.HOLD, Reason.NO_FEASIBLE_POOL, f"{absent}; {message}")

    if overdue:
        start = survey_start(job, pools, now)
        return start if start.wanted else replace(start, otherwise=hold(start.otherwise.message))
    if job.revision(job.ref.revision).exists:
        return Survey(Intent.NONE, None, (), (), hold("nothing is decided until then"))
    return Survey(Intent.NONE, None, (), (), hold("it is started elsewhere after the policy's startDeadline"))


def choose(
    job: JobState, surveyed: Survey, pools: Mapping[str, Pool], policy: PlacementPolicySpec, room: Room
) -> Assessment:
    """The best wanted candidate that has room, and the decision that follows. Cheap: touches wanted candidates only."""
    candidates = list(surveyed.candidates)
    taken: Candidate | None = None
    crowded: Candidate | None = None
    for index in surveyed.wanted:
        candidate = candidates[index]
        placement = candidate.placement
        full = gates.room_gate(job.spec, placement, pools[placement.pool], room(placement.pool))
        if full is not None:
            candidates[index] = replace(candidate, rejection=full)
            crowded = crowded or candidates[index]
        elif taken is None:
            taken = candidate
        elif job.migration is None:
            candidates[index] = replace(candidate, rejection=_second(candidate, taken))
    decision = surveyed.otherwise
    if taken is not None:
        decision = _act(job, surveyed, taken, policy)
    elif crowded is not None:
        assert crowded.rejection is not None
        message = messages.waiting(crowded, crowded.rejection)
        best = replace(crowded, rejection=None)
        purpose = None if surveyed.intent is Intent.START else action_reason(surveyed, best, job.spec.targets.objective)
        decision = Decision(Action.HOLD, Reason.WAITING_FOR_CAPACITY, message, best, purpose)
    if job.migration is not None:
        decision = _under_way(job)
    saved = surveyed.hour * (taken.saving or 0.0) if taken is not None else 0.0
    return Assessment(surveyed.current, tuple(candidates), decision, saved, surveyed.intent)


def fits(surveyed: Survey, room: Room) -> tuple[bool, ...]:
    """Which wanted candidates have room: all that `choose` takes from the pools' state."""
    return tuple(
        surveyed.candidates[index].placement.chips <= room(surveyed.candidates[index].placement.pool)
        for index in surveyed.wanted
    )


def adaptation_mode(job: JobState, policy: PlacementPolicySpec) -> AdaptationMode:
    """The mode in force: the job's own, else the policy's."""
    return job.spec.adaptation.mode or policy.default_adaptation_mode


def _at_rest(job: JobState) -> Decision | None:
    """Why a job is not assessed at all."""
    if job.finished:
        ended = Reason.JOB_COMPLETED if job.finished == "Completed" else Reason.JOB_FAILED
        return Decision(Action.KEEP, ended, f"the job is over: {job.finished}")
    if job.deleting:
        return Decision(Action.KEEP, Reason.SETTLED, "the job is being deleted")
    if job.invalid is not None:
        return Decision(Action.HOLD, Reason.INVALID_SPEC, job.invalid)
    problem = contradiction(job)
    if problem is not None:
        return Decision(Action.HOLD, Reason.INVALID_STATUS, problem)
    foreign = stranger(job)
    if foreign is not None:
        return Decision(Action.HOLD, Reason.FOREIGN_POD, foreign)
    if job.spec.suspend:
        return Decision(Action.HOLD, Reason.SUSPENDED, "spec.suspend is true: set it to false to go on")
    return None


def _edited(job: JobState) -> bool:
    assert job.ref is not None
    workload = job.spec.workload.job
    return job.ref.workload_hash != job.workload_hash or job.ref.requested != (workload.chips, workload.replicas)


def _gap(job: JobState, telemetry: bool) -> Decision | None:
    """What is missing to judge by measurements; None where the profile is complete and of the current Revision."""
    assert job.ref is not None
    profile: Profile | None = job.profile

    def hold(reason: Reason, message: str) -> Decision:
        return Decision(Action.HOLD, reason, message)

    if job.ref.since is None:
        blocked = job.revision(job.ref.revision).blocked
        return hold(Reason.STARTING, f"not all pods run yet{f': {blocked}' if blocked else ''}")
    if not telemetry:
        return hold(Reason.TELEMETRY_UNAVAILABLE, "measurements can't be read at the moment; the job runs on as it is")
    if profile is None or profile.steadiness is Steadiness.ABSENT:
        if job.spec.profiling.mode is Switch.OFF:
            return hold(
                Reason.PROFILING_OFF, "profiling.mode is Off and no exporter of the cluster tells about the pods"
            )
        return hold(Reason.NO_TELEMETRY, "nothing has been heard from the pods since they run")
    if profile.key.revision != job.ref.revision:
        return hold(Reason.WARMING_UP, f"the profile is still of revision {profile.key.revision}")
    if profile.steadiness is Steadiness.STALE:
        return hold(Reason.STALE_TELEMETRY, "the newest measurement is too old to decide on")
    if profile.steadiness is Steadiness.WARMING_UP:
        covered = share(profile.covered)
        return hold(
            Reason.WARMING_UP,
            f"the step time is not steady yet or the window of {span(profile.window)} is not full ({covered})",
        )
    if profile.pods < profile.expected:
        return hold(Reason.PARTIAL_TELEMETRY, f"{profile.pods} of {profile.expected} pods are heard")
    if not profile.complete or unusable(profile) is not None:
        return hold(
            Reason.PARTIAL_TELEMETRY, "samples per second are not measured: the profiler sees no training steps"
        )
    return None


def _second(candidate: Candidate, taken: Candidate) -> Rejection:
    text = f"{messages.place(taken.placement)} comes first"
    if candidate.samples_per_second is not None:
        text = f"{messages.predicted(candidate)}; {text}"
    return Rejection(RejectionReason.NOT_BETTER, text)


def _act(job: JobState, surveyed: Survey, taken: Candidate, policy: PlacementPolicySpec) -> Decision:
    """Act on a candidate that has room, where the user and the platform team let it."""
    objective = job.spec.targets.objective
    if surveyed.intent is Intent.START and job.ref is not None:
        message = messages.restarted(job.ref.placement, taken, job.obstacle)
        return Decision(Action.START, Reason.START_DEADLINE_EXCEEDED, message, taken)
    if surveyed.intent is Intent.START:
        return Decision(Action.START, Reason.STARTING, f"starts on {messages.place(taken.placement)}", taken)
    if surveyed.intent is Intent.UPDATE:
        return Decision(
            Action.UPDATE, Reason.UPDATING, f"the workload was edited: runs on {messages.place(taken.placement)}", taken
        )
    message = messages.taken(surveyed.current, taken, objective)
    why = action_reason(surveyed, taken, objective)
    mode = AdaptationMode.AUTO if demanded(job, surveyed.intent) else adaptation_mode(job, policy)
    if mode is AdaptationMode.OFF:
        return Decision(Action.KEEP, Reason.ADAPTATION_OFF, f"adaptation.mode is Off; {message}", taken, why)
    if mode is AdaptationMode.RECOMMEND:
        return Decision(Action.HOLD, Reason.POLICY_RECOMMEND_ONLY, message, taken, why)
    if job.spec.checkpoint.mode is CheckpointMode.NONE and surveyed.intent is not Intent.LEAVE:
        held = f"checkpoint.mode is None, so the job is not moved while it runs; {message}"
        return Decision(Action.HOLD, Reason.NOT_CHECKPOINTABLE, held, taken, why)
    assert job.ref is not None
    action = Action.RESIZE if _same_pool(job.ref.placement, taken.placement) else Action.MOVE
    return Decision(action, why, message, taken, why)


def _same_pool(here: Placement, there: Placement) -> bool:
    return here.pool == there.pool


def _under_way(job: JobState) -> Decision:
    assert job.migration is not None
    migration = job.migration
    if migration.rolling_back:
        reason = Reason.ROLLING_BACK
    else:
        reason = _UNDER_WAY.get(migration.action, Reason.MOVING)
    message = f"{migration.id} is under way: {migration.phase}, to {messages.place(migration.target.placement)}"
    return Decision(Action.HOLD, reason, message)
