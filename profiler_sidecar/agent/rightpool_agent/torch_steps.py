"""Sees the steps of a PyTorch program, and the samples that they consume.

A step is an optimizer step (gradient accumulation makes one of several passes). Optimizers that take turns, as in a
GAN or with one per layer, make one step together: a new one begins when one of them comes again. A step that lies in
a CUDA graph is made when that is replayed. Where no optimizer of PyTorch's steps, one of another library's or none at
all, a step is a change of a parameter between two backward passes, and if no change can be seen, the pass itself.

Samples are the rows of the batches taken from the data loader, else the rows that the module is called with. What
can't be told stays unknown. Work is queued on the device, so intervals between steps are right on average and nothing
is synchronised.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import weakref
from typing import Any

from . import reporter, saves, torch_flops, torch_graphs, torch_loader, torch_roots, torch_trace, torch_traits
from .steps import StepLog, Track

_MAX_OPTIMIZERS = 4096
_MAX_NODES = 4096
_MAX_GONE = 64
_BLOCK = 3  # steps of one optimizer alone: another one then begins, and does not join
_PASSES = 3  # backward passes without an optimizer until they are taken for steps

_log: StepLog | None = None
_track = Track(1.0, False)
_optimizers: dict[int, Optimizer] = {}
_gone: list[Optimizer] = []  # those whose optimizer was made in a function that has ended
_split = False  # is a parameter split over chips that are given the same rows?
_depth: list[int] = []  # frames of optimizer steps that are being made
_round: set[int] = set()  # optimizers that have made the present step together
_run = 0  # how many steps the one optimizer of the round has made alone
_joined: int | None = None  # the optimizer that came last, after a block of another
_first_wait: float | None = None
_waited_at_step = 0.0
_loader_rows = 0
_loader_steps = 0  # steps with rows of the loader
_loader_missed = False
_passes: list[float] = []  # moments of backward passes, until an optimizer is seen
_changes: list[float] = []  # those before which the parameter had changed
_leaf: Any = None  # weak reference to a parameter
_version = 0
_backward_passes = 0  # since the last step
_thread_started = False
_rank: dict[str, int] = {}
hooked = False  # has an optimizer's step been seen?
platform: str | None = None


class Optimizer:
    """One optimizer, and the modules that it trains."""

    def __init__(self, optimizer: Any) -> None:
        self.chain: list[int] | None = None
        self.taken: dict[int, int] = {}  # id(module) → calls of it that are counted
        self.steps = 0
        self.rows = 0
        self.known = True  # has each step had a number of rows?
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.device = parameters[0].device.type if parameters else None
        self.split = any(_is_split(one) for one in parameters)
        self.chain = torch_roots.chain(parameters)


def install(module: Any) -> None:
    """Called right after the program has imported torch, again if it reloads it."""
    global _log
    saves.install_torch(module)
    if _log is not None:
        return
    _log = reporter.step_log("torch", settle)
    optimizer: Any = sys.modules["torch.optim.optimizer"]
    optimizer.register_optimizer_step_post_hook(_after_step)
    for place in (
        lambda: optimizer.register_optimizer_step_pre_hook(_before_step),
        lambda: torch_loader.install(sys.modules["torch.utils.data.dataloader"]),
        lambda: torch_roots.install(module),
        lambda: _wrap_backward(sys.modules["torch.autograd"]),
        torch_traits.install,
        torch_trace.install,
        lambda: torch_graphs.install(sys.modules["torch.cuda.graphs"], lambda one: _after_step(one, (), {})),
        lambda: sys.modules["torch.cuda"]._lazy_call(_meet_device),
    ):
        try:
            place()
        except (AttributeError, KeyError):
            pass  # a PyTorch that has it elsewhere
    os.register_at_fork(after_in_child=_begin_anew)


def _begin_anew() -> None:
    """In a forked child: its optimizers are met again, and what its parent has done is not its own."""
    global _first_wait, _run, _joined, _loader_rows, _loader_steps, _loader_missed, _backward_passes, hooked
    global _thread_started, _leaf, _split
    _optimizers.clear()
    _gone.clear()
    _round.clear()
    _depth.clear()
    _passes.clear()
    _changes.clear()
    _rank.clear()
    _first_wait = _joined = _leaf = None
    _run = _loader_rows = _loader_steps = _backward_passes = 0
    _loader_missed = hooked = _thread_started = _split = False
    torch_flops.forget()
    torch_loader.forget()
    torch_roots.forget()


def _meet_device() -> None:
    """The program has begun to use a GPU: it is read from now on, whether it makes steps or not."""
    global platform
    try:
        platform = "cuda"
        reporter.start()
    except Exception:
        pass


def details(log: StepLog) -> dict[str, Any]:
    """What a report says beside the counters of steps."""
    found: dict[str, Any] = {"input_seconds": _waited_at_step - (_first_wait or 0.0)}
    samples = _samples(log)
    if samples is not None:
        found["samples"] = samples
    if platform:
        found["platform"] = platform
    if not hooked and log.steps:
        found["derived"] = True
    _look_for_rank()
    found.update(_rank)
    return found


def _look_for_rank() -> None:
    """The rank that the program has told PyTorch. It stays when the group is left, before the program ends."""
    try:
        distributed: Any = sys.modules["torch.distributed"]
        if distributed.is_available() and distributed.is_initialized():
            _rank.update(rank=int(distributed.get_rank()), world=int(distributed.get_world_size()))
    except Exception:
        pass


def _samples(log: StepLog) -> int | None:
    """Samples of all steps so far, if each of them is known."""
    if _split:
        return None
    loader_steps = 0 if torch_loader.repeats else _loader_steps
    if loader_steps and 2 * loader_steps >= log.steps:
        return None if _loader_missed else _loader_rows
    met = [*list(_optimizers.values()), *_gone]
    totals = {one.rows for one in met if one.known and one.steps >= log.steps > 0}
    return totals.pop() if len(totals) == 1 and not loader_steps else None


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    """Some optimizers step others: the outermost one counts."""
    try:
        frame = sys._getframe(1)
        if _depth:
            alive = set()
            at: Any = frame.f_back
            while at is not None:
                alive.add(id(at))
                at = at.f_back
            _depth[:] = [one for one in _depth if one in alive]  # the others have ended by an exception
        _depth.append(id(frame))
    except Exception:
        pass


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    global _waited_at_step, _first_wait, hooked, _loader_rows, _loader_steps, _loader_missed, _backward_passes
    try:
        now = time.perf_counter()
        if _depth:
            _depth.pop()
            if _depth:
                return
        if torch_graphs.newest is not None and torch_graphs.captures(optimizer):
            return
        hooked = True
        known = _optimizers.get(id(optimizer))
        if known is None:
            known = _meet(optimizer)
            if known is None:
                return
        if torch_loader.used or torch_roots.forwards:
            rows = torch_loader.consumed(torch_roots.forwards > 0)
            torch_roots.forwards = 0
            if rows is None:
                _loader_missed = True
                _loader_steps += 1
            elif rows:
                _loader_rows += rows
                _loader_steps += 1
        _take_calls(known)
        _backward_passes = 0
        _waited_at_step = torch_loader.waited
        if _first_wait is None:
            _first_wait = torch_loader.waited  # the first batch, with the start of the workers, is in no interval
        steps = _turn(id(optimizer))
        if steps and _log is not None:
            _log.add(_track, now, 0, steps)
            torch_flops.count += steps
            if torch_flops.count >= torch_flops.due:
                torch_flops.turn()
        wanted = torch_trace.session
        if wanted is not None:
            torch_trace.on_step(wanted)
    except Exception:
        pass


def _turn(key: int) -> int:
    """How many steps have become complete or begun by a step of this optimizer."""
    global _run, _joined
    if key not in _round:
        _joined = key if len(_round) == 1 and _run >= _BLOCK else None
        _round.add(key)
        if len(_round) == 1:
            _run = 1
            return 1
        return 0
    found = 2 if _joined == key else 1  # it came after a block of another, and has begun one of its own
    _run = _run + 1 if len(_round) == 1 else 1
    _joined = None
    _round.clear()
    _round.add(key)
    return found


def _take_calls(known: Optimizer) -> None:
    """The rows that the optimizer's modules were called with since its last step."""
    known.steps += 1
    rows: int | None = None
    for key in known.chain or ():
        root = torch_roots.watched(key)
        if root is None:
            continue
        new = root.total - known.taken.get(key, 0)
        known.taken[key] = root.total
        if not new:
            continue
        found = [one for one, _ in root.calls[-new:]]
        if rows is not None or None in found or len(found) < new:
            known.known = False  # several modules were called with something
        elif new == 1:
            rows = found[0]
        elif new == _backward_passes and len(_optimizers) == 1:
            rows = sum(found)  # gradients of several passes
        else:
            known.known = False
    if rows is None:
        known.known = False
    else:
        known.rows += rows


def _meet(optimizer: Any) -> Optimizer | None:
    global platform, _split
    if len(_optimizers) >= _MAX_OPTIMIZERS:
        return None
    known = Optimizer(optimizer)
    _split = _split or known.split
    weakref.finalize(optimizer, _leave, id(optimizer)).atexit = False
    _optimizers[id(optimizer)] = known
    platform = known.device or platform
    _look_for_rank()
    reporter.start()
    return known


def _leave(key: int) -> None:
    """The optimizer with this id is no more. What it has done counts until the program ends."""
    known = _optimizers.pop(key, None)
    if known is not None and len(_gone) < _MAX_GONE:
        _gone.append(known)


def _is_split(parameter: Any) -> bool:
    """Whether it is a DTensor of tensor parallelism. Of fully sharded data parallelism, each is split by its rows."""
    mesh = getattr(parameter, "device_mesh", None)
    if mesh is None:
        return False
    names = getattr(mesh, "mesh_dim_names", None) or ()
    return "tp" in names or any(getattr(one, "dim", 0) for one in parameter.placements)


def _wrap_backward(autograd: Any) -> None:
    original = autograd.backward

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        try:
            if not hooked and not _depth:  # an optimizer that makes several passes in its first step
                _look_for_change(args, kwargs)
            if torch_flops.looking:
                torch_flops.look(args, kwargs)
        except Exception:
            pass
        torch_roots.in_backward += 1
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        finally:
            torch_roots.in_backward -= 1
            _passed()

    backward._torchdynamo_disable = True  # type: ignore[attr-defined]
    autograd.backward = backward
    module: Any = sys.modules["torch"]
    if getattr(module.autograd, "backward", None) is not backward:
        module.autograd.backward = backward


def _passed() -> None:
    global _backward_passes
    _backward_passes += 1
    torch_loader.passed()


def _look_for_change(args: Any, kwargs: Any) -> None:
    """Before a backward pass of a program whose optimizer has not been seen: has a parameter changed since the last?"""
    global _leaf, _version, _thread_started, platform
    now = time.perf_counter()
    leaf = None if _leaf is None else _leaf()
    if leaf is None:
        leaf = _find_parameter(args[0] if args else kwargs.get("tensors"))
        if leaf is None:
            return
        known = _leaf is not None
        _leaf = weakref.ref(leaf)
        if known:  # another one has taken its place
            _changed(now)
    elif leaf._version != _version:
        _changed(now)
    _version = leaf._version
    _passes.append(now)
    del _passes[:-_MAX_NODES]
    if len(_passes) >= _PASSES and not _thread_started:
        _thread_started = True
        platform = platform or leaf.device.type
        reporter.start()


def _changed(now: float) -> None:
    _changes.append(now)


def settle(final: bool) -> None:
    """Called by the agent's thread: what no optimizer has accounted for becomes steps."""
    global _version
    if _log is None or not _passes or (hooked and not _track.settled):
        return
    leaf = None if _leaf is None else _leaf()
    if final and not hooked and leaf is not None and leaf._version != _version:
        _version = leaf._version
        _changed(time.perf_counter())
    if len(_changes) >= _PASSES or (final and _changes):  # also those before an optimizer took over
        moments, done = list(_changes), _track.settled
    elif not hooked and not _changes and not torch_roots.optimizers and (final or len(_passes) > 2 * _PASSES):
        moments, done = list(_passes), _track.settled
    else:
        return
    for moment in moments[done:]:
        _log.add(_track, moment, 0)
    _track.settled = len(moments)


def _find_parameter(tensors: Any) -> Any:
    """A parameter that the gradient goes to."""
    found: Any = None
    left = [one.grad_fn for one in (tensors if isinstance(tensors, (list, tuple)) else [tensors])]
    kind = sys.modules["torch.nn.parameter"].Parameter
    for _ in range(_MAX_NODES):
        if not left:
            break
        node = left.pop()
        if node is None:
            continue
        variable = getattr(node, "variable", None)
        if variable is not None:
            if isinstance(variable, kind):
                return variable
            found = variable if found is None else found
        left += [one for one, _ in node.next_functions]
    return found


for _hook in (_after_step, _before_step):
    _hook._torchdynamo_disable = True  # type: ignore[attr-defined]  # not to be compiled into the program's graph
