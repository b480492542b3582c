"""A short XLA trace of the running program, without touching the profiler the user may want for himself.

Works on XLA's profiler session below `jax.profiler`, of JAX 0.8 or newer: before, one imports TensorFlow if it is
there, and else complains on the program's stderr. Only one session can exist in a process: none is begun while the
program has one, and one of ours makes way the moment the program asks for its own.

XLA keeps what it records in the program's memory without a bound, and takes some 24 times the bytes of the result while
it puts that together; a loop of tiny operations makes 27 MB of result a second on one thread. So a first, very short
session says how much there is to record, and the one that counts is ended before it holds too much.

A session on this thread may end a program that has a GPU: there the program's own takes it, and only for a user who
asks (`jax_gpu_trace`).
"""

from __future__ import annotations

import _thread
import functools
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from . import process

ENDING = ".xplane.pb"
REQUESTED = ".requested.xplane.pb"
MARK = "rightpool.step"  # the event that names the function that makes the steps
STEPS = 5
SHORTEST = 0.2  # seconds
_ENOUGH = 10.0  # seconds after which a requested trace ends with two steps
_FIRST_LOOK = 0.05  # seconds
_PLATFORMS = ("cpu", "tpu")  # a session traces all that the process has
_GPUS = frozenset({"gpu", "cuda", "rocm"})
_MAX_BYTES = 4 << 20  # more than the sidecar, which is small, would hold
REQUESTED_BYTES = 12 << 20  # about 300 MB of the program's memory while XLA puts it together
_REQUESTED_MAX_BYTES = 256 << 20  # more than the sidecar would read
_NEEDED = 512 << 20  # bytes of memory that must be left for a requested trace
GROWTH = 128 << 20  # bytes beyond all that the process ever had: they are the trace's
_PATIENCE = 30.0  # seconds that the program waits for the end of a trace of ours

_SINCE = (0, 8)
_CONSTANTS_OUTSIDE = (0, 10)  # of HLO are arrays that a function closes over: before, its size had no bound
_PROGRAMS_BYTES = 16 << 20  # of HLO, which is text for the most part and packs well
_PLANE = 1 << 3 | 2  # key of a plane in an XSpace
_OF_PROGRAMS = b"\x12\x0e/host:metadata"  # the name of the plane of HLO, with key and size
_ON_GPUS = __package__ + ".jax_gpu_trace"

_lock = _thread.allocate_lock()
_session: Session | None = None


class Session:
    """One trace: a first look, then the one that counts."""

    by_program = False  # its thread begins and ends it, not the agent's
    ended = False  # of one by the program: its result can be taken

    def __init__(self, requested: bool) -> None:
        self.requested = requested
        self.reason = "CaptureFailed"  # why there is no result, once it has ended
        self.profiler: Any = None
        self.looking = True
        self.began = time.monotonic()
        self.longest = float("inf")  # seconds
        self.most_memory = 0.0  # bytes
        self.steps_before = 0
        self.steps = 0
        self.cut = False  # ended because it would have become too large

    def configure(self, options: Any) -> None:
        """What XLA records beside the work of devices."""
        options.host_tracer_level = 2  # on CPU the operations themselves are host events

    def make_way(self) -> None:
        """Before the program's own trace ends it."""

    def give_up(self) -> None:
        """The agent's thread waits no longer."""
        end_session(self)

    def take(self) -> bytes | None:
        """What it has recorded; it ends."""
        if self.looking or (self.requested and not self.steps and not self.cut):
            if not self.looking and _session is self:
                self.reason = "NoSteps"
            self.give_up()
            return None
        if self.requested:
            mark()
        body = end_session(self)
        return body + programs() if body and self.requested else body


class Programs(Session):
    """A session without events: what it has is the HLO of the programs that the process holds."""

    def configure(self, options: Any) -> None:
        options.host_tracer_level = options.device_tracer_level = 0
        options.enable_hlo_proto = True


def install() -> None:
    """Let the program's own traces go first."""
    profiler: Any = sys.modules["jax._src.profiler"]
    os.register_at_fork(after_in_child=_forget)
    if hasattr(profiler, "ProfileSession"):  # JAX 0.12 and newer: all ways of beginning one come by here
        profiler.ProfileSession.start = _after_making_way(profiler.ProfileSession.start)
    else:
        public: Any = sys.modules["jax.profiler"]
        public.start_trace = profiler.start_trace = _after_making_way(profiler.start_trace)


def _after_making_way(original: Any) -> Any:
    @functools.wraps(original)
    def start(*args: Any, **kwargs: Any) -> Any:
        lock = _make_way()
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        finally:
            if lock is not None:
                lock.release()

    return start


def _forget() -> None:
    """In a forked child: the parent's thread may have held the lock."""
    global _lock, _session
    _lock, _session = _thread.allocate_lock(), None
    tracer: Any = sys.modules.get(_ON_GPUS)
    if tracer is not None:
        tracer.forget()


def _make_way() -> Any:
    """The program begins a trace of its own. The lock is held until JAX knows of it: in between, the agent's thread
    would see no session and begin one. None where the lock can't be had, as in a signal's handler."""
    lock, current = _lock, _session
    if current is not None:
        current.make_way()
    if not lock.acquire(timeout=_PATIENCE):
        return None
    current = _session
    if current is not None:
        current.reason = "ProgramProfiles"
        _end_locked(current)
    return lock


def begin() -> Session | None:
    """Start a session with device events and no Python ones; None where none may be, or XLA refuses."""
    platforms = _platforms()
    if not platforms or not platforms <= set(_PLATFORMS):
        return None
    made = Session(requested=False)
    return None if open_session(made) else made


def begin_requested() -> Session | str:
    """Start a session that a user wants, or say in a word why there can be none."""
    platforms = _platforms()
    if not platforms:
        return "UnsupportedVersion"  # it keeps its devices elsewhere: a program that makes steps has some
    if "rocm" in platforms or not platforms <= _GPUS.union(_PLATFORMS):
        return "UnsupportedFramework"
    if _memory_is_short():
        return "NoMemory"
    if platforms & _GPUS:
        from . import jax_gpu_trace

        return jax_gpu_trace.begin_requested()
    made = Session(requested=True)
    return open_session(made) or made


def _memory_is_short() -> bool:
    left = process.memory_left()
    return left is not None and left < _NEEDED


def _platforms() -> set[str]:
    """Of everything that the program has its devices by. To ask JAX would make it look for devices."""
    try:
        backends = sys.modules["jax._src.xla_bridge"]._backends
        # NVIDIA's and AMD's both call themselves `gpu`, and JAX keeps them by their names.
        return {*(str(one.platform) for one in backends.values()), *map(str, backends)} - {"interpreter"}
    except (AttributeError, KeyError):
        return set()


def open_session(current: Session) -> str:
    """Begin to record; empty, else why not."""
    global _session
    profiler: Any = sys.modules["jax._src.profiler"]
    with _lock:
        if _session is not None:
            return "ProgramProfiles"
        try:
            state = profiler._profile_state
            own = state.session if hasattr(state, "session") else state.profile_session
            if own is not None or profiler._profiler_server is not None:
                return "ProgramProfiles"  # through the server someone may be capturing
            current.profiler = _start(profiler, current)
        except (AttributeError, TypeError, KeyError):
            return "UnsupportedVersion"  # another version has it elsewhere
        except Exception:
            return "CaptureFailed"
        current.began, _session = time.monotonic(), current
    return ""


def _start(profiler: Any, current: Session) -> Any:
    if _version() < _SINCE:
        raise AttributeError
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.enable_hlo_proto = False
    current.configure(options)
    return profiler._profiler.ProfilerSession(options)


def _version() -> tuple[int, ...]:
    """Of JAX: the first two numbers."""
    return tuple(int(part) for part in sys.modules["jax.version"].__version__.split(".")[:2])


def ready(current: Session, steps: int, seconds: float) -> bool:
    """Has the session seen enough? Fast steps are averaged over more of them."""
    if current.by_program:
        return current.ended
    took = time.monotonic() - current.began
    if _session is not current:
        return True  # it made way
    if current.looking:
        if took >= _FIRST_LOOK and not _look_longer(current, took):
            return True
        current.steps_before = steps
        return False
    current.steps = steps - current.steps_before
    if took > current.longest or process.resident() > current.most_memory:
        current.cut = True
        return True
    if current.steps >= STEPS and took > SHORTEST:
        return True
    return current.requested and took > _ENOUGH and current.steps >= 2


def _look_longer(current: Session, took: float) -> bool:
    """After the first look: begin the session that counts, for as long as what it records does not become too much."""
    seen = end_session(current)
    if not seen:
        return False
    room = REQUESTED_BYTES if current.requested else _MAX_BYTES
    current.longest = max(_FIRST_LOOK, room * took / len(seen))
    current.most_memory = process.most_resident() + GROWTH
    reason = open_session(current)
    if reason:
        current.reason = reason
        return False
    current.looking = False
    return True


def programs() -> bytes:
    """The HLO of all programs, which XLA's own tools read behind a trace; empty where there is none, or too much."""
    if _version() < _CONSTANTS_OUTSIDE or _memory_is_short():
        return b""
    made = Programs(requested=True)
    body = None if open_session(made) else end_session(made)
    if not body or len(body) > _PROGRAMS_BYTES:
        return b""
    try:
        return b"".join(_planes(body, _OF_PROGRAMS))
    except IndexError:
        return b""  # another version writes it in another way: the trace goes without it


def _planes(body: bytes, name: bytes) -> Iterator[bytes]:
    """Those of an XSpace that begin so, each as it is written there: key, size and content."""
    at = 0
    while at < len(body):
        size, shift, content = 0, 0, at + 1
        while True:
            size |= (body[content] & 0x7F) << shift
            shift += 7
            content += 1
            if body[content - 1] < 0x80:
                break
        if body[at] == _PLANE and body.startswith(name, content):
            yield body[at : content + size]
        at = content + size


def abandon(current: Session) -> None:
    """End the session without a result."""
    current.give_up()


def finish(current: Session, path: str) -> bool:
    """End the session and write it to `path`; False if there is nothing, or it has been ended before."""
    body = current.take()
    if not body:
        return False
    if len(body) > (_REQUESTED_MAX_BYTES if current.requested else _MAX_BYTES):
        current.reason = "TooLarge"
        return False
    with open(path, "wb") as file:
        file.write(body)
    return True


def mark(**about: int) -> None:
    """Have the trace say whose calls make the steps, and how many a call makes."""
    try:
        log: Any = sys.modules[__package__ + ".jax_steps"]._log
        track = log.dominant
        if track is not None and track.function and track.each and not track.joined and not track.opaque:
            profiler: Any = sys.modules["jax._src.profiler"]
            with profiler._profiler.TraceMe(MARK, function=track.function, steps=track.each, **about):
                pass
    except Exception:
        pass  # then the trace has no number of steps


def end_session(current: Session) -> bytes | None:
    """What the session has recorded; None if it has ended before, or failed."""
    with _lock:
        return _end_locked(current)


def session_of_process() -> Session | None:
    """That is recording."""
    return _session


def _end_locked(current: Session) -> bytes | None:
    global _session
    if current is not _session:
        return None
    _session = None
    try:
        body: bytes = current.profiler.stop()
    except Exception as error:
        if "nother profil" in str(error):
            current.reason = "ProgramProfiles"  # the program has begun a session below jax.profiler
        return None
    return body
