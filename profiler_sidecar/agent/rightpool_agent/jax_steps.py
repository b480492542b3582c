"""Sees the steps of a JAX program without touching its functions, in two ways that cover each other.

`jax.jit` calls a "post hook" after each execution of an already compiled function (`jax_hook`). It sees `@jit`,
`jit(f, donate_argnums=…)`, `pmap` and ahead-of-time compiled calls, is passed over while a function is traced, and
costs 0.2 µs. What it does not see, a function's first call and those with side effects (`jax.debug.print`,
callbacks), goes through a function of JAX's in Python, which is wrapped. If the hook is never called, the short cut
around that function is closed, and all calls take it.

Dispatch is asynchronous: a call returns before the device has finished. The interval between two returns is still
right on average, because the queue is short and the program waits for it.
"""

from __future__ import annotations

import sys
import time
import weakref
from typing import Any

from . import batch, inputs, jax_ahead, jax_handover, jax_hook, jax_loops, jax_traits, reporter
from .steps import StepLog, Track

_MAX_FUNCTIONS = 4096
_COMPILED = "/jax/core/compile/backend_compile_duration"
_MAPPED = ("jax._src.pmap", "jax._src.linear_util")  # modules of the functions that `pmap` makes
_ALONE = "jax._src.dispatch"  # module of the functions that run one operation outside of any compiled function
_PATIENCE = 10.0  # seconds from the third compiled function on in which the hook must have been called
_FUNCTIONS = 3
_SAME_FLOPS = 0.01  # by which two forms of a function may differ for each row

# id(function) → (whose step a call is, where its batch is, steps of one call). `None` marks functions that are no step:
# JAX's own operations. Compiled functions and those that they are made of are both keys.
_known: dict[int, Any] = {}
_turns: dict[int, jax_loops.Turns] = {}  # id(function that was traced) → what one call does
_alone: dict[
    float, Track
] = {}  # bytes of state → training loops that no compiled function holds: each may be made anew
_log: StepLog | None = None
_inputs = inputs.Account()
_place: jax_hook.Place | None = None
_called = False  # has the post hook ever been?
_shortcuts = 0  # functions of the program that JAX calls without Python from now on
_shortcut_at = 0.0
_closed = False  # whether that is prevented
state = "ok"  # of the self-test; else what failed
platform: str | None = None  # where the dominant work runs: cpu, gpu, tpu
between: Any = None  # told of each call, with whose step it is, while a trace is wanted that the program's thread takes


def install(module: Any = None) -> None:
    """Called right after the program has imported jax, again if it reloads it."""
    global _log, _place, state
    inputs.install()
    if _log is not None:
        return
    _log = reporter.step_log("jax", rearm)
    jax_traits.install(_log)
    _place = jax_hook.Place(_hook)
    kept = slow = False
    try:
        kept = _place.install()
    except Exception:
        pass
    try:
        slow = _watch_python_path()
    except Exception:
        pass
    try:
        jax_ahead.install(_note)
    except Exception:
        pass
    if not kept:
        state = "closed" if slow else "blind"
        if slow:
            _close()
    elif not slow:
        state = "compiled only"
    _watch_compilations()
    from . import jax_trace

    jax_trace.install()


def details(log: StepLog) -> dict[str, Any]:
    """What a report says beside the counters of steps."""
    found: dict[str, Any] = dict(_inputs.facts(log.steps, False))
    if log.has_samples:
        found["samples"] = log.samples
    if platform:
        found["platform"] = platform
    if state != "ok":
        found["hooks"] = state
    distributed = sys.modules.get("jax._src.distributed")
    try:
        world: Any = distributed.global_state  # type: ignore[union-attr]
        if world.num_processes and world.num_processes > 1:
            found["rank"], found["world"] = int(world.process_id), int(world.num_processes)
    except Exception:
        pass
    return found


def rearm(final: bool = False) -> None:
    """Once a second: renew the hook, and see whether it is called at all."""
    global state
    try:
        if _place is not None and not _closed:
            _place.renew()
    except Exception:
        pass
    if not _called and not _closed and _shortcuts >= _FUNCTIONS and time.perf_counter() - _shortcut_at > _PATIENCE:
        state = "closed"
        _close()


def _close() -> None:
    """Have JAX call Python at each execution, which costs a program some 50 µs a call."""
    global _closed
    _closed = True
    try:
        sys.modules["jax._src.lib"].xla_client._xla.PjitFunctionCache.clear_all()
    except Exception:
        try:
            sys.modules["jax._src.pjit"]._jax.PjitFunctionCache.clear_all()
        except Exception:
            pass


def _hook(following: Any) -> Any:
    known = _known
    assert _log is not None
    append = _log.append
    clock = time.perf_counter

    def after_call(function: Any, args: Any, kwargs: Any, output: Any) -> None:
        try:
            now = clock()
            entry = known.get(id(function), 0)
            if entry == 0:
                entry = _meet(function, args, kwargs, output)
            if entry is not None:
                append((entry[0], now, entry[1](args, kwargs), entry[2]))
                if entry[0].probes:
                    jax_handover.look(entry[0], args, kwargs, output)
            if between is not None:
                between(None if entry is None else entry[0])
        except Exception:
            pass
        if following is not None:
            try:
                following(function, args, kwargs, output)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise

    after_call._rightpool = True  # type: ignore[attr-defined]
    return after_call


def _meet(function: Any, args: Any, kwargs: Any, output: Any) -> Any:
    """A compiled function's first call by the hook."""
    global _called
    _called = True
    raw = getattr(function, "_fun", None)
    if raw is not None and id(raw) in _known:
        entry = _known[id(raw)]
        _keep(function, entry)
        return entry
    entry = _learn(function if raw is None else raw, args, kwargs, output, function)
    if entry is not None and "PmapFunction" in type(function).__name__ and _log is not None:
        # Until JAX 0.7 the first call of such a function comes by nowhere. When it was is not known.
        now = time.perf_counter()
        _log.append((entry[0], now, entry[1](args, kwargs), entry[2]))
        _log.interruptions.append(now + 1e-9)
    return entry


def _learn(function: Any, args: Any, kwargs: Any, output: Any, compiled: Any = None) -> Any:
    """A function seen for the first time: is it a candidate, and where is its batch?"""
    global platform
    entry: Any = None
    if len(_known) >= _MAX_FUNCTIONS:
        return None
    try:
        module = str(getattr(function, "__module__", None))
        mapped = module in _MAPPED or "PmapFunction" in type(compiled).__name__
        alone = module == _ALONE and id(function) in _turns
        if mapped or alone or not _is_jax(module):
            layout = batch.study(sys.modules["jax"].tree_util, args, kwargs, output, mapped)
            turns = _turns.get(id(function), jax_loops.ONCE)
            rows, steps = layout.rows, turns.steps
            if layout.batch is not None and _goes_along(turns.scanned, layout.batch.shape, mapped):
                rows = batch.none  # micro-batches, or moments in time
            if turns.loops and not layout.trains:
                steps = None  # what its loops do is not known
            if steps != 1:
                constant = turns.rows
                rows = batch.none if constant is None else (lambda args, kwargs: constant or 0)
            if alone and not (layout.trains and steps and steps > 1):
                _keep(function, None)
                return None
            # Outside of compiled functions a loop along data may be one over time, as in the first call of a recurrent
            # network: what it carries has to come in again to be parameters.
            doubtful = alone and any(len(shape) > 1 for shape in turns.scanned)
            # Without a product it may be a helper of a step that is not compiled, such as Adam's bias correction.
            doubtful = doubtful or (steps == 1 and turns.flops == 0.0)
            changed = max(0.0, layout.state - turns.handed_on)
            trains = layout.trains and (changed > 0.0 or not turns.handed_on)
            track = Track(layout.weight - turns.others, rows is not batch.none, trains, opaque=steps is None)
            # An evaluation may hand parameters back, and with them statistics that it has changed.
            track.keeps = turns.handed_on > changed and turns.parameters is None
            if alone:
                track = _alone.setdefault(layout.state, track)
                track.has_rows = track.has_rows and rows is not batch.none
            track.doubtful = track.doubtful or doubtful
            track.recurs = track.recurs or (steps != 1 and trains and not doubtful)
            track.function, track.each = str(getattr(function, "__name__", ""))[:80], steps or 0
            track.products, track.parameters = turns.products, None if mapped else turns.parameters
            track.flops, track.flops_rows = _flops(turns, output), rows(args, kwargs)
            track.probes, track.state, track.loops = jax_handover.PROBES, changed, turns.trains and trains
            track.constant, track.alike = _reference(layout.batch), layout.alike
            if track.loops:
                jax_handover.again([one[0] for one in list(_known.values()) if one is not None])
            entry = track, rows, steps or 0
            platform = layout.platform or platform
            reporter.start()
        _keep(function, entry)
        if compiled is not None and compiled is not function:
            _keep(compiled, entry)
    except Exception:
        return None
    return entry


def _goes_along(scanned: frozenset[Any], shape: Any, mapped: bool) -> bool:
    """Whether loops go along the first dimension of the batch, or of what has as many: rewards for each observation."""
    return tuple(shape) in scanned or (not mapped and any(one[:1] == tuple(shape[:1]) for one in scanned))


def _compiled_anew(track: Track, turns: jax_loops.Turns, rows: int, output: Any) -> None:
    """The function has another form by now, such as for the last batch. Which one a call runs the hook doesn't see, so
    that FLOPs are known only where each does the same for a row; those of the largest batch count."""
    flops, known, most = _flops(turns, output), track.flops, track.flops_rows
    track.products = turns.products
    if turns.parameters != track.parameters:
        track.parameters = None
    if flops is None or known is None:
        track.flops = None
        return
    alike = rows > 0 and most > 0
    expected = known * rows / most if alike else known
    if abs(flops - expected) > _SAME_FLOPS * expected:
        track.flops = None
    elif alike and rows > most:
        track.flops, track.flops_rows = flops, rows


def _flops(turns: jax_loops.Turns, output: Any) -> float | None:
    """FLOPs of a call on this process' devices: shapes are those of all that the call runs on."""
    if turns.flops is None:
        return None
    for leaf in sys.modules["jax"].tree_util.tree_leaves(output):
        if not getattr(leaf, "is_fully_addressable", True):
            share: float = len(leaf.sharding.addressable_devices) / len(leaf.sharding.device_set)
            return turns.flops * share
    return turns.flops


def _keep(key: Any, entry: Any) -> None:
    try:
        weakref.finalize(key, _forget, id(key)).atexit = False
    except TypeError:
        return  # nobody would say when it goes, and another one takes its id
    _known[id(key)] = entry


def _forget(key: int) -> None:
    _known.pop(key, None)
    _turns.pop(key, None)


def _watch_python_path() -> bool:
    """See the calls that JAX makes in Python, which carry the function's jaxpr with them."""
    pjit: Any = sys.modules["jax._src.pjit"]
    name = "_run_python_pjit" if hasattr(pjit, "_run_python_pjit") else "_python_pjit_helper"
    original = getattr(pjit, name)
    flat = name == "_python_pjit_helper"  # (fun, jit_info, *args, **kwargs), later (p, args_flat, fun, …, args, kwargs)
    shortcut = pjit._get_fastpath_data

    def call_in_python(*a: Any, **k: Any) -> Any:
        try:
            result = original(*a, **k)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        try:
            if flat:
                _note(a[0], a[2:], k, result)
            else:
                _note(a[2], a[-2], a[-1], result)
        except Exception:
            pass
        return result

    def shortcut_unless_closed(*a: Any, **k: Any) -> Any:
        return None if _closed else shortcut(*a, **k)

    setattr(pjit, name, call_in_python)
    pjit._get_fastpath_data = shortcut_unless_closed
    return True


def _note(function: Any, args: Any, kwargs: Any, result: Any, turns: Any = None) -> None:
    """A call in Python has returned. With tracers for results nothing was computed: it lies inside another function."""
    global _shortcuts, _shortcut_at
    now = time.perf_counter()
    tracer = sys.modules["jax"].core.Tracer
    if any(isinstance(leaf, tracer) for leaf in result[1]):
        return
    entry = _known.get(id(function), 0)
    if entry is None:
        return
    turns = _look_for_loops(function, result[4] if turns is None else turns)
    if entry == 0:
        entry = _learn(function, args, kwargs, result[0])
        if entry is not None:
            _shortcuts += 1
            _shortcut_at = now
    elif turns is not None:
        track, rows, steps = entry
        _compiled_anew(track, turns, rows(args, kwargs), result[0])
        if (turns.steps or 0) != steps and not (turns.loops and not track.trains):
            track.opaque, track.each = True, 0  # once so many steps a call, once so many: which, the hook doesn't see
    if entry is not None and _log is not None:
        _log.append((entry[0], now, entry[1](args, kwargs), entry[2]))
        if entry[0].probes:
            jax_handover.look(entry[0], args, kwargs, result[0])
        if between is not None:
            between(entry[0])


def _reference(leaf: Any) -> Any:
    try:
        return weakref.ref(leaf)
    except TypeError:
        return None


def _look_for_loops(function: Any, jaxpr: Any) -> Any:
    """What the function does in a call, if it is new in this form; None if it is no function of the program's."""
    module = str(getattr(function, "__module__", None))
    if _is_jax(module) and module not in _MAPPED and not (module == _ALONE and jax_loops.is_scan(jaxpr)):
        return None
    try:
        found = jaxpr if isinstance(jaxpr, jax_loops.Turns) else jax_loops.find(jaxpr)
    except Exception:
        found = jax_loops.UNKNOWN
    _turns[id(function)] = found
    return found


def _is_jax(module: str) -> bool:
    return module == "jax" or module.startswith("jax.")


def _uses_device() -> bool:
    try:
        return any(one.platform != "cpu" for one in sys.modules["jax._src.xla_bridge"]._backends.values())
    except Exception:
        return False


def _watch_compilations() -> None:
    assert _log is not None
    note = _log.interruptions.append
    clock = time.perf_counter

    def listen(event: str, duration: float, **_: Any) -> None:
        if event == _COMPILED:
            note(clock())
            try:
                _meet_device()
            except Exception:
                pass

    sys.modules["jax"].monitoring.register_event_duration_secs_listener(listen)


def _meet_device() -> None:
    """A program that has a chip is read from now on, whether its steps are seen or not."""
    global platform
    if platform is None and _uses_device():
        backends = sys.modules["jax._src.xla_bridge"]._backends.values()
        platform = next(one.platform for one in backends if one.platform != "cpu")
        reporter.start()
