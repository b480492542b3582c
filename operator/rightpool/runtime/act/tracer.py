"""Has traces taken: asks the sidecars of a Revision, follows the pod that serves the request, and keeps its answer
until the job's status has it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rightpool.api.trace import TraceReason, TraceState
from rightpool.cluster.sidecars import Sidecars
from rightpool.planning.job import Job
from rightpool.planning.migration.commands import RequestTrace
from rightpool.planning.trace_answer import TraceAnswer
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.act.trace_answers import read_answer
from rightpool.runtime.observe.store import Store

MAX_AT_ONCE: Final = 4
"""Traces that are taken at the same time, over all jobs."""

ASK_SECONDS: Final = 2.0
"""Between two requests about the same trace."""

_FORGOTTEN_SECONDS: Final = 30.0  # a trace that nobody asked about for so long holds up no other

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Asked:
    at: float
    answer: TraceAnswer


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
            return not _over(asked.answer) and self._clock() - asked.at >= ASK_SECONDS

    def request(self, job: Job, command: RequestTrace) -> bool:
        """Ask once. Whether the sidecars have answered. Raises Fenced."""
        with self._lock:
            asked = self._asked.get(job.uid)
            known = None if asked is None else asked.answer
            if known is None or (known.id, known.rank) != (command.id, command.rank):
                known = TraceAnswer(command.id, command.rank, TraceState.WAITING)
                # A place is taken before the request, since commands of several jobs are carried out at the same time.
                if self._under_way() >= MAX_AT_ONCE:
                    return False
            self._asked[job.uid] = _Asked(self._clock(), known)
        try:
            answer = self._ask(job, command, known)
        except BaseException:
            with self._lock:
                if known.pod is None:
                    self._asked.pop(job.uid, None)
            raise
        with self._lock:
            self._asked[job.uid] = _Asked(self._clock(), answer)
        if answer.state is not known.state:
            logger.info("trace %s: %s", command.id, answer.state.value, extra={"job": str(job.key)})
            self._store.wake()
        return True

    def _under_way(self) -> int:
        """Traces that are being taken. The lock is held."""
        now = self._clock()
        return sum(not _over(one.answer) and now - one.at < _FORGOTTEN_SECONDS for one in self._asked.values())

    def _ask(self, job: Job, command: RequestTrace, known: TraceAnswer) -> TraceAnswer:
        alive = {pod.name: pod.ip for pod in self._store.pods(job.key, command.revision) if not pod.done}
        trace = job.state.trace
        serving = known.pod or (None if trace is None else trace.pod)
        if serving is not None and serving not in alive:
            return replace(
                known,
                state=TraceState.FAILED,
                pod=serving,
                reason=TraceReason.POD_GONE,
                message=f"pod {serving} has ended before its trace was complete",
            )
        addresses = [(name, ip) for name, ip in sorted(alive.items()) if ip and serving in (None, name)]
        if not addresses:
            return replace(known, message="no pod has an address yet")
        self._fence.leader()
        token = self._children.token(job.uid, command.revision)
        outcomes = self._sidecars.request_trace(addresses, token, command.id, command.rank, read_answer)
        answers = {
            name: answer
            for name, answer in outcomes.answers.items()
            if (answer.id, answer.rank) == (command.id, command.rank)
        }
        silent = outcomes.failures | dict.fromkeys(outcomes.unfinished, "no answer")
        return _chosen(known, answers, silent)


def _over(answer: TraceAnswer) -> bool:
    return answer.state in (TraceState.CAPTURED, TraceState.FAILED)


_BEST_FIRST: Final = (TraceState.CAPTURED, TraceState.CAPTURING, TraceState.WAITING, TraceState.FAILED)


def _chosen(known: TraceAnswer, answers: Mapping[str, TraceAnswer], silent: Mapping[str, str]) -> TraceAnswer:
    """What the answers of all pods together say. A pod that has no process with this rank says nothing of the trace
    unless all say so."""
    message = ""
    if silent:
        name, problem = min(silent.items())
        message = f"{len(silent)} of {len(silent) + len(answers)} pods did not answer ({name}: {problem})"
    if not answers:
        return replace(known, message=message)

    def preference(name: str) -> tuple[int, bool, str]:
        answer = answers[name]
        return _BEST_FIRST.index(answer.state), answer.reason is TraceReason.NO_RANK, name

    name = min(answers, key=preference)
    best = answers[name]
    if best.state is TraceState.WAITING or (best.state is TraceState.FAILED and silent):
        return replace(known, state=known.state, message=message)
    if best.reason is TraceReason.NO_RANK:
        return replace(best, message=f"no process of the job has rank {best.rank}")
    return replace(best, pod=name)
