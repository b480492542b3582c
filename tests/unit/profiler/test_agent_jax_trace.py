"""How long the agent lets XLA record: by what a first look has seen, and by the process' memory."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rightpool_agent import jax_gpu_trace, jax_trace, process  # type: ignore[import-not-found]

from rightpool import contract

from .xspaces import field


class Profiler:
    """XLA's, as far as the agent knows it: `rate` bytes of result a second."""

    def __init__(self, rate: float, clock: Clock) -> None:
        self.rate, self.clock = rate, clock
        self.sessions: list[float] = []
        self.hlo = b""
        self.marks: list[dict[str, Any]] = []
        self._profile_state = SimpleNamespace(session=None)
        self._profiler_server = None
        self._profiler = SimpleNamespace(ProfilerSession=lambda options: Open(self, options), TraceMe=self._mark)
        self.ProfileOptions = SimpleNamespace

    def _mark(self, name: str, **about: Any) -> Any:
        self.marks.append({"name": name, **about})
        return nullcontext()


class Open:
    def __init__(self, profiler: Profiler, options: Any) -> None:
        self._profiler, self._options, self._began = profiler, options, profiler.clock.now

    def stop(self) -> bytes:
        if self._options.enable_hlo_proto:
            assert self._options.host_tracer_level == self._options.device_tracer_level == 0
            return self._profiler.hlo
        seconds = self._profiler.clock.now - self._began
        self._profiler.sessions.append(seconds)
        return bytes(int(self._profiler.rate * seconds))


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(jax_trace, "time", made)
    monkeypatch.setattr(process, "resident", lambda: 1 << 30)
    monkeypatch.setattr(process, "most_resident", lambda: 1 << 30)
    monkeypatch.setattr(process, "memory_left", lambda: None)
    return made


def running(monkeypatch: pytest.MonkeyPatch, clock: Clock, rate: float, **platforms: str) -> Profiler:
    profiler = Profiler(rate, clock)
    backends = {name: SimpleNamespace(platform=name) for name in platforms or {"cpu": ""}}
    monkeypatch.setitem(sys.modules, "jax._src.profiler", profiler)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "jax._src.xla_bridge", SimpleNamespace(_backends=backends))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "jax.version", SimpleNamespace(__version__="0.12.0.1"))  # type: ignore[arg-type]
    track = SimpleNamespace(function="train", each=1, joined=False, opaque=False)
    steps = SimpleNamespace(_log=SimpleNamespace(dominant=track), between=None)
    monkeypatch.setitem(sys.modules, "rightpool_agent.jax_steps", steps)  # type: ignore[arg-type]
    return profiler


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    assert jax_trace._session is None and jax_gpu_trace.wanted is None


def followed(clock: Clock, step: float, session: Any, turns: int = 100_000) -> float:
    """Seconds until the agent ends the trace, which it looks at as its thread does."""
    began = clock.now
    for _ in range(turns):
        clock.now += 0.05
        if jax_trace.ready(session, int((clock.now - began) / step), clock.now - began):
            return clock.now - began
    return float("inf")


def test_some_steps(monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path) -> None:
    profiler = running(monkeypatch, clock, 1e5)
    session = jax_trace.begin_requested()
    assert followed(clock, 0.5, session) == pytest.approx(2.6, abs=0.2)
    assert jax_trace.finish(session, str(tmp_path / "trace"))
    look, trace = profiler.sessions
    assert look < 0.11 and (tmp_path / "trace").stat().st_size == int(1e5 * trace)
    assert profiler.marks == [{"name": contract.TRACE_MARK, "function": "train", "steps": 1}]


@pytest.mark.parametrize(
    ("version", "size", "kept"),
    [("0.12.0.1", 1_000, True), ("0.10.2", 3 << 20, True), ("0.10.2", 16 << 20, False), ("0.9.2", 1_000, False)],
)
def test_the_programs_come_behind_the_trace(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path, version: str, size: int, kept: bool
) -> None:
    """Where there are too many, or they may hold all data, the trace goes without them."""
    profiler = running(monkeypatch, clock, 1e5)
    monkeypatch.setitem(sys.modules, "jax.version", SimpleNamespace(__version__=version))  # type: ignore[arg-type]
    plane = field(1, field(2, b"/host:metadata") + field(4, b"h" * size))
    profiler.hlo = field(1, field(2, b"/host:CPU")) + plane + field(1, field(2, b"Task Environment")) + field(4, b"vm")
    session = jax_trace.begin_requested()
    followed(clock, 0.5, session)
    assert jax_trace.finish(session, str(tmp_path / "trace"))
    events = bytes(int(1e5 * profiler.sessions[1]))
    assert len(profiler.sessions) == 2 and (tmp_path / "trace").read_bytes() == events + (plane if kept else b"")


def test_programs_in_a_form_that_is_not_known(monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path) -> None:
    profiler = running(monkeypatch, clock, 1e5)
    profiler.hlo = field(1, field(2, b"/host:metadata"))[:-3] + b"\x80" * 9
    session = jax_trace.begin_requested()
    followed(clock, 0.5, session)
    assert jax_trace.finish(session, str(tmp_path / "trace"))
    assert (tmp_path / "trace").stat().st_size == int(1e5 * profiler.sessions[1])


def test_a_trace_that_nobody_asked_for_has_no_programs(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path
) -> None:
    profiler = running(monkeypatch, clock, 1e5)
    profiler.hlo = field(1, field(2, b"/host:metadata"))
    session = jax_trace.begin()
    followed(clock, 0.5, session)
    assert jax_trace.finish(session, str(tmp_path / "trace"))  # type: ignore[arg-type]
    assert b"metadata" not in (tmp_path / "trace").read_bytes()


@pytest.mark.parametrize("requested", [True, False])
@pytest.mark.parametrize("rate", [1e7, 1e8])
def test_it_ends_before_it_holds_too_much(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path, rate: float, requested: bool
) -> None:
    """Steps of three seconds with a loop of tiny operations, on one thread and on several."""
    running(monkeypatch, clock, rate)
    session = jax_trace.begin_requested() if requested else jax_trace.begin()
    room = jax_trace.REQUESTED_BYTES if requested else jax_trace._MAX_BYTES
    assert followed(clock, 3.0, session) < room / rate + 0.2
    written = jax_trace.finish(session, str(tmp_path / "trace"))
    assert written or not requested, "what there is of a step is shown"


def test_it_ends_where_memory_grows(monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path) -> None:
    """The first look came in a pause, and showed nothing of the operations."""
    running(monkeypatch, clock, 100.0)
    session = jax_trace.begin_requested()
    assert followed(clock, 100.0, session, turns=50) == float("inf")
    monkeypatch.setattr(process, "resident", lambda: (1 << 30) + jax_trace.GROWTH + 1)
    assert jax_trace.ready(session, 0, 3.0)
    assert jax_trace.finish(session, str(tmp_path / "trace"))


def test_no_steps(monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path) -> None:
    profiler = running(monkeypatch, clock, 100.0)
    session = jax_trace.begin_requested()
    assert followed(clock, 1e9, session, turns=1000) == float("inf")
    assert not jax_trace.finish(session, str(tmp_path / "trace")) and session.reason == "NoSteps"
    assert len(profiler.sessions) == 2 and list(tmp_path.iterdir()) == []


def test_the_program_begins_its_own(monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path) -> None:
    for turns in (0, 3):  # during the first look, and after it
        profiler = running(monkeypatch, clock, 1e5)
        session = jax_trace.begin_requested()
        followed(clock, 1e9, session, turns)
        jax_trace._make_way().release()
        profiler._profile_state.session = "the program's"
        assert jax_trace.ready(session, 0, 1.0)
        assert not jax_trace.finish(session, str(tmp_path / "trace")) and session.reason == "ProgramProfiles"
        assert jax_trace.begin_requested() == "ProgramProfiles" and jax_trace.begin() is None


def patched(monkeypatch: pytest.MonkeyPatch, profiler: Profiler, original: Callable[[], None]) -> Callable[[], None]:
    """The program's way to begin a trace, as the agent leaves it."""
    monkeypatch.setattr(profiler, "ProfileSession", SimpleNamespace(start=original), raising=False)
    monkeypatch.setattr("os.register_at_fork", lambda **_: None)
    jax_trace.install()
    start: Callable[[], None] = profiler.ProfileSession.start  # type: ignore[attr-defined]
    return start


def test_none_is_begun_while_the_program_begins_its_own(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """The agent's thread comes after our session has ended, and before JAX has one."""
    profiler = running(monkeypatch, clock, 1e5)
    answers: list[object] = []
    agent = threading.Thread(target=lambda: answers.append(jax_trace.begin_requested()))

    def original() -> None:
        agent.start()
        agent.join(0.2)
        profiler._profile_state.session = "the program's"

    patched(monkeypatch, profiler, original)()
    agent.join()
    assert answers == ["ProgramProfiles"]


def test_the_program_fails_to_begin_its_own(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    profiler = running(monkeypatch, clock, 1e5)
    start = patched(monkeypatch, profiler, lambda: int("no number"))  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueError, match="no number"):
        start()
    session = jax_trace.begin_requested()
    assert isinstance(session, jax_trace.Session), "later ones of ours can be had"
    jax_trace.abandon(session)


def test_the_program_begins_its_own_in_a_handler_of_signals(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Where the same thread is in the middle of beginning one."""
    profiler = running(monkeypatch, clock, 1e5)
    monkeypatch.setattr(jax_trace, "_PATIENCE", 0.01)
    begun: list[str] = []

    def original() -> None:
        begun.append("one")
        if len(begun) == 1:
            start()

    start = patched(monkeypatch, profiler, original)
    start()
    assert begun == ["one", "one"] and not jax_trace._lock.locked()


@pytest.mark.parametrize(
    ("platforms", "reason"),
    [
        (("cpu", "rocm", "gpu"), "UnsupportedFramework"),
        (("METAL",), "UnsupportedFramework"),
    ],
)
def test_platforms_that_are_not_traced(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, platforms: tuple[str, ...], reason: str
) -> None:
    """Also those of a program whose steps run on the CPU: the trace would be of the chips as well."""
    profiler = running(monkeypatch, clock, 1e5, **dict.fromkeys(platforms, ""))
    assert jax_trace.begin_requested() == reason and jax_trace.begin() is None
    assert reason in contract.TRACE_REASONS and profiler.sessions == []


@pytest.mark.parametrize("platforms", [("cpu", "cuda"), ("gpu",)])
def test_the_program_itself_takes_that_of_a_gpu(
    monkeypatch: pytest.MonkeyPatch, clock: Clock, tmp_path: Path, platforms: tuple[str, ...]
) -> None:
    """Also that of one whose steps run on the CPU. Where it makes no call, nothing is begun."""
    profiler = running(monkeypatch, clock, 1e5, **dict.fromkeys(platforms, ""))
    assert jax_trace.begin() is None, "nobody has asked"
    session = jax_trace.begin_requested()
    assert isinstance(session, jax_gpu_trace.Session) and sys.modules["rightpool_agent.jax_steps"].between
    assert not jax_trace.ready(session, 1000, 60.0) and profiler.sessions == []
    assert jax_trace.begin_requested() == "NoSteps", "one at a time"
    assert not jax_trace.finish(session, str(tmp_path / "trace")) and session.reason == "NoSteps"
    assert sys.modules["rightpool_agent.jax_steps"].between is None


def test_the_agent_gives_up_while_the_program_begins(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """It does not know of the session yet, so the program's thread ends it."""
    profiler = running(monkeypatch, clock, 1e5, cuda="")
    monkeypatch.setattr(jax_gpu_trace, "time", clock)
    steps = sys.modules["rightpool_agent.jax_steps"]
    first = jax_trace.begin_requested()
    array = SimpleNamespace(block_until_ready=lambda: jax_trace.abandon(first))
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(live_arrays=lambda: [array]))  # type: ignore[arg-type]
    track = steps._log.dominant
    for _ in range(10):
        clock.now += 1.0
        first.called(track)
    assert first.ended and first.reason == "NoSteps" and len(profiler.sessions) == 1


def test_pytorch_on_the_same_gpu(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Its kernels would still run when the session ends."""
    running(monkeypatch, clock, 1e5, cuda="")
    monkeypatch.setitem(sys.modules, "torch.cuda", SimpleNamespace(is_initialized=lambda: True))  # type: ignore[arg-type]
    assert jax_trace.begin_requested() == "JaxOnGPU"


def test_reasons_without_a_session(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    running(monkeypatch, clock, 1e5)
    monkeypatch.setattr(process, "memory_left", lambda: 1 << 20)
    assert jax_trace.begin_requested() == "NoMemory"
    monkeypatch.setattr(process, "memory_left", lambda: 1 << 40)
    for version in ("0.7.2", "0.5.3"):
        monkeypatch.setitem(sys.modules, "jax.version", SimpleNamespace(__version__=version))  # type: ignore[arg-type]
        assert jax_trace.begin_requested() == "UnsupportedVersion" and jax_trace.begin() is None


def test_what_the_system_says_of_memory() -> None:
    assert 0 < process.resident() <= process.most_resident()
    left = process.memory_left()
    assert left is None or left > -(1 << 40)
