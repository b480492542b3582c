"""What is not looked at again in a cycle, checked against looking at it: on a cluster that answers from memory."""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from benchmarks.cycle import Cluster, filled, planner_of
from benchmarks.synthetic_fleet import SyntheticJob, nodes
from rightpool.api.conditions import ConditionType, Reason, find_condition
from rightpool.api.kubernetes import Resource
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.units import write_unix_time
from rightpool.cluster.resources import NODES, PODS, PROFILED_JOBS
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.lingering import UNENDED_SECONDS
from rightpool.planning.moves import news
from rightpool.planning.moves.commands import commands
from rightpool.planning.moves.transitions import advance
from rightpool.planning.offers.assessment import Assessment
from rightpool.profiles.sample import Field, Sample
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.decision_texts import decision_text
from rightpool.reporting.recovery import recovering
from rightpool.reporting.status import StatusDraft, draft_status
from rightpool.reporting.stored_job import StoredJob
from rightpool.reporting.verdicts import stored_verdicts
from rightpool.runtime import job_step, metrics_recorder
from rightpool.runtime.job_step import Step, Stepper
from rightpool.telemetry.reader import Target, TelemetryReading
from tests.unit.runtime.small_fleet import small_store
from tests.unit.runtime.test_observer import World

JOBS = 12
START = 1_800_000_000.0
SETTLED = 40
CYCLES = 100  # of 10 s; windows have 60
SOON = 600.0
TARGETS: Sequence[dict[str, Any]] = (
    {},
    {"targets": {"minScalingEfficiency": "0.9"}},
    {"targets": {"deadline": "2027-01-15T10:00:00Z"}, "progress": {"totalSamples": 50_000_000}},
    {"targets": {"budget": "40", "maxCostPerHour": "1"}, "progress": {"totalSamples": 20_000_000}},
)
_SPEEDS = (Field.SAMPLES_PER_SECOND, Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY, Field.COMPUTE_ACTIVE)

_BY_THE_CLOCK = frozenset({"cost", "outlook", "progress", "summary"})


class Noisy:
    """Readings of the synthetic fleet whose rates differ from window to window by `spread`."""

    def __init__(self, spread: float) -> None:
        self._spread = spread

    def read(self, targets: Sequence[Target], now: float) -> TelemetryReading:
        """At once."""
        return TelemetryReading({target.key: Sample(now, self._reading(target, now)) for target in targets})

    def _reading(self, target: Target, now: float) -> dict[Field, float]:
        reading = SyntheticJob(int(target.key.job.removeprefix("job-"))).reading(now)
        factor = 1.0 + Random(f"{target.key.job} {now // 60}").uniform(-self._spread, self._spread)
        for field in _SPEEDS:
            reading[field] *= factor
        reading[Field.STEP_SECONDS] /= factor
        return reading


@pytest.mark.parametrize("spread", [0.004, 0.3])
def test_what_is_not_looked_at_again_is_not_worth_a_write(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for numbers of a crowd, and of another evaluation of the same job, which are told soon. Verdicts are told in
    the cycle in which they change."""
    whole, ask, rest = SyntheticJob.profiled_job, Stepper._nothing_new, Stepper.rests

    def with_targets(self: SyntheticJob) -> dict[str, Any]:
        body = whole(self)
        body["spec"].update(TARGETS[self.number % len(TARGETS)])
        return body

    counts = Counter[str]()
    late: dict[str, float] = {}

    def made(self: Stepper, job: Job, assessment: Assessment | None, now: float) -> StatusDraft:
        stored = store.jobs()[job.key]
        assert planner._last_pools is not None and job.state.revision is not None
        price = planner._last_pools[2][job.state.revision.placement.pool].price
        context = Context(assessment, price, True, now, None, recovering(job, now - self._leading_since))
        return draft_status(stored, job, context)

    def is_told_soon(self: Stepper, job: Job, assessment: Assessment | None, now: float) -> None:
        draft, policy = made(self, job, assessment, now), copy.deepcopy(self.policy)
        policy.begin()
        wait = policy.wait(job.uid, draft.stored, draft.body, draft.shown, now)
        if wait == 0.0 and not _grown(draft.stored, draft.body):
            assert now - late.setdefault(job.uid, now) <= SOON
        else:
            late.pop(job.uid, None)

    def checked(self: Stepper, stored: StoredJob, job: Job, context: Context) -> bool:
        last, assessment, now = self._unchanged.get(job.uid), context.assessment, context.now
        other = last is not None and (last.job is not job or last.assessment is not assessment)
        if not ask(self, stored, job, context):
            late.pop(job.uid, None)
            return False
        draft = made(self, job, assessment, now)
        if other or last is None:
            assert stored_verdicts(draft.stored) == stored_verdicts(draft.body)
        is_told_soon(self, job, assessment, now)
        counts["after a write" if last is None else "looked at anew" if other else "same"] += 1
        return True

    def rests(self: Stepper, job: Job, assessment: Assessment | None, now: float) -> bool:
        if not rest(self, job, assessment, now):
            return False
        assert advance(job, assessment, PlacementPolicySpec(), now, decision_text) is job
        assert not any(planner._parts.executor.needed(job, command) for command in commands(job))
        is_told_soon(self, job, assessment, now)
        counts["at rest"] += 1
        return True

    monkeypatch.setattr(SyntheticJob, "profiled_job", with_targets)
    monkeypatch.setattr(Stepper, "_nothing_new", checked)
    monkeypatch.setattr(Stepper, "rests", rests)
    monkeypatch.setattr(job_step, "NUMBERS_PER_CYCLE", 1)
    monkeypatch.setattr(news, "LOOK_SECONDS", SOON)
    monkeypatch.setattr(news, "PROGRESS_SECONDS", SOON)
    cluster, clock = Cluster(), {"now": START}
    store = small_store(cluster, JOBS, START)
    planner = planner_of(cluster, store, clock, Noisy(spread))
    for _ in range(CYCLES):
        planner.cycle()
        clock["now"] += 10.0
    assert counts["after a write"] > 0
    assert counts["at rest"] > 100
    assert counts["looked at anew"] > 0


def _grown(stored: dict[str, Any], made: Any) -> bool:
    """Whether the statuses differ in what grows with the clock alone, which is looked at from time to time."""
    one, two = ({k: v for k, v in body.items() if k not in _BY_THE_CLOCK} for body in (stored, made))
    for body in (one, two):
        body["conditions"] = [(it["type"], it["status"], it["reason"]) for it in body["conditions"]]
    return one == two


def test_a_verdict_that_changes_by_itself_is_written_in_the_same_cycle() -> None:
    cluster, clock = Cluster(), {"now": START}
    store = small_store(cluster, JOBS, START)
    planner = planner_of(cluster, store, clock, Noisy(0.004))

    def held() -> Counter[str]:
        statuses = (job.status for job in store.jobs().values())
        return Counter(
            str(found.reason) for it in statuses if (found := find_condition(it.conditions, ConditionType.MIGRATING))
        )

    for _ in range(SETTLED):
        planner.cycle()
        clock["now"] += 10.0
    recommended = held()[Reason.POLICY_RECOMMEND_ONLY]
    assert recommended > 0
    decide = planner._parts.decide

    def differently(fleet: Fleet) -> Plan:
        made = decide(fleet)
        changed = {
            key: replace(it, decision=replace(it.decision, reason=Reason.UNCERTAIN_SAVING))
            if it.decision.reason is Reason.POLICY_RECOMMEND_ONLY
            else it
            for key, it in made.assessments.items()
        }
        return replace(made, allocation=replace(made.allocation, assessments=changed))

    planner._parts = replace(planner._parts, decide=differently)
    planner.cycle()
    assert held()[Reason.UNCERTAIN_SAVING] == recommended


def test_a_pod_that_does_not_end_is_told_of_when_its_time_is_over() -> None:
    """Nothing is heard of it any more, and no sample comes."""
    world = World()
    world.cycles(12)
    world.readings.silent = {0}
    due = world.clock["now"]
    world.change(PODS, world.of(0, PODS), "metadata", deletionTimestamp=write_unix_time(due))
    world.cycles(int(UNENDED_SECONDS / 10.0) + 1)
    assert _placed(world) != Reason.PODS_NOT_ENDING
    world.cycles(1)
    assert _placed(world) == Reason.PODS_NOT_ENDING


def test_a_job_whose_decision_cannot_be_put_into_words_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, metrics_recorder.logger.name)
    cluster, clock = Cluster(), {"now": START}
    store = small_store(cluster, JOBS, START)
    planner = planner_of(cluster, store, clock, Noisy(0.004))
    first = min(store.jobs())

    def worded(job: Job, assessment: Assessment, now: float) -> str:
        return f"{1 // (job.key != first)}"

    monkeypatch.setattr(metrics_recorder, "decision_text", worded)
    planner.cycle()
    written = {key for key, job in store.jobs().items() if job.status.conditions}
    assert written == store.jobs().keys() - {first}


def test_variants_are_checked_in_the_cycle_that_first_writes_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that is to start by one waits for the answer."""
    whole = SyntheticJob.profiled_job

    def with_variant(self: SyntheticJob) -> dict[str, Any]:
        body = whole(self)
        body["spec"].setdefault("placement", {})["variants"] = [{"vendor": "AMD"}]
        return body

    monkeypatch.setattr(SyntheticJob, "profiled_job", with_variant)
    world = World()
    world.cycles(1)
    checks = world.planner._parts.executor.checks
    assert any(checks.variants_checked(stored.job) for stored in world.store.jobs().values())


class Accepting(Cluster):
    """Would take every child."""

    def create(self, resource: Resource, body: dict[str, Any], *, dry_run: bool = False, strict: bool = False) -> Any:
        """A child, a dry run of one, or an Event."""
        return body if dry_run else super().create(resource, body)


def test_jobs_that_wait_for_a_place_rest_until_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    members = {SyntheticJob(number).node for number in range(JOBS)}
    present = [node for node in nodes() if node["metadata"]["name"] in members]
    more = [node for node in nodes() if node["metadata"]["name"] not in members]
    cluster, clock = Accepting(), {"now": START}
    store = filled(cluster, JOBS, START, present)
    waiting = [SyntheticJob(number) for number in range(100, 110)]
    for member in waiting:
        body = member.profiled_job()
        body["spec"]["workload"]["job"]["chipsPerReplica"] = 8
        del body["spec"]["elasticity"]
        store.observe(PROFILED_JOBS, None, cluster.put(PROFILED_JOBS, body))
    planner = planner_of(cluster, store, clock)
    steps = Counter[JobKey]()
    step = Stepper.step

    def counted(self: Stepper, stored: StoredJob, job: Job, *others: Any) -> Step:
        steps[job.key] += 1
        return step(self, stored, job, *others)

    monkeypatch.setattr(Stepper, "step", counted)

    def placed() -> int:
        return sum(store.jobs()[member.key].job.state.revision is not None for member in waiting)

    def run(count: int) -> None:
        for _ in range(count):
            planner.cycle()
            clock["now"] += 10.0

    run(20)
    before = placed()
    assert before < len(waiting)
    steps.clear()
    run(20)
    assert placed() == before
    stepped = sum(steps[member.key] for member in waiting if store.jobs()[member.key].job.state.revision is None)
    assert stepped <= 3 * (len(waiting) - before), "they are looked at from time to time"
    kind = next(node for node in more if node["metadata"]["name"].startswith(present[0]["metadata"]["name"][:4]))
    store.observe(NODES, "ADDED", cluster.put(NODES, kind))
    run(2)
    assert placed() > before


def _placed(world: World) -> str:
    stored = world.store.job(SyntheticJob(0).key)
    found = None if stored is None else find_condition(stored.status.conditions, ConditionType.PLACED)
    assert found is not None
    return found.reason
