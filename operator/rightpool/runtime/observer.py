"""Puts together what is seen of every job: its windows, its children and pods, and what the API server said of it.

A job of which nothing new is seen is the very object of the last cycle (planning/moves/news.py); ten thousand of them
cost a few microseconds each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from rightpool.api.altered import altered
from rightpool.api.conditions import find_condition
from rightpool.cluster.resources import NODES
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import NOT_OBSERVED, Job, JobKey, Observed, unit_of
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.jobs.threat import Threat
from rightpool.planning.jobs.trial_seen import TrialSeen
from rightpool.planning.moves.news import look_until, taken_over
from rightpool.planning.moves.trying_texts import ENDED_ITSELF
from rightpool.planning.offers.readiness import COMPLETED
from rightpool.profiles.health import NOT_THROTTLED, throttling
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.executor import Executor
from rightpool.runtime.observe.pool_inventory import PoolInventory, why_unusable
from rightpool.runtime.observe.revisions import LONGEST_UNSEEN_SECONDS, with_unmade, with_unseen
from rightpool.runtime.observe.server_feed import NO_SERVER, ServerSeen
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.threats import drained_nodes, threat_to
from rightpool.runtime.observe.whereabouts import found_at
from rightpool.runtime.observe.windows import RevisionWindows

logger = logging.getLogger(__name__)


class _Seen(NamedTuple):
    """What was seen of a job when it was looked at last."""

    stored: StoredJob
    measured: Observed
    """By its windows alone."""
    job: Job
    until: float
    """Unix seconds when it is looked at again in any case."""


class Observer:
    """Used by the planner's thread alone."""

    def __init__(
        self, store: Store, windows: RevisionWindows, executor: Executor, servers: Callable[[Job], ServerSeen]
    ) -> None:
        """servers: what is known of a server, each the very object of before while it is the same."""
        self._servers = servers
        self._store = store
        self._windows = windows
        self._executor = executor
        self._seen: dict[JobKey, _Seen] = {}
        self._news: set[JobKey] = set()
        self._surroundings: tuple[object, ...] = ()
        self._nodes: tuple[NodeFacts, ...] = ()
        self._shaped: Mapping[str, Pool] = {}
        self._drained: Mapping[str, tuple[Taint, ...]] = {}  # of `_nodes`

    def observe(
        self,
        live: Mapping[JobKey, StoredJob],
        inventory: PoolInventory,
        now: float,
        shaped: Mapping[str, Pool] = MappingProxyType({}),
    ) -> dict[JobKey, Job]:
        """The jobs with what is seen of them now. `now`: Unix seconds. shaped: the pools with what jobs ask of their
        nodes."""
        self._shaped = shaped
        self._news |= self._store.take_news()  # kept where this fails half-way
        nodes = self._store.objects(NODES)
        if nodes is not self._nodes:
            self._drained, self._nodes = drained_nodes(nodes), nodes
        drained = self._drained
        pools = inventory.inventory.pools
        accelerators = {name: pool.accelerator for name, pool in pools.items()}
        surroundings = (
            drained,
            accelerators,
            inventory.inventory.problems,
            inventory.unreadable,
            inventory.objects.keys(),
        )
        before = self._seen if surroundings == self._surroundings else {}
        jobs: dict[JobKey, Job] = {}
        seen: dict[JobKey, _Seen] = {}
        for key, stored in live.items():
            revision = stored.job.state.revision
            name = None if revision is None else revision.placement.pool
            accelerator = None if name is None else accelerators.get(name)
            last = before.get(key)
            try:
                measured = self._windows.of(stored.job, accelerator, now)
                server = NO_SERVER if stored.job.spec.workload.server is None else self._servers(stored.job)
                if (
                    last is None
                    or last.stored is not stored
                    or last.measured is not measured
                    or last.job.observed.answers is not server.answers
                    or last.job.observed.sizing is not server.sizing
                    or last.job.observed.sides is not server.sides
                    or last.job.observed.service is not server.service
                    or key in self._news
                    or stored.job.state.trial is not None
                    or self._executor.trials.stored(stored.job) is not None
                    or now >= last.until
                ):
                    problem = None if name is None else why_unusable(name, inventory)
                    last = self._look(stored, measured, server, problem, inventory, now)
            except Exception as error:
                last = self._failed(stored, f"{type(error).__name__}: {error}", now)
            seen[key] = last
            jobs[key] = last.job
        self._seen, self._surroundings = seen, surroundings
        self._news.clear()
        return jobs

    def _look(
        self,
        stored: StoredJob,
        measured: Observed,
        server: ServerSeen,
        pool_problem: str | None,
        inventory: PoolInventory,
        now: float,
    ) -> _Seen:
        job, executor, drained = stored.job, self._executor, self._drained
        revisions = with_unseen(self._store.revisions(job.key, job.uid), now)
        revisions = with_unmade(revisions, job.state.revision, executor.why_unmade(job))
        observed = measured._replace(
            revisions=revisions,
            checkpoint_error=executor.checkpoint_error(job),
            trace_answer=executor.trace_answer(job),
            threat=self._threat(job, revisions, drained),
            pool_problem=pool_problem,
            answers=server.answers,
            sizing=server.sizing,
            sides=server.sides,
            service=server.service,
            trial=self._trial(job, server, inventory, now),
            refusal=executor.refusal(job),
            route_problem=executor.services.routes.problem(job),
            object_checked=executor.objects.checked(job),
            object_refusal=executor.objects.refusal(job),
            object_manifest=executor.objects.remaking.manifest(job),
            template_checked=executor.checks.template_checked(job),
            variants_checked=executor.checks.variants_checked(job),
            refused_variants=executor.checks.refused_variants(job),
        )
        unseen = (state.unseen for state in revisions.values() if state.unseen is not None and state.blocked is None)
        due = [pod.since + LONGEST_UNSEEN_SECONDS for pod in unseen]
        last, seen = self._seen.get(job.key), altered(job, observed=observed)
        if job.spec.workload_ref is not None and (child := self._store.adopted_by(job.key, job.uid)) is not None:
            pods, admits = self._store.pods(job.key, child.revision), executor.admissions.on
            seen = found_at(seen, child, pods, inventory, self._shaped, admits=admits)
        if last is not None and last.stored is stored and now < last.until:
            seen = taken_over(last.job, seen)
        until = last.until if last is not None and seen is last.job else look_until(job, now)
        return _Seen(stored, measured, seen, min((until, *due)))

    def _trial(self, job: Job, server: ServerSeen, inventory: PoolInventory, now: float) -> TrialSeen | None:
        stored = self._executor.trials.stored(job)
        if stored is None:
            run = job.state.trial
            return TrialSeen(run.number, taken=True) if run is not None and self._executor.trials.taken(job) else None
        ref = stored.job.state.revision
        ended = stored.job.invalid
        if stored.job.state.finished is not None:
            condition = find_condition(stored.status.conditions, stored.job.state.finished)
            why = (condition and condition.message) or stored.job.state.finished
            ended = ENDED_ITSELF if stored.job.state.finished == COMPLETED else why.partition("; ")[0]
        seen = TrialSeen(job.state.trials, None if ref is None else ref.since, unit=unit_of(job), ended=ended)
        if job.spec.workload.server is not None:
            return self._server_trial(stored, seen, server)
        pool = None if ref is None else inventory.inventory.pools.get(ref.placement.pool)
        profile = self._windows.of(stored.job, None if pool is None else pool.accelerator, now).profile
        if profile is None:
            return seen
        rate = profile.throughput if profile.complete and throttling(profile) == NOT_THROTTLED else None
        return seen._replace(rate=None if rate is None else rate.value, unit=profile.unit)

    def _server_trial(self, stored: StoredJob, seen: TrialSeen, server: ServerSeen) -> TrialSeen:
        """It has started once it answers."""
        shown, ref = server.trial, stored.job.state.revision
        state = None if ref is None else self._store.revisions(stored.job.key, stored.job.uid).get(ref.revision)
        ended = seen.ended or (state.blocked if state is not None and state.cold else None)
        if shown is None:
            return seen._replace(runs_since=None, ended=ended)
        return seen._replace(
            runs_since=shown.since, rate=shown.rate, against=shown.against, ended=ended or shown.failed or None
        )

    def _failed(self, stored: StoredJob, error: str, now: float) -> _Seen:
        """The job as it was seen last, which is looked at again in the next cycle. Others go on."""
        last = self._seen.get(stored.job.key)
        known = last is not None and last.stored.job.uid == stored.job.uid
        observed = last.job.observed if last is not None and known else NOT_OBSERVED
        if observed.error != error:
            logger.exception("the job can't be looked at", extra={"job": str(stored.job.key)})
        return _Seen(stored, NOT_OBSERVED, altered(stored.job, observed=observed._replace(error=error)), now)

    def _threat(
        self, job: Job, revisions: Mapping[int, RevisionState], drained: Mapping[str, tuple[Taint, ...]]
    ) -> Threat | None:
        """Pods of the current Revision that are about to be lost. Of few jobs all pods have to be looked at."""
        state = None if job.state.revision is None else revisions.get(job.state.revision.revision)
        if state is None or state.deleting or state.finishing or (state.suspended and not state.evicted):
            return None
        if not state.evicted and (not state.nodes or drained.keys().isdisjoint(state.nodes)):
            return None
        return threat_to(self._store.pods(job.key, state.revision), drained)
