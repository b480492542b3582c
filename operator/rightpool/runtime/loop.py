"""The planner loop: one thread that looks at the whole fleet, decides, and has carried out what was decided.

A cycle takes a frozen picture of the store, plans on it without I/O, and hands each job's step to the client's
threads: status first, fenced by the resource version that the decision was based on; commands only once that is
stored. A job that fails, or an API server that does, costs this cycle's step and nothing else: the next cycle finds
what is left to do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Set
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Final

from rightpool.api.altered import altered
from rightpool.api.policy import POLICY_NAME, PlacementPolicySpec
from rightpool.api.status import ProfiledJobStatus
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Conflict, NotFound, Unavailable, Unreachable
from rightpool.cluster.events import EventRecorder
from rightpool.cluster.lease import LeaseElector
from rightpool.cluster.resources import ACCELERATOR_POOLS, NODES, PERSISTENT_VOLUMES, PLACEMENT_POLICIES, PROFILED_JOBS
from rightpool.hardware.catalog import Catalog
from rightpool.hardware.node_needs import Aspect
from rightpool.hardware.node_shapes import with_node_shapes
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import Job, JobKey, Observed
from rightpool.planning.judge.spot_count import SpotCount
from rightpool.planning.moves.commands import Command, commands
from rightpool.planning.offers.enumerate import closed_pools
from rightpool.reporting.events import Event, JobEvents
from rightpool.reporting.stored_job import StoredJob
from rightpool.reporting.stored_policy import StoredPolicy
from rightpool.runtime.act.adopt_labels import AdoptLabels
from rightpool.runtime.act.chargeback_books import ChargebackBooks
from rightpool.runtime.act.executor import Executor
from rightpool.runtime.act.fence import Fence, Fenced
from rightpool.runtime.act.policy_publisher import PolicyPublisher
from rightpool.runtime.act.pool_publisher import ClosedPools, PoolPublisher
from rightpool.runtime.act.refusals import RefusedWrites
from rightpool.runtime.health import Health
from rightpool.runtime.job_step import Decide, Step, Stepper, ended_and_reported, never_ran
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.metrics_recorder import MetricsRecorder, PhaseTimer
from rightpool.runtime.observe.facts import meta
from rightpool.runtime.observe.members import Members
from rightpool.runtime.observe.pool_inventory import PoolInventory, kept_outcomes, take_inventory
from rightpool.runtime.observe.relist import Relister
from rightpool.runtime.observe.server_feed import ServerFeed
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from rightpool.runtime.observe.volumes import BoundJobs
from rightpool.runtime.observe.windows import RevisionWindows
from rightpool.runtime.observer import Observer

SETTLE_SECONDS: Final = 0.15  # changes come in bursts: a Job and its pods, a node and its neighbours
MAX_BACKOFF: Final = 30.0
CARRY_OUT_SECONDS: Final = 60.0
INFORMING_SECONDS: Final = 5.0  # readings are made once a cycle, and a slow API server must not make them old
BATCH: Final = 250  # jobs
CLOSED_SECONDS: Final = 10.0  # between two looks at who may use which pool

# Of what was observed, what commands depend on.
_COMMANDED_BY: Final = ("revisions", "checkpoint_at", "template_checked", "variants_checked", "trial", "error")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the planner works with."""

    client: ClusterClient
    """Speaks to the API server."""
    store: Store
    """What the watches have seen of the cluster."""
    relister: Relister
    """Lists everything again from time to time, in case a watch has lost something."""
    elector: LeaseElector
    """Knows whether this process leads."""
    fence: Fence
    """Compares commands with fresh state right before they are sent."""
    executor: Executor
    """Carries commands out."""
    windows: RevisionWindows
    """What was measured of each job."""
    members: Members
    """Lists the pods of objects that somebody else has made."""
    adopt_labels: AdoptLabels
    """Follows the label of such objects."""
    usage: ChipUsage
    """Counts the chips that pods of other people request."""
    pool_publisher: PoolPublisher
    """Writes the statuses of AcceleratorPools."""
    policy_publisher: PolicyPublisher
    """Writes the status of the PlacementPolicy."""
    recorder: EventRecorder
    """Sends Events."""
    catalog: Catalog
    """Figures and prices of chips."""
    decide: Decide
    """Decides for a whole fleet."""
    metrics: OperatorMetrics
    """Those that the operator serves."""
    books: ChargebackBooks
    """What teams are charged, in ConfigMaps."""
    servers: ServerFeed
    """What servers answer, and their records of demand."""
    health: Health
    """What the probes answer by."""


class Planner:
    """Started and stopped by the operator's own start and end."""

    def __init__(self, parts: Parts, *, interval: float, clock: Callable[[], float] = time.time) -> None:
        self._parts = parts
        self._interval = interval
        self._clock = clock
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._stepper = Stepper()
        self._timer = PhaseTimer()
        self._job_events = JobEvents()
        self._busy: dict[str, Future[None]] = {}
        self._known: set[str] = set()
        self._metrics_recorder = MetricsRecorder(parts.metrics)
        self._writes = cache(parts.metrics.status_writes.labels)  # finding a series takes longer than counting
        self._leading_since: float | None = None
        self._policy = PlacementPolicySpec()
        self._last_inventory: PoolInventory | None = None
        self._last_pools: tuple[PoolInventory, Set[Aspect], Mapping[str, Pool]] | None = None
        self._observer = Observer(parts.store, parts.windows, parts.executor, parts.servers.seen)
        self._bound = BoundJobs()
        self._refused = RefusedWrites()
        self._closed: ClosedPools = None
        self._spot = SpotCount()
        self._judged: Set[str] = frozenset()
        self._closed_due = 0.0

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
        if self._parts.elector.held:
            self._parts.books.flush()
            self._parts.servers.close()

    # --- the loop ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            pause = self._interval
            try:
                busy = self.cycle()
                failures = 0
                pause = self._shortest if busy else min(pause, self._parts.servers.pace)
            except ClusterError as error:
                failures += 1
                if not isinstance(error, Unreachable):  # the log says that once, for all requests
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

    # --- one cycle ---------------------------------------------------------------------------------------------------

    def cycle(self) -> bool:
        """Whether something is under way, so that the next cycle should come soon."""
        try:
            return self._cycle()
        finally:
            for phase, seconds in self._timer.take().items():
                self._parts.metrics.cycle_seconds.labels(phase).observe(seconds)

    def _cycle(self) -> bool:
        parts = self._parts
        leader = parts.elector.held
        if not leader:  # before anything that fails without an API server
            parts.metrics.fleet.measured = False
            self._leading_since = None
            parts.books.follow()
            parts.servers.follow()
        with self._timer.phase("list"):
            self._relist()
        if not parts.relister.ready:
            return True
        if not leader:
            return False
        parts.recorder.resend()
        now = round(self._clock(), 3)  # as times are stored, so that nothing is paid twice or not at all
        self._leading_since = self._leading_since or now
        with self._timer.phase("list"):
            parts.adopt_labels.follow()
            parts.members.refresh()
            parts.executor.admissions.follow()
        with self._timer.phase("snapshot"):
            inventory = self._inventory()
            managed = {key: job for key, job in parts.store.jobs().items() if job.job.spec.managed}
            stored = self._bound.of(managed, parts.store.objects(PERSISTENT_VOLUMES))
            live = {key: job for key, job in stored.items() if not (ended_and_reported(job) or never_ran(job))}
            asked = {aspect for asks in {job.asks for job in live.values()} for aspect in asks}
            pools = self._shaped(inventory, asked)
            self._forget({job.job.uid for job in stored.values()})
        with self._timer.phase("telemetry"):
            jobs = [job.job for job in live.values()]
            parts.windows.refresh(jobs, lambda job, number: parts.store.pods(job.key, number), now)
            parts.servers.cycle(jobs, pools, now)
            parts.metrics.telemetry_up.set(parts.windows.up)
        with self._timer.phase("profile"):
            observed = self._observer.observe(live, inventory, now, pools)
        stored_policy = self._stored_policy()
        policy = self._policy
        # Jobs that have ended count in what the fleet's limits look back on, and in nothing else.
        ended = {key: job.job for key, job in stored.items() if key not in observed and not job.job.deleting}
        kept = kept_outcomes(inventory.objects)
        gone = parts.books.deleted_moves
        fleet = Fleet({**ended, **observed}, pools, policy, now, parts.windows.up, kept, gone)
        with self._timer.phase("plan"):
            made = parts.decide(fleet)
        assessments, limits, choice = made.assessments, made.allocation.limits, made.allocation.choice
        moving = self._carry_out(self._steps(live, observed, fleet, made), pools, now)
        with self._timer.phase("execute"):
            for job in ended.values():
                child = parts.executor.expiring(job)
                if child is not None:
                    parts.client.submit(parts.executor.expire, job, child)
            against = {name: limit for name in pools if (limit := limits.against(name)) is not None}
            if now >= self._closed_due or not pools.keys() <= self._judged:
                self._closed, self._judged = closed_pools(observed.values(), pools), pools.keys()
                self._closed_due = now + CLOSED_SECONDS
            uses = {name: pool.spot_uses for name, pool in pools.items()}
            self._spot = self._spot.after(observed.values(), uses, now)
            uses = self._spot.to_keep(uses)
            parts.pool_publisher.publish(inventory, now, limits.outcomes, against, self._closed, uses)
            parts.policy_publisher.publish(stored_policy, limits.stop, now, choice)
        parts.books.cycle(stored, observed, assessments, now, pools.values())
        seen = (observed.get(key, job.job) for key, job in stored.items())
        self._metrics_recorder.fleet(seen, len(pools), now, breaker_open=limits.stop is not None, choice=choice)
        return moving

    def _relist(self) -> None:
        before = self._parts.relister.missed
        self._parts.relister.run()
        missed = self._parts.relister.missed - before
        self._parts.metrics.missed_events.inc(missed)

    def _inventory(self) -> PoolInventory:
        parts, store = self._parts, self._parts.store
        objects, nodes, pods = store.objects(ACCELERATOR_POOLS), store.objects(NODES), store.all_pods()
        inventory = take_inventory(objects, nodes, pods, parts.usage, parts.catalog, self._last_inventory)
        if parts.usage.refresh({spec.resource_name for spec in inventory.specs.values()}):
            inventory = take_inventory(objects, nodes, pods, parts.usage, parts.catalog, inventory)
        self._last_inventory = inventory
        return inventory

    def _shaped(self, inventory: PoolInventory, asked: Set[Aspect]) -> Mapping[str, Pool]:
        """The pools with what jobs ask of their nodes, those of before where neither has changed."""
        last = self._last_pools
        if last is None or last[0] is not inventory or last[1] != asked:
            last = inventory, asked, with_node_shapes(inventory.inventory, inventory.nodes, asked)
            self._last_pools = last
        return last[2]

    def _stored_policy(self) -> StoredPolicy:
        """The fleet's policy. `_policy` is what is in force, the very object of before where nothing has changed."""
        policies = self._parts.store.objects(PLACEMENT_POLICIES)
        stored = StoredPolicy.of(next((body for body in policies if meta(body).get("name") == POLICY_NAME), None))
        if stored.spec != self._policy:
            self._policy = stored.spec
        return stored

    def _steps(
        self,
        live: Mapping[JobKey, StoredJob],
        observed: Mapping[JobKey, Job],
        fleet: Fleet,
        made: Plan,
    ) -> Iterator[Step]:
        """Of the jobs that do not rest."""
        stepper, busy, assessments = self._stepper, self._busy, made.assessments
        stepper.begin(self._leading_since or fleet.now)
        for key, job in observed.items():
            assessment = assessments.get(key)
            trying = made.trying(key)
            if job.uid in busy or (not any(trying) and stepper.rests(job, assessment, fleet.now)):
                continue
            if job.observed.error is not None:
                self._parts.metrics.job_errors.labels("observe").inc()
            try:
                self._metrics_recorder.decided(job, assessment, fleet.now)
                yield stepper.step(live[key], job, assessment, fleet, trying)
            except Exception:
                self._parts.metrics.job_errors.labels("status").inc()
                logger.exception("no status could be made", extra={"job": str(key)})

    # --- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self, steps: Iterator[Step], pools: Mapping[str, Pool], now: float) -> bool:
        """Whether a state machine took a step. In batches, so that the statuses of a whole fleet are never in memory
        at once."""
        moving = False
        began = time.monotonic()
        self._await(0.0)  # what took longer than its own cycle
        self._parts.executor.begin()
        while not self._stop.is_set():
            with self._timer.phase("step"):
                batch = list(islice(steps, BATCH))
            if not batch:
                break
            with self._timer.phase("execute"):
                for step in batch:
                    if self._stop.is_set():
                        break
                    moving = self._submit(step, pools, now) or moving
                self._await(max(0.0, began + CARRY_OUT_SECONDS - time.monotonic()))
            if time.monotonic() - began >= INFORMING_SECONDS:
                self._stepper.policy.exhaust()
            self._parts.health.progress()
        return moving

    def _await(self, timeout: float) -> None:
        """Wait for what is being carried out, seconds; what is not done by then stays in `_busy`."""
        wait([future for future in self._busy.values() if not future.done()], timeout=timeout)
        self._busy = {uid: future for uid, future in self._busy.items() if not future.done()}

    def _submit(self, step: Step, pools: Mapping[str, Pool], now: float) -> bool:
        """Whether its state machine took a step."""
        parts = self._parts
        needed = tuple(c for c in step.commands if parts.executor.needed(step.before, c))
        if step.draft is None and not needed:
            self._stepper.complies(step)
            return False
        if step.draft is not None and self._refused.waits(step.stored, now):
            return False
        self._busy[step.before.uid] = parts.client.submit(self._execute, step, needed, pools, now)
        return step.advanced

    def _execute(self, step: Step, needed: tuple[Command, ...], pools: Mapping[str, Pool], now: float) -> None:
        """On one of the client's threads: the status of one job, then its commands."""
        parts = self._parts
        job = step.before
        term: int | None = None
        try:
            if step.draft is not None:
                term = parts.fence.term
                written = self._write(step, now)
                if written is None:
                    return
                seen = Observed(**{name: getattr(step.before.observed, name) for name in _COMMANDED_BY})
                job = altered(written.job, observed=seen)
                needed = tuple(c for c in commands(job) if parts.executor.needed(job, c))
            for command in needed:
                parts.executor.carry_out(job, command, pools, term)
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
            "status": ProfiledJobStatus.stored(step.draft.body),
        }
        try:
            parts.fence.leader()
            answer = parts.client.apply(PROFILED_JOBS, body, subresource="status")
        except Fenced as error:
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
            note = self._refused.refuse(step.stored, error.message, now)
            parts.recorder.post(Event(step.stored.regarding, "StatusRefused", "Observe", note, warning=True))
            return None
        self._refused.forget((uid,))
        self._writes("written").inc()
        parts.store.assume(PROFILED_JOBS, answer)
        before, after = step.draft.before, step.draft.conditions
        for event in self._job_events.events(step.stored.regarding, step.before, step.after, before, after):
            parts.recorder.post(event)
        self._metrics_recorder.ended(step.before, step.after)
        return parts.store.job(key)

    def _not_written(self, step: Step, result: str, message: str, level: int) -> None:
        self._writes(result).inc()
        logger.log(level, "status not written: %s", message, extra={"job": str(step.before.key)})

    def _forget(self, uids: set[str]) -> None:
        gone = self._known - uids
        self._known = uids
        if gone:
            self._refused.forget(gone)
            self._stepper.forget(gone)
            self._job_events.forget(gone)
            self._parts.executor.forget(gone)
            self._metrics_recorder.forget(gone)
