"""Sees the steps of a PyTorch program: optimizer steps, batches of the data loader, and saves.

A step is an optimizer step (gradient accumulation makes one of several passes). Its samples are the rows that were
taken from the data loader since the step before; rows of another loader, an evaluation between two steps, are not.
A step that lies in a CUDA graph is made when that is replayed.
Work is queued on the device, so intervals between steps are right on average and nothing is synchronised.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from . import checkpoint, reporter, torch_graphs, torch_trace
from .steps import StepLog, Track

_log: StepLog | None = None
_tracks: dict[int, Track] = {}
_MAX_OPTIMIZERS = 64
_pending: dict[int, int] = {}  # rows taken from each loader's iterator since the last step
_waited = 0.0
_waited_at_step = 0.0
_first_wait: float | None = None
_current: int | None = None  # the iterator that was asked last
platform: str | None = None


def install() -> None:
    """Called once, right after the program has imported torch."""
    global _log
    _log = reporter.step_log("torch")
    optimizer: Any = sys.modules["torch.optim.optimizer"]
    optimizer.register_optimizer_step_post_hook(_after_step)
    _wrap_loader(sys.modules["torch.utils.data.dataloader"])
    _wrap_save(sys.modules["torch"])
    torch_trace.install()
    try:
        torch_graphs.install(sys.modules["torch.cuda.graphs"], lambda optimizer: _after_step(optimizer, (), {}))
    except (AttributeError, KeyError):
        pass  # a PyTorch that has them elsewhere: replays are not seen
    os.register_at_fork(after_in_child=_begin_anew)


def _begin_anew() -> None:
    """In a forked child: its optimizers are met again, and what its parent has waited for is not its own."""
    global _first_wait
    _tracks.clear()
    _first_wait = None


def input_seconds() -> float:
    """Seconds that steps have waited for their data, up to the last step."""
    return _waited_at_step - (_first_wait or 0.0)


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    global _waited_at_step, _first_wait
    try:
        now = time.perf_counter()
        if torch_graphs.newest is not None and torch_graphs.captures(optimizer):
            return
        track = _tracks.get(id(optimizer))
        if track is None:
            track = _meet(optimizer)
            if track is None:
                return
        rows = _pending.get(_current, 0) if _current is not None else 0
        _pending.clear()
        if rows:
            track.has_rows = True
        _waited_at_step = _waited
        if _first_wait is None:
            _first_wait = _waited  # the first batch, with the start of the workers, belongs to no interval
        if _log is not None:
            _log.add(track, now, rows)
        wanted = torch_trace.session
        if wanted is not None:
            torch_trace.on_step(wanted)
    except Exception:
        pass


def _meet(optimizer: Any) -> Track | None:
    global platform
    try:
        if len(_tracks) >= _MAX_OPTIMIZERS:
            return None
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if parameters:
            platform = parameters[0].device.type
        _tracks[id(optimizer)] = track = Track(float(sum(p.numel() for p in parameters)), False)
        reporter.start()
        return track
    except Exception:
        return None


def _wrap_loader(module: Any) -> None:
    iterator = module._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        global _waited, _current
        began = time.perf_counter()
        try:
            found = original(self)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        _waited += time.perf_counter() - began
        _current = key = id(self)
        _pending[key] = _pending.get(key, 0) + _rows(found)
        return found

    iterator.__next__ = __next__


def _rows(found: Any) -> int:
    """The first dimension of the first tensor in a batch; 0 if there is none."""
    try:
        for _ in range(4):
            shape = getattr(found, "shape", None)
            if shape is not None:
                return int(shape[0]) if len(shape) else 0
            if isinstance(found, (list, tuple)):
                found = found[0]
            elif isinstance(found, (dict, Mapping)):
                found = next(iter(found.values()))
            else:
                return 0
    except Exception:  # whatever a batch of the program's own making objects with
        pass
    return 0


def _wrap_save(module: Any) -> None:
    original = module.save

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        try:
            checkpoint.observed.append((time.time(), time.perf_counter() - began))
        except Exception:
            pass
        return result

    module.save = save


_after_step._torchdynamo_disable = True  # type: ignore[attr-defined]  # not to be compiled into the program's graph
