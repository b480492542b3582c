"""Sees the steps of a PyTorch program, and the samples that they consume.

A step is an optimizer step (gradient accumulation makes one of several passes). Optimizers that take turns, as in a
GAN or with one per layer, make one step together: a new one begins when the first of them comes again. A step that
lies in a CUDA graph is made when that is replayed. Where no optimizer of PyTorch's steps, one of another library's or
none at all, steps are derived from backward passes (`torch_passes`).

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
from _thread import get_ident
from typing import Any

from . import (
    inputs,
    reporter,
    saves,
    torch_flops,
    torch_graphs,
    torch_loader,
    torch_passes,
    torch_pipeline,
    torch_roots,
    torch_trace,
    torch_traits,
    torch_turns,
)
from .steps import StepLog, Track

_MAX_OPTIMIZERS = 4096
_MAX_GONE = 64
_VIEWS = 4  # rows of one sample at most, such as two views, a triplet, or the channels of a picture
_FULL = 0.9  # of the largest batch: that much have all on average, with the last ones

_log: StepLog | None = None
_track = Track(1.0, False)
_optimizers: dict[int, Optimizer] = {}
_gone: list[Optimizer] = []  # those whose optimizer was made in a function that has ended
_split = False  # is a parameter split over chips that are given the same rows?
_depth: list[int] = []  # frames of optimizer steps that are being made
_turns = torch_turns.Turns()
_inputs = inputs.Account()
_loader_rows = 0
_loader_steps = 0  # steps with rows of the loader
_loader_missed = False
_passes = torch_passes.Passes()  # until an optimizer is seen
_backward_passes = 0  # so far
_passes_before = 0  # the last step
_in_a_row = 0  # of them without a step of any optimizer, the last time that there were some
_thread_started = False
_rank: dict[str, int] = {}
hooked = False  # has an optimizer's step been seen?
platform: str | None = None


class Optimizer:
    """One optimizer, and the modules that it trains."""

    def __init__(self, optimizer: Any) -> None:
        self.taken: dict[torch_roots.Root, int] = {}  # calls of it that are counted
        self.steps = 0
        self.rows = 0
        self.most = 0  # of them in a step
        self.known = True  # has each step had a number of rows?
        self.passes = 0  # backward passes before its last step
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.device = parameters[0].device.type if parameters else None
        self.split = any(_is_split(one) for one in parameters)
        self.roots = torch_roots.roots(parameters)
        self.parts = torch_roots.parts(parameters)


def install(module: Any) -> None:
    """Called right after the program has imported torch, again if it reloads it."""
    global _log
    saves.install_torch(module)
    inputs.install()
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
    global _inputs, _loader_rows, _loader_steps, _loader_missed, _backward_passes, hooked
    global _thread_started, _passes, _split, _turns, _passes_before, _in_a_row
    _optimizers.clear()
    _gone.clear()
    _depth.clear()
    _rank.clear()
    _passes, _turns = torch_passes.Passes(), torch_turns.Turns()
    _inputs = inputs.Account()
    _loader_rows = _loader_steps = _backward_passes = _passes_before = _in_a_row = 0
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
    found: dict[str, Any] = dict(_inputs.facts(log.steps, hooked))
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
    if torch_pipeline.takes_over():
        return 0
    if _split:
        return None
    derived = _passes.samples if _passes.settled else 0
    if derived is None or not hooked:
        return derived or None
    loader_steps = 0 if torch_loader.repeats else _loader_steps
    met = [*list(_optimizers.values()), *_gone]
    alike = [one for one in met if one.known and one.steps >= log.steps > 0]
    totals = {one.rows for one in alike}
    if loader_steps and 2 * loader_steps >= log.steps:
        if _loader_missed or torch_loader.undecided or (torch_loader.too_many() and _loader_rows not in totals):
            return None
        if _loader_rows == loader_steps and any(map(_takes_batches, alike)):
            return None  # each item of the data set may be a batch
        return derived + _loader_rows
    return totals.pop() if len(totals) == 1 and not loader_steps else None


def _takes_batches(known: Optimizer) -> bool:
    """Whether its modules are called with as many rows in nearly each step. A bag of parts has more or less of them."""
    return known.rows > _VIEWS * known.steps and known.rows >= _FULL * known.most * known.steps


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
    global hooked, _passes_before, _in_a_row
    try:
        now = time.perf_counter()
        if _depth:
            _depth.pop()
            if _depth:
                return
        if torch_graphs.newest is not None and torch_graphs.captures(optimizer):
            return
        if not hooked:
            hooked = True
            _take_over()
        known = _optimizers.get(id(optimizer))
        if known is None:
            known = _meet(optimizer)
            if known is None:
                return
        fresh = torch_loader.used
        if fresh or torch_roots.forwards:
            _take_rows()
        _in_a_row = _backward_passes - _passes_before or _in_a_row
        _passes_before = _backward_passes
        repeats = _take_calls(known) and not fresh
        saves.thread = get_ident()
        if saves.since is not None:
            saves.stepped()
        _inputs.step()
        steps = _turns.take(id(optimizer), repeats)
        if steps:
            _count(now, steps)
        wanted = torch_trace.session
        if wanted is not None:
            torch_trace.on_step(wanted)
    except Exception:
        pass


def _count(now: float, steps: int) -> None:
    if _log is not None:
        _log.add(_track, now, 0, steps)
        torch_flops.count += steps
        if torch_flops.count >= torch_flops.due:
            torch_flops.turn()


def _take_rows() -> None:
    """The rows of the loader's batches since the last step."""
    global _loader_rows, _loader_steps, _loader_missed
    rows = torch_loader.consumed(torch_roots.forwards > 0)
    torch_roots.forwards = 0
    if rows is None:
        _loader_missed = True
        _loader_steps += 1
    elif rows:
        _loader_rows += rows
        _loader_steps += 1


def _take_over() -> None:
    """The first step of an optimizer that was made after the gradients has the batch of these."""
    global _loader_rows, _loader_steps, _loader_missed
    used, rows = _passes.handed_over()
    if used:
        torch_loader.used = True
        _loader_missed = _loader_missed or rows is None
        _loader_rows += rows or 0
        _loader_steps += 1


def _take_calls(known: Optimizer) -> bool:
    """The rows that the optimizer's modules were called with since its last step. Whether it was the same batch."""
    known.steps += 1
    passes, known.passes = _backward_passes - known.passes, _backward_passes
    rows: int | None = None
    fresh = again = False
    for root in known.roots:
        new = root.total - known.taken.get(root, 0)
        known.taken[root] = root.total
        again, root.again = again or root.again, False
        if not new:
            continue
        fresh = True
        if known.steps == 1 and passes:
            new = min(new, passes)  # before the first step some look at the shapes; who computes twice does it again
        found = [one for one, _ in root.calls[-new:]]
        if rows is not None or None in found or len(found) < new:
            known.known = False  # several modules were called with something
        elif new == 1:
            rows = found[0]
        elif new == passes == _in_a_row and all(root in other.roots for other in _optimizers.values()):
            rows = sum(found)  # gradients of several passes, of a module that all optimizers train
        else:
            known.known = False
    if not fresh and not again:
        rows = _take_parts(known, passes)
    if rows is None:
        known.known = False
    else:
        known.rows += rows
        known.most = max(known.most, rows)
    return again and not fresh


def _take_parts(known: Optimizer, passes: int) -> int | None:
    """The same of the parts of a module that is not called itself: those that were called must agree."""
    totals: set[int | None] = set()
    for root in known.parts:
        if root.module() is None:
            return None
        new = root.total - known.taken.get(root, 0)
        known.taken[root] = root.total
        again, root.again = root.again, False
        found = [one for one, _ in root.calls[-new:]] if new else []
        single = new == 1 or (new == passes == _in_a_row and len(_optimizers) == 1)
        if new and single and not again and len(found) == new and None not in found:
            totals.add(sum(one or 0 for one in found))
        elif new or again:
            totals.add(None)
    return totals.pop() if len(totals) == 1 else None


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
    _turns.leave(key)
    known = _optimizers.pop(key, None)
    if known is not None and len(_gone) < _MAX_GONE:
        known.roots, known.parts = [], []
        known.taken.clear()
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
                _pass_begins(args, kwargs)
            if torch_flops.looking:
                torch_flops.look(args, kwargs)
            if torch_trace.awaited is not None:
                torch_trace.passes()
        except Exception:
            pass
        torch_roots.in_backward += 1
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            torch_roots.failed()
            raise
        finally:
            torch_roots.in_backward -= 1
        _passed()
        return result

    backward._torchdynamo_disable = True  # type: ignore[attr-defined]
    autograd.backward = backward
    module: Any = sys.modules["torch"]
    if getattr(module.autograd, "backward", None) is not backward:
        module.autograd.backward = backward


def _passed() -> None:
    global _backward_passes
    _backward_passes += 1
    torch_loader.passed()


def _pass_begins(args: Any, kwargs: Any) -> None:
    """A backward pass of a program whose optimizer has not been seen."""
    global _thread_started, platform
    _passes.begins(args[0] if args else kwargs.get("tensors"), torch_roots.optimizers)
    if _passes.count >= torch_passes.ENOUGH and not _thread_started:
        _thread_started = True
        platform = platform or _passes.device
        reporter.start()


def settle(final: bool) -> None:
    """Called by the agent's thread: what no optimizer has accounted for becomes steps."""
    if _log is None:
        return
    for moment in _passes.take(final, hooked, torch_roots.optimizers):
        _log.add(_track, moment, 0)


for _hook in (_after_step, _before_step):
    _hook._torchdynamo_disable = True  # type: ignore[attr-defined]  # not to be compiled into the program's graph
