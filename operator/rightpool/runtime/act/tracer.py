"""Has traces taken: asks the sidecars of a Revision, follows the pod that serves a request for one rank, or all pods
of one for all ranks, and keeps what they answer until the job's status has it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from rightpool.api.trace import TraceReason, TraceState
from rightpool.cluster.sidecars import Sidecars
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.trace_answer import PodTrace, TraceAnswer
from rightpool.planning.moves.commands import RequestTrace
from rightpool.planning.moves.trace_ranks import failure, with_ranks
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.act.trace_answers import read_answer
from rightpool.runtime.observe.store import Store

MAX_AT_ONCE: Final = 4
"""Traces that are taken at the same time, over all jobs."""

ASK_SECONDS: Final = 2.0
"""Between two requests about the same trace."""

SILENT_SECONDS: Final = 60.0
"""Until a pod that does not answer is no longer waited for, of all ranks: all others are done."""

_FORGOTTEN_SECONDS: Final = 30.0  # a trace that nobody asked about for so long holds up no other

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    at: float
    answer: TraceAnswer
    pods: Mapping[str, PodTrace] = field(default_factory=dict)
    """Of all ranks: the answers that are over, by pod."""
    seen: frozenset[str] = frozenset()
    """Of all ranks: pods that have answered."""
    waited: float = 0.0
    """Of all ranks: when a pod was last at work."""


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Of one round of requests, by pod."""

    answers: Mapping[str, PodTrace]
    silent: Mapping[str, str]
    """Why there is no answer."""


class Tracer:
    """Thread-safe: requests of different jobs run in parallel, those of one job in one thread at a time."""

    def __init__(
        self,
        store: Store,
        fence: Fence,
        children: Children,
        sidecars: Sidecars,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._fence = fence
        self._children = children
        self._sidecars = sidecars
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: dict[str, _Asked] = {}  # by uid of the ProfiledJob

    def answer(self, job: Job) -> TraceAnswer | None:
        """What is known of the trace that is under way."""
        trace = job.state.trace
        if trace is None:
            return None  # as of nearly all jobs
        with self._lock:
            if trace.over:
                self._asked.pop(job.uid, None)
                return None
            asked = self._asked.get(job.uid)
        found = None if asked is None else asked.answer
        return found if found is not None and (found.id, found.rank) == (trace.id, trace.rank) else None

    def forget(self, uids: set[str]) -> None:
        """Forget deleted jobs."""
        with self._lock:
            for uid in uids:
                self._asked.pop(uid, None)

    def needed(self, job: Job, command: RequestTrace) -> bool:
        """Whether the sidecars are to be asked now. Sends no request."""
        with self._lock:
            asked = self._asked.get(job.uid)
            if asked is None or (asked.answer.id, asked.answer.rank) != (command.id, command.rank):
                return self._under_way() < MAX_AT_ONCE
            return not asked.answer.state.over and self._clock() - asked.at >= ASK_SECONDS

    def request(self, job: Job, command: RequestTrace) -> bool:
        """Ask once. Whether the sidecars have answered. Raises Fenced."""
        with self._lock:
            asked = self._asked.get(job.uid)
            now = self._clock()
            if asked is None or (asked.answer.id, asked.answer.rank) != (command.id, command.rank):
                asked = _Asked(now, TraceAnswer(command.id, command.rank, TraceState.WAITING), waited=now)
                # A place is taken before the request, since commands of several jobs are carried out at the same time.
                if self._under_way() >= MAX_AT_ONCE:
                    return False
            before = self._asked[job.uid] = replace(asked, at=now)
        try:
            after = self._ask(job, command, before)
        except BaseException:
            with self._lock:
                if before.answer.state is TraceState.WAITING:
                    self._asked.pop(job.uid, None)
            raise
        with self._lock:
            self._asked[job.uid] = replace(after, at=self._clock())
        if after.answer.state is not before.answer.state:
            logger.info("trace %s: %s", command.id, after.answer.state.value, extra={"job": str(job.key)})
            self._store.wake()
        return True

    def _under_way(self) -> int:
        """Traces that are being taken. The lock is held."""
        now = self._clock()
        return sum(not one.answer.state.over and now - one.at < _FORGOTTEN_SECONDS for one in self._asked.values())

    def _ask(self, job: Job, command: RequestTrace, before: _Asked) -> _Asked:
        alive = {pod.name: pod.ip for pod in self._store.pods(job.key, command.revision) if not pod.done}
        if command.rank is None:
            outcomes = self._outcomes(job, command, {name: ip for name, ip in alive.items() if name not in before.pods})
            return _of_all(before, alive, outcomes, self._clock())
        trace, known = job.state.trace, before.answer
        serving = known.pod or (None if trace is None else trace.pod)
        if serving is not None and serving not in alive:
            message = f"pod {serving} has ended before its trace was complete"
            gone = replace(known, state=TraceState.FAILED, pod=serving, reason=TraceReason.POD_GONE, message=message)
            return replace(before, answer=gone)
        outcomes = self._outcomes(
            job, command, {name: ip for name, ip in alive.items() if ip and serving in (None, name)}
        )
        if not outcomes.answers and not outcomes.silent:
            return replace(before, answer=replace(known, message="no pod has an address yet"))
        return replace(before, answer=_of_one(known, outcomes))

    def _outcomes(self, job: Job, command: RequestTrace, pods: Mapping[str, str | None]) -> _Outcomes:
        """Ask these pods, by name with IP. Raises Fenced."""
        addresses = [(name, ip) for name, ip in sorted(pods.items()) if ip]
        if not addresses:
            return _Outcomes({}, dict.fromkeys(pods, "it has no address"))
        self._fence.leader()
        token = self._children.token(job.uid, command.revision)
        outcomes = self._sidecars.request_trace(addresses, token, command.id, command.rank, read_answer)
        answers = {
            name: answer
            for name, answer in outcomes.answers.items()
            if (answer.id, answer.rank) == (command.id, command.rank)
        }
        silent = {name: "no answer" if ip else "it has no address" for name, ip in pods.items() if name not in answers}
        return _Outcomes(answers, silent | outcomes.failures)


# --- what the pods together say --------------------------------------------------------------------------------------

_BEST_FIRST: Final = (TraceState.CAPTURED, TraceState.CAPTURING, TraceState.WAITING, TraceState.FAILED)


def _silence(outcomes: _Outcomes) -> str:
    if not outcomes.silent:
        return ""
    name, problem = min(outcomes.silent.items())
    asked = len(outcomes.silent) + len(outcomes.answers)
    return f"{len(outcomes.silent)} of {asked} pods did not answer ({name}: {problem})"


def _of_one(known: TraceAnswer, outcomes: _Outcomes) -> TraceAnswer:
    """Of a request for one rank. A pod that has no process with this rank says nothing of the trace unless all say
    so."""
    message, answers = _silence(outcomes), outcomes.answers
    if not answers:
        return replace(known, message=message)

    def preference(name: str) -> tuple[int, bool, str]:
        answer = answers[name]
        return _BEST_FIRST.index(answer.state), answer.reason is TraceReason.NO_RANK, name

    name = min(answers, key=preference)
    best = answers[name]
    if best.state is TraceState.WAITING or (best.state is TraceState.FAILED and outcomes.silent):
        return replace(known, message=message)
    if best.reason is TraceReason.NO_RANK:
        message = f"no process of the job has rank {best.rank}"
        return replace(known, state=best.state, reason=best.reason, message=message)
    found = replace(known, state=best.state, pod=name, reason=best.reason, message=best.message)
    for one in best.ranks:
        if one.rank == best.rank:
            found = replace(found, size_bytes=one.size_bytes, sha256=one.sha256, summary=one.summary)
    return found


def _of_all(before: _Asked, alive: Collection[str], outcomes: _Outcomes, now: float) -> _Asked:
    """Of a request for all ranks: over when all pods are, without those that have long been silent."""
    over = {name: answer for name, answer in outcomes.answers.items() if answer.state.over}
    working = {name for name in outcomes.answers if name not in over}
    pods, seen = {**before.pods, **over}, before.seen | outcomes.answers.keys()
    missing = {
        name: failure(name, TraceReason.POD_GONE, "the pod has ended before its traces were complete")
        for name in seen - pods.keys() - set(alive)
    }
    missing |= {
        name: failure(name, TraceReason.TIMED_OUT, f"the pod did not answer: {problem}")
        for name, problem in outcomes.silent.items()
    }
    missing |= {name: failure(name, TraceReason.TIMED_OUT, "its ranks took too long") for name in working}
    waited = now if working or over else before.waited
    answer = replace(before.answer, message=_silence(outcomes))
    if pods:
        answer = with_ranks(answer, pods, missing)
    if any(answer.state is not TraceState.WAITING for answer in outcomes.answers.values()):
        answer = replace(answer, state=TraceState.CAPTURING)
    patient = bool(outcomes.silent) and now - waited < SILENT_SECONDS
    if seen and not working and not patient:
        answer = _settled(with_ranks(answer, pods, missing))
    return _Asked(before.at, answer, pods, seen, waited)


def _settled(answer: TraceAnswer) -> TraceAnswer:
    ranks = answer.ranks
    if ranks is None or ranks.captured:
        return replace(answer, state=TraceState.CAPTURED, message="")
    first = ranks.failures[0]
    which = f"pod {first.pod}" if first.rank is None else f"rank {first.rank} in pod {first.pod}"
    message = f"no rank was traced; {which}: {first.message}"
    return replace(answer, state=TraceState.FAILED, reason=first.reason, message=message)
