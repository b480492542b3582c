"""The planner loop: one thread that looks at the whole fleet, decides, and has carried out what was decided.

A cycle takes a frozen snapshot of the store, plans on it without I/O, and hands each job's step to the client's
threads: status first, fenced by the resource version that the decision was based on; commands only once that is
stored. A job that fails, or an API server that does, costs this cycle's step and nothing else: the next cycle finds
what is left to do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from rightpool.api.policy import POLICY_NAME, PlacementPolicySpec
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Conflict, NotFound, Unavailable
from rightpool.cluster.events import Event, EventRecorder
from rightpool.cluster.lease import LeaseElector
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PLACEMENT_POLICIES, PROFILED_JOBS
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.node_labels import with_node_labels
from rightpool.hardware.pool import Pool
from rightpool.planning.assess import Assessment
from rightpool.planning.commands import Command
from rightpool.planning.gates import node_selector
from rightpool.planning.hysteresis import FleetLimits
from rightpool.planning.snapshot import JobKey, JobState, Snapshot
from rightpool.planning.transitions import commands
from rightpool.runtime.announcements import announcements
from rightpool.runtime.cycle import Decide, Step, Stepper, at_rest, never_ran
from rightpool.runtime.executor import Executor
from rightpool.runtime.facts import meta
from rightpool.runtime.fence import Fence, Refused
from rightpool.runtime.fleet import Fleet, absence, survey_fleet
from rightpool.runtime.health import Health
from rightpool.runtime.jobs import StoredJob, first_problem
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.observations import Observations
from rightpool.runtime.pools import PoolPublisher
from rightpool.runtime.relist import Relister
from rightpool.runtime.store import Store
from rightpool.runtime.tally import Tally
from rightpool.runtime.usage import ChipUsage

SETTLE_SECONDS: Final = 0.15  # changes come in bursts: a Job and its pods, a node and its neighbours
MAX_BACKOFF: Final = 30.0
CARRY_OUT_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the planner works with."""

    client: ClusterClient
    store: Store
    relister: Relister
    elector: LeaseElector
    fence: Fence
    executor: Executor
    observations: Observations
    usage: ChipUsage
    publisher: PoolPublisher
    recorder: EventRecorder
    catalog: Catalog
    decide: Decide
    metrics: OperatorMetrics
    health: Health


class Planner:
    """Started and stopped by the operator's own start and end."""

    def __init__(self, parts: Parts, *, interval: float, clock: Callable[[], float] = time.time) -> None:
        self._parts = parts
        self._interval = interval
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._stepper = Stepper()
        self._busy: dict[str, Future[None]] = {}
        self._known: set[str] = set()
        self._tally = Tally(parts.metrics)
        self._leading_since: float | None = None
        self._policy_problem: str | None = None

    def start(self) -> None:
        """Begin, in a thread of its own: the event loop stays free for the watches."""
        self._thread = threading.Thread(target=self._run, name="planner", daemon=True)
        self._thread.start()

    def stop(self, timeout: float = 10.0) -> None:
        """Finish the step under way, and start no other."""
        self._stop.set()
        self._parts.store.wake()
        if self._thread is not None:
            self._thread.join(timeout)
        wait(list(self._busy.values()), timeout=timeout / 2)

    # --- the loop ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            pause = self._interval
            try:
                busy = self.cycle()
                failures = 0
                if busy:
                    pause = self._shortest
            except ClusterError as error:
                failures += 1
                logger.warning("no cycle: %s", error.message)
            except Exception:
                failures += 1
                logger.exception("the cycle failed")
            if failures:
                self._parts.metrics.cycle_errors.inc()
                pause = min(MAX_BACKOFF, self._interval * 2 ** min(failures - 1, 6))
            self._parts.health.progress()
            self._rest(began, pause)

    @property
    def _shortest(self) -> float:
        """Least time from the start of one cycle to that of the next."""
        return min(1.0, max(0.2, self._interval / 5))

    def _rest(self, began: float, pause: float) -> None:
        remaining = pause - (time.monotonic() - began)
        if remaining > 0 and self._parts.store.wait(remaining):
            self._stop.wait(max(SETTLE_SECONDS, self._shortest - (time.monotonic() - began)))

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            self._parts.metrics.cycle_seconds.labels(phase).observe(time.perf_counter() - began)

    # --- one cycle ---------------------------------------------------------------------------------------------------

    def cycle(self) -> bool:
        """Whether something is under way, so that the next cycle should come soon."""
        parts = self._parts
        with self._timed("list"):
            self._relist()
        leader = parts.elector.held
        if not parts.relister.ready:
            return True
        if not leader:
            parts.metrics.fleet.measured = False
            self._leading_since = None
            return False
        now = round(self._clock(), 3)  # as times are stored, so that nothing is paid twice or not at all
        self._leading_since = self._leading_since or now
        with self._timed("snapshot"):
            fleet = self._fleet()
            stored = {key: job for key, job in parts.store.jobs().items() if job.state.spec.ours}
            live = {key: job for key, job in stored.items() if not (at_rest(job) or never_ran(job))}
            selected = {key for job in live.values() for key in node_selector(job.state.spec)}
            pools = with_node_labels(fleet.inventory, parts.store.objects(NODES), selected)
            self._forget({job.state.uid for job in stored.values()})
        with self._timed("telemetry"):
            parts.observations.refresh(
                (job.state for job in live.values()), lambda job, number: parts.store.pods(job.key, number), now
            )
            parts.metrics.telemetry_up.set(parts.observations.up)
        with self._timed("profile"):
            states = self._observe(live, fleet, now)
        policy = self._policy()
        # Jobs that have ended count in what the fleet's limits look back on, and in nothing else.
        ended = {key: job.state for key, job in stored.items() if key not in states and not job.state.deleting}
        snapshot = Snapshot({**ended, **states}, pools, policy, now, telemetry=parts.observations.up)
        with self._timed("plan"):
            assessments = parts.decide(snapshot)
        with self._timed("step"):
            steps = list(self._steps(live, snapshot, assessments))
        with self._timed("execute"):
            moving = self._carry_out(steps, pools, now)
            parts.publisher.publish(fleet, now)
        limits = FleetLimits(snapshot.jobs.values(), policy, now)
        self._tally.measure(
            (states.get(key, job.state) for key, job in stored.items()), len(pools), breaker_open=limits.breaker_open
        )
        return moving

    def _relist(self) -> None:
        before = self._parts.relister.missed
        self._parts.relister.run()
        missed = self._parts.relister.missed - before
        self._parts.metrics.missed_events.inc(missed)

    def _fleet(self) -> Fleet:
        parts = self._parts
        objects = parts.store.objects(ACCELERATOR_POOLS)
        fleet = survey_fleet(objects, parts.store.objects(NODES), parts.store.all_pods(), parts.usage, parts.catalog)
        if parts.usage.refresh({spec.resource_name for spec in fleet.specs.values()}):
            fleet = survey_fleet(
                objects, parts.store.objects(NODES), parts.store.all_pods(), parts.usage, parts.catalog
            )
        return fleet

    def _policy(self) -> PlacementPolicySpec:
        """The fleet's policy; the cautious defaults where there is none, or where it can't be read."""
        for body in self._parts.store.objects(PLACEMENT_POLICIES):
            if meta(body).get("name") != POLICY_NAME:
                continue
            try:
                policy = PlacementPolicySpec.model_validate(body.get("spec") or {})
                self._policy_problem = None
                return policy
            except ValidationError as error:
                problem = first_problem(error)
                if problem != self._policy_problem:
                    logger.warning("PlacementPolicy %s can't be read, the defaults hold: %s", POLICY_NAME, problem)
                self._policy_problem = problem
        return PlacementPolicySpec()

    def _observe(self, live: Mapping[JobKey, StoredJob], fleet: Fleet, now: float) -> dict[JobKey, JobState]:
        parts = self._parts
        states: dict[JobKey, JobState] = {}
        for key, stored in live.items():
            job = stored.state
            pool = None if job.ref is None else fleet.inventory.pools.get(job.ref.placement.pool)
            observation = parts.observations.of(job, None if pool is None else pool.accelerator, now)
            states[key] = replace(
                job,
                revisions=parts.store.revisions(key, job.uid),
                profile=observation.profile,
                diagnosis=observation.diagnosis,
                checkpoint_at=observation.checkpoint_at,
                checkpoint_error=parts.executor.checkpoint_error(job),
                absent=None if job.ref is None else absence(job.ref.placement.pool, fleet),
            )
        return states

    def _steps(
        self,
        live: Mapping[JobKey, StoredJob],
        snapshot: Snapshot,
        assessments: Mapping[JobKey, Assessment],
    ) -> Iterator[Step]:
        parts = self._parts
        leading_for = snapshot.now - (self._leading_since or snapshot.now)
        self._stepper.begin(snapshot.now)
        for key, job in snapshot.jobs.items():
            if key not in live or job.uid in self._busy:
                continue
            assessment = assessments.get(key)
            self._tally.decided(job, assessment)
            try:
                yield self._stepper.step(
                    live[key],
                    job,
                    assessment,
                    snapshot.pools,
                    snapshot.policy,
                    parts.executor.refusal(job),
                    telemetry=snapshot.telemetry,
                    leading_for=leading_for,
                    now=snapshot.now,
                )
            except Exception:
                parts.metrics.job_errors.labels("status").inc()
                logger.exception("no status could be made", extra={"job": str(key)})

    # --- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self, steps: list[Step], pools: Mapping[str, Pool], now: float) -> bool:
        parts = self._parts
        moving = False
        for step in steps:
            needed = tuple(c for c in step.commands if parts.executor.needed(step.before, c))
            if step.draft is None and not needed:
                continue
            moving = moving or step.advanced
            if self._stop.is_set():
                break
            future = parts.client.submit(self._execute, step, needed, pools, now)
            self._busy[step.before.uid] = future
        wait(list(self._busy.values()), timeout=CARRY_OUT_SECONDS)
        self._busy = {uid: future for uid, future in self._busy.items() if not future.done()}
        return moving

    def _execute(self, step: Step, needed: tuple[Command, ...], pools: Mapping[str, Pool], now: float) -> None:
        """On one of the client's threads: the status of one job, then its commands."""
        parts = self._parts
        job = step.before
        try:
            if step.draft is not None:
                written = self._write(step, now)
                if written is None:
                    return
                job = replace(written.state, revisions=step.before.revisions, checkpoint_at=step.before.checkpoint_at)
                needed = tuple(c for c in commands(job) if parts.executor.needed(job, c))
            for command in needed:
                parts.executor.carry_out(job, command, pools)
        except Exception:
            parts.metrics.job_errors.labels("execute").inc()
            logger.exception("the step was not carried out", extra={"job": str(job.key)})

    def _write(self, step: Step, now: float) -> StoredJob | None:
        """The job as it is stored after the write; None where it was not written."""
        assert step.draft is not None
        parts = self._parts
        key, uid = step.before.key, step.before.uid
        body: dict[str, Any] = {
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "uid": uid,
                "resourceVersion": step.stored.resource_version,
            },
            "status": step.draft.body,
        }
        try:
            parts.fence.leader()
            answer = parts.client.apply(PROFILED_JOBS, body, subresource="status")
        except Refused as error:
            self._not_written(step, "refused", str(error), logging.INFO)
            return None
        except (Conflict, NotFound) as error:
            self._not_written(step, "conflict", error.message, logging.DEBUG)
            return None
        except Unavailable as error:
            self._not_written(step, "unavailable", error.message, logging.WARNING)
            return None
        except ClusterError as error:
            self._not_written(step, "error", error.message, logging.ERROR)
            # There is no other place to say it in. Repeated, it is sent once.
            note = f"the status can't be written, and nothing is done before it is: {error.message}"
            parts.recorder.post(Event(step.stored.regarding, "StatusRefused", "Observe", note, warning=True))
            return None
        parts.metrics.status_writes.labels("written").inc()
        self._stepper.written_at[uid] = now
        parts.store.assume(PROFILED_JOBS, answer)
        before, after = step.stored.status.conditions, step.draft.conditions
        for event in announcements(step.stored.regarding, step.before, step.after, before, after):
            parts.recorder.post(event)
        self._tally.ended(step.before, step.after)
        return parts.store.job(key)

    def _not_written(self, step: Step, result: str, message: str, level: int) -> None:
        self._parts.metrics.status_writes.labels(result).inc()
        logger.log(level, "status not written: %s", message, extra={"job": str(step.before.key)})

    def _forget(self, uids: set[str]) -> None:
        gone = self._known - uids
        self._known = uids
        if gone:
            self._stepper.forget(gone)
            self._parts.executor.forget(gone)
            self._tally.forget(gone)
