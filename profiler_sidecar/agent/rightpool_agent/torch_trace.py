"""A short Kineto trace of the GPU's work, taken between steps of the program.

PyTorch's profiler belongs to the thread that starts it, so the step hook starts and stops it; only kernels and copies
are recorded, nothing is synchronised, and no Python object is made of an event. A profiler of the program's own goes
first: none of ours starts beside it, and a running one of ours ends the moment the program wants its own.

CUPTI, once attached, slows every later kernel launch, by a fifth and more in a program that waits for its launches;
where Kineto was told to tear CUPTI down, no cost could be told from chance (tests/gpu/trace_overhead.py). So that is
asked for, only a job of several processes is traced, whose communication is worth it, and each process twice: one trace
alone accuses nobody.

A trace that a user asks for holds the operators of the host, too, with the shapes of what they take, and what memory is
allocated and freed, and is taken on a CPU as well. That slows some steps down, which is what was asked for. Memory is
left out where PyTorch can't be kept from warning of it on stderr.

PyTorch holds the interpreter's lock while it writes a result and while it frees one. So the agent's thread does either
while the program is inside a backward pass, which runs without that lock.
"""

from __future__ import annotations

import _thread
import functools
import os
import sys
import time
from typing import Any

from . import torch_log, torch_teardown

ENDING = ".kineto.json"
REQUESTED = ".requested.json"
_STEPS = 4
_ENOUGH = 0.06  # seconds after which a requested trace ends with the step: to end it takes some five times as long
_TEARDOWN_SINCE = (12, 6)  # CUDA: before, tearing CUPTI down could crash a program that uses CUDA graphs

_PASS_WITHIN = 1.0  # seconds: else the program makes no passes, or its steps are far longer than writing takes

_LAST_STEP = 1.0  # seconds for which the end of the program waits for a step of another thread to end a trace

_SAY_NOTHING = "99"  # above the level of errors, and of what is above them

# What PyTorch leaves out where it can: an object of C++ for each operation, which nobody here reads, and ids that tie a
# GPU's work to operations, which nothing uses on a CPU. Older versions know the second one alone, or none.
_LEAN: tuple[dict[str, bool], ...] = (
    {"trace_only": True, "disable_external_correlation": True},
    {"disable_external_correlation": True},
)

_left = 2  # traces of its own that this process still takes
_leaving = False  # the program ends: nothing is waited for

awaited: Any = None  # a lock that is held until the program begins a backward pass; None while nobody waits for one

session: Session | None = None  # read by the step hook at every step


class Session:
    """One trace: wanted by the agent's thread, taken by the program's."""

    def __init__(self, requested: bool = False) -> None:
        self.requested = requested
        self.reason = "NoSteps"  # why a requested trace has no result, once it has ended
        self.began = 0.0
        self.asked = self.took = (
            0.0  # seconds: when its thread began to begin it, and from then on until it had ended it
        )
        self.profiler: Any = None
        self.cuda = False
        self.thread = self.task = 0
        self.left = _STEPS
        self.made = 0  # steps that were traced
        self.result: Any = None
        self.stopping = False
        self.given_up = False  # by the agent's thread, which waits no longer
        self.ended = False  # last of all: from then on the agent's thread takes the result


def install() -> None:
    """Let the program's own profilers go first."""
    module: Any = sys.modules["torch.autograd.profiler"]
    for name in ("_prepare_profiler", "_enable_profiler"):
        _guard(module, name)
    os.register_at_fork(before=_end_now, after_in_child=_forget)


def _guard(module: Any, name: str) -> None:
    original = getattr(module, name)

    @functools.wraps(original)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        current = session
        if current is not None and current.thread == _thread.get_ident() and current.profiler not in (None, _starting):
            _stop(current)
            current.result = None
            current.reason = "ProgramProfiles"
        return original(*args, **kwargs)

    setattr(module, name, guarded)


_starting = object()


class _Alive:
    """Dies with the thread that begins a trace, which no other one can end."""

    def __del__(self) -> None:
        try:
            if session is not None and session.thread == _thread.get_ident():
                _end_now()
        except Exception:
            pass


_held = _thread._local()


def _forget() -> None:
    global session, awaited
    session = awaited = None
    torch_log.restore()
    torch_teardown.forget()


def begin() -> Session | None:
    """Ask for a trace of the next steps."""
    global session, _left
    if _left <= 0 or not _worth_it():
        return None
    module: Any = sys.modules["torch.autograd.profiler"]
    hooks: Any = sys.modules.get(__package__ + ".torch_steps")
    if session is not None or module._is_profiler_enabled or os.environ.get("KINETO_USE_DAEMON"):
        return None
    if hooks is None or hooks.platform != "cuda":
        return None  # on CPU the operations are the program's own, and tracing them would slow it down
    _left -= 1
    session = Session()
    return session


def begin_requested() -> Session | str:
    """Ask for a trace of the next steps that a user wants, or say in a word why there can be none."""
    global session
    module: Any = sys.modules["torch.autograd.profiler"]
    hooks: Any = sys.modules.get(__package__ + ".torch_steps")
    if session is not None:
        return "NoSteps"  # an earlier one waits for a step to end with
    if module._is_profiler_enabled or os.environ.get("KINETO_USE_DAEMON"):
        return "ProgramProfiles"
    if hooks is None or hooks.platform not in ("cpu", "cuda"):
        return "UnsupportedFramework"
    if hooks.platform == "cuda" and not _tears_down():
        return "UnsupportedVersion"
    session = Session(requested=True)
    return session


def _worth_it() -> bool:
    try:
        return _tears_down() and int(os.environ.get("WORLD_SIZE", "1")) > 1
    except ValueError:
        return False


def _tears_down() -> bool:
    """Whether CUPTI can be torn down after a trace."""
    try:
        version: Any = sys.modules["torch.version"]
        return tuple(int(part) for part in str(version.cuda).split(".")[:2]) >= _TEARDOWN_SINCE
    except (KeyError, ValueError):
        return False


def ready(current: Session, steps: int, seconds: float) -> bool:
    """Has the program's thread ended the trace?"""
    return current.ended


def finish(current: Session, path: str) -> bool:
    """Write the trace to `path`; False if there is none."""
    global session
    if not current.ended:
        if current.profiler is None:
            current.ended = True  # never started
            session = None
        else:
            current.given_up = True  # running: only its own thread can end it, at the next step
            current.left = 0
        return False
    session = None
    if current.result is None:
        return False
    try:
        _await_pass(current)
        current.result.save(path)
    finally:
        _await_pass(current)
        current.result = None
    if os.path.exists(path):
        return True
    current.reason = "NoSpace"
    try:
        os.unlink(path + ".tmp")  # Kineto's own, who found no room for it and does not say so
    except OSError:
        pass
    return False


def _await_pass(current: Session) -> None:
    """Until the program begins a backward pass, or does not for a while. Its own thread would wait for itself."""
    global awaited
    gate = _thread.allocate_lock()
    gate.acquire()
    awaited = gate
    if not _leaving and current.thread != _thread.get_ident():
        gate.acquire(timeout=_PASS_WITHIN)
    awaited = None


def passes() -> None:
    """Called by the program's thread right before it gives the interpreter's lock away, if `awaited`."""
    global awaited
    gate, awaited = awaited, None
    if gate is not None:
        try:
            gate.release()
        except RuntimeError:
            pass  # another thread's pass began at the same moment


def abandon(current: Session) -> None:
    """The program ends and makes no more steps."""
    global session
    session = None


def leave() -> None:
    """Called by the program's thread before the interpreter goes: a profiler must not outlive it."""
    global _leaving
    _leaving = True
    passes()
    _end_now()


def _end_now() -> None:
    """End a trace that is open: a process that exits within one, or a child that is forked within it, may never end."""
    current = session
    if current is not None and current.profiler not in (None, _starting):
        if current.thread == _thread.get_ident():
            _stop(current)
        elif os.path.exists(f"/proc/self/task/{current.task}"):  # it may be about to make a step
            late = time.monotonic() + _LAST_STEP * (current.left > 0)
            current.left = 0
            while not current.ended and time.monotonic() < late:
                time.sleep(0.001)
    torch_teardown.settle()


def on_step(current: Session) -> None:
    """Called by the step hook while a trace is wanted."""
    if current.ended or current.stopping:
        return
    module: Any = sys.modules["torch.autograd.profiler"]
    if current.profiler is None:
        if module._is_profiler_enabled:
            current.reason = "ProgramProfiles"
            current.ended = True
            return
        current.asked = time.monotonic()
        current.thread, current.task = _thread.get_ident(), _thread.get_native_id()
        current.profiler = _starting
        try:
            profiler = _profiler(module, current.requested)
            current.cuda = profiler.use_device == "cuda"
            _prepare_silently(profiler)
            profiler._start_trace()
            current.began = time.monotonic()
            current.profiler = profiler
            if not hasattr(_held, "alive"):
                _held.alive = _Alive()
        except Exception as error:
            torch_log.restore()
            known = isinstance(error, (AttributeError, TypeError))  # another version has it elsewhere
            current.reason = "UnsupportedVersion" if known else "CaptureFailed"
            current.ended = True
        return
    if current.thread != _thread.get_ident():
        return
    current.left -= 1
    current.made += 1
    if current.left <= 0 or (current.requested and time.monotonic() - current.began > _ENOUGH):
        if current.requested and current.cuda:
            sys.modules["torch"]._C._cuda_synchronize()  # of so few steps none may lack what the device has yet to do
        _stop(current)


def _profiler(module: Any, requested: bool) -> Any:
    hooks: Any = sys.modules.get(__package__ + ".torch_steps")
    cuda = not requested or hooks.platform == "cuda"
    return module.profile(
        use_device="cuda" if cuda else None,
        use_cpu=requested,
        record_shapes=requested,
        profile_memory=requested and torch_log.silence(),
        use_kineto=True,
        experimental_config=None if cuda else _lean(),
    )


def _lean() -> Any:
    """The setting that makes the end of a trace, and freeing it, cheaper; None where this version has none."""
    kind: Any = getattr(sys.modules.get("torch._C._profiler"), "_ExperimentalConfig", None)
    for known in _LEAN if kind is not None else ():
        try:
            return kind(**known)
        except TypeError:
            pass
    return None


def _prepare_silently(profiler: Any) -> None:
    """Kineto reads how much to say when it is first prepared; it would tell of our traces on the program's stderr."""
    speaks = "KINETO_LOG_LEVEL" in os.environ
    if not speaks:
        os.putenv("KINETO_LOG_LEVEL", _SAY_NOTHING)
    try:
        profiler._prepare_trace()
    finally:
        if not speaks:
            os.unsetenv("KINETO_LOG_LEVEL")


def _stop(current: Session) -> None:
    """Ending a trace takes a while: CUPTI hands its buffers over, and they are sorted."""
    global session
    if current.stopping:
        return
    current.stopping = True
    module: Any = sys.modules["torch.autograd.profiler"]
    try:
        module._run_on_profiler_stop()
        stop = module._disable_profiler
        current.result = torch_teardown.end(stop) if current.cuda else stop()
    except Exception:
        current.result = None
        current.reason = "CaptureFailed"
    torch_log.restore()
    current.took = time.monotonic() - current.asked
    current.ended = True
    if current.given_up:
        session = None
