"""Traces that a user asks for: from the operator's POST to files that are kept for the user.

A request is for one rank, or for all ranks of this pod, which have their turns one after the other: what the program
writes of one may fill most of the shared directory. The agent gets a turn as a file; its reports say how far it is. A
POST with the same id is the same request, so that repeating it returns the current state. After a restart of this
process the repeated request goes on with the ranks that had no turn yet.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rightpool import contract
from rightpool_profiler.command import leave
from rightpool_profiler.state import MAX_PROCESSES, State
from rightpool_profiler.traces import kept
from rightpool_profiler.traces.answer import MESSAGES, Answer, RankAnswer
from rightpool_profiler.traces.kept import Kept, Unkept, remove

COMMAND: Final = "trace.json"
MAX_RANK: Final = 1_000_000
MAX_RANKS: Final = 16  # of a pod, for one request
NO_AGENT_SECONDS: Final = 30.0  # until a process with this rank must have been heard of
START_SECONDS: Final = 180.0  # the same in a pod that has just started: importing a framework takes a while
HEARD_SECONDS: Final = 5.0  # from the start of this process: agents report once a second
LONGEST: Final = 240.0  # seconds until the agent must have written the trace
ENDING_SECONDS: Final = 120.0  # beyond it, for one that was begun in time: no other is begun beside it
LONGEST_ALL: Final = 1500.0  # seconds in which the last rank must have had its turn


@dataclass(slots=True)
class _Turn:
    """Of the rank whose trace is being taken."""

    rank: int
    since: float
    heard: bool
    """Whether a process with this rank has been heard of."""
    state: str = "waiting"


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace that the agent has written, to be read in a thread."""

    id: str
    """As the user named the request."""
    asked: int | None
    """The rank that the request names; None for all."""
    rank: int
    """Whose trace it is."""
    source: Path
    """The file that the agent has written."""
    room: int
    """Bytes that its gzip may have."""
    step: float | None
    """Seconds of a usual step of its process; None where they are not known."""
    cost: float | None
    """Seconds by which it has held up the program; None where they are not known."""


class Requested:
    """Holds the latest request. All but `read` is for one thread."""

    def __init__(self, shared: Path, folder: Path, started: float) -> None:
        """folder: the volume for what is kept. started: when this process began, by the clock of `now` in the other
        methods."""
        self._started = started
        self._command = shared / Path(contract.COMMAND_DIR).name / COMMAND
        self._traces = shared / Path(contract.TRACE_DIR).name
        self._kept = Kept(folder)
        stored = self._kept.load()
        self._answer = stored if stored is not None and stored.over else None
        self._interrupted = stored if stored is not None and not stored.over else None
        self._asked = 0.0
        self._seen: frozenset[int] = frozenset()  # of a request for all: ranks that were there at some time
        self._turn: _Turn | None = None

    def ask(self, identity: str, rank: int | None, state: State, now: float, unix: float) -> Answer:
        """The state of the request, which is made if it is new. rank: None for all."""
        known = self._answer
        if known is not None and known.asks(identity, rank):
            return known
        ranks = state.ranks(now)
        if rank is not None and ranks and rank not in ranks and now >= self._started + START_SECONDS:
            refused = RankAnswer.failed(rank, "NoRank")
            return Answer(identity, rank, contract.TRACE_FAILED, refused.reason, refused.message, ranks=(refused,))
        before = self._interrupted
        known = before if before is not None and before.asks(identity, rank) else Answer(identity, rank, "waiting")
        self._answer, self._interrupted, self._turn = known, None, None
        self._asked, self._seen = now, frozenset()
        self._go_on(state, now, unix)
        return self._answer

    def look(self, state: State, now: float, unix: float) -> Reading | None:
        """Follow the request. Where a trace has come: what `read` is to be called with, in a thread."""
        answer = self._answer
        if answer is None or answer.over:
            return None
        if self._turn is None:
            self._go_on(state, now, unix)
            return None
        return self._follow(answer, self._turn, state, now)

    def read(self, reading: Reading) -> RankAnswer:
        """Keep the trace, and say what it holds. Blocks: run it in a thread."""
        target = self._kept.path(reading.id, reading.asked, reading.rank)
        try:
            result = self._kept.keep(reading.source, target, reading.room, reading.step)
        except Unkept as error:
            return RankAnswer.failed(reading.rank, error.reason, str(error))
        finally:
            remove(reading.source)
        if reading.cost is not None:
            result["summary"]["cost"] = reading.cost
        return RankAnswer(reading.rank, contract.TRACE_CAPTURED, result=result)

    def settle(self, reading: Reading, outcome: RankAnswer) -> None:
        """This is what became of the trace, unless another request came in between."""
        answer, turn = self._answer, self._turn
        if answer is None or not answer.asks(reading.id, reading.asked) or turn is None or turn.rank != reading.rank:
            self._kept.forget(reading.id, reading.asked, reading.rank)
            return
        self._done(answer, outcome)

    # --- turns -------------------------------------------------------------------------------------------------------

    def _follow(self, answer: Answer, turn: _Turn, state: State, now: float) -> Reading | None:
        if turn.state == "reading":
            return None
        found, ranks = state.trace(_identity(answer), turn.rank, now), state.ranks(now)
        turn.heard = turn.heard or turn.rank in ranks
        if found is not None and found[1] == "written":
            self._show(answer, turn, "reading")
            room = kept.MAX_KEPT_BYTES - sum(one.result["packed"] for one in answer.ranks if one.captured)
            source, step = kept.written(self._traces, found[0]), state.usual_step(found[0], now)
            return Reading(answer.id, answer.rank, turn.rank, source, room, step, found[2])
        if found is not None and found[1] in MESSAGES:
            self._done(answer, RankAnswer.failed(turn.rank, found[1]))
        elif not turn.heard and now > max(
            turn.since + (0 if ranks else NO_AGENT_SECONDS), self._started + START_SECONDS
        ):
            self._done(answer, RankAnswer.failed(turn.rank, "NoRank" if ranks else "NoAgent"))
        elif now - turn.since > LONGEST + (ENDING_SECONDS if turn.state == "capturing" else 0.0):
            self._done(answer, RankAnswer.failed(turn.rank, "NoSteps"))
        elif found is not None and found[1] == "capturing":
            self._show(answer, turn, "capturing")
        return None

    def _show(self, answer: Answer, turn: _Turn, how: str) -> None:
        turn.state = how
        self._answer = replace(answer, state="capturing" if answer.ranks else how)

    def _go_on(self, state: State, now: float, unix: float) -> None:
        """The next rank's turn, or the end of the request."""
        while (answer := self._answer) is not None and not answer.over and self._turn is None:
            rank = self._next(answer, state, now)
            if rank is None:
                return
            try:
                leave(self._command, {"id": _identity(answer), "rank": rank, "at": unix})
            except OSError as error:
                message = f"the request can't be left for the agent: {error.strerror}"
                self._done(answer, RankAnswer.failed(rank, "NoSpace", message))
            else:
                self._turn = _Turn(rank, now, rank in state.ranks(now))

    def _next(self, answer: Answer, state: State, now: float) -> int | None:
        """The rank whose turn it is. None where none waits now; then the request may have come to its end."""
        if answer.rank is not None:
            return answer.rank
        settled = now >= self._started + START_SECONDS
        members, world = state.members(now, settled)
        # One that has gone gets its turn, which says so. They are bounded, since the program may say anything.
        self._seen = frozenset(sorted(self._seen | members)[:MAX_PROCESSES])
        left = sorted(self._seen - {one.rank for one in answer.ranks})
        if world is not None and world != answer.world:
            answer = self._answer = replace(answer, world=world)
        late = now - self._asked > LONGEST_ALL
        if left and not late and len(answer.ranks) < MAX_RANKS:
            return left[0]
        if left:
            reason = "TimedOut" if late else "TooManyRanks"
            answer = replace(answer, ranks=(*answer.ranks, *(RankAnswer.failed(rank, reason) for rank in left)))
        elif now < self._started + HEARD_SECONDS:
            return None  # who reports has not been heard yet
        # A program whose rank has made steps has all its ranks; otherwise some may still be importing their framework.
        come = any(one.captured for one in answer.ranks) or (world is not None and len(answer.ranks) >= world)
        gone = now > max(self._asked + (0 if state.ranks(now) else NO_AGENT_SECONDS), self._started + START_SECONDS)
        if left or come or gone:
            self._end(answer)
        return None

    def _done(self, answer: Answer, outcome: RankAnswer) -> None:
        """Nothing more comes of this rank."""
        self._turn = None
        remove(self._command)
        answer = replace(answer, ranks=(*answer.ranks, outcome))
        if answer.rank is not None:
            self._end(answer)
            return
        self._answer = replace(answer, state="capturing")
        try:
            self._kept.store(self._answer)
        except Unkept:
            pass  # a restart of this process forgets it; the end of the request tells

    def _end(self, answer: Answer) -> None:
        self._answer = _settled(answer)
        try:
            self._kept.store(self._answer)
        except Unkept as error:
            # Nobody finds files of which nothing is told.
            for one in answer.ranks:
                if one.captured:
                    self._kept.forget(answer.id, answer.rank, one.rank)
            lost = (
                RankAnswer.failed(one.rank, error.reason, str(error)) if one.captured else one for one in answer.ranks
            )
            self._answer = _settled(replace(answer, ranks=tuple(lost)))


def _settled(answer: Answer) -> Answer:
    if any(one.captured for one in answer.ranks):
        return replace(answer, state=contract.TRACE_CAPTURED)
    why = answer.ranks[0] if answer.ranks else RankAnswer.failed(0, "NoAgent")
    return replace(answer, state=contract.TRACE_FAILED, reason=why.reason, message=why.message)


def _identity(answer: Answer) -> str:
    """The request's id as the agents get it, which serve each but once."""
    return f"{answer.id}:{contract.TRACE_ALL}" if answer.rank is None else answer.id
