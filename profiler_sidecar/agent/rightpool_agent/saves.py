"""Sees the program save by `torch.save`, safetensors and orbax, and how long it stands still for that.

What follows a save belongs to it, such as the upload of what was saved to memory, until the program goes on: with a
batch of its loader or a forward pass. Where neither is seen, it is the save alone. Saves of other threads hold up
nothing.
"""

from __future__ import annotations

import functools
import io
import os
import sys
import time
import weakref
from _thread import get_ident
from typing import Any

from . import checkpoint

thread = get_ident()  # that makes the steps; the main one where that is not known
since: float | None = None  # when the save began that the program has not gone on from
_ended = 0.0  # when the last function of it returned, if none runs
_depth = 0  # of functions that save, in that thread
_seconds = 0.0  # of saves before
_seen = False

_writing: Any = weakref.WeakSet()  # checkpointers of orbax that write in the background


def install_torch(module: Any) -> None:
    """`module` is torch. Both names of the function stay one, by which it can be pickled."""
    _wrap(module, "save", _argument(1, "f"), _saved, follows=True)
    serialization: Any = sys.modules.get("torch.serialization")
    if serialization is not None and serialization.save is module.save.__wrapped__:
        serialization.save = module.save


def install_safetensors(module: Any) -> None:
    """`module` is safetensors.torch, .numpy or .flax. In it `save_model` calls `save_file`."""
    _wrap(module, "save_file", _argument(1, "filename"), _saved)


def install_orbax(module: Any) -> None:
    """`module` is orbax.checkpoint. A CheckpointManager saves by one of these checkpointers, and waits for it."""
    _wrap(module.Checkpointer, "save", _argument(1, "directory"), _saved)
    _wrap(module.AsyncCheckpointer, "save", _argument(0, "self"), _began)
    _wrap(module.AsyncCheckpointer, "wait_until_finished", _argument(0, "self"), _finished)


def install_orbax_v1(module: Any) -> None:
    """`module` is orbax.checkpoint.experimental.v1. Its Checkpointer saves by those of `orbax.checkpoint`."""
    for name in ("save", "save_checkpointables", "save_pytree"):  # which of them there are differs between versions
        if hasattr(module, name):
            _wrap(module, name, _argument(0, "path"), _saved)
        if hasattr(module, f"{name}_async"):
            _wrap(module, f"{name}_async", lambda args, kwargs, result: result, _promised)


def facts() -> dict[str, float]:
    """`saving_seconds` so far, with the save that is being made; nothing before the first one."""
    began = since
    return {"saving_seconds": _seconds + (0.0 if began is None else time.perf_counter() - began)} if _seen else {}


def go_on() -> None:
    """The program makes its next step: called where a save began before, by the thread that makes the steps."""
    _end(time.perf_counter())


def stepped() -> None:
    """A step has ended, and nothing was seen of how it began."""
    if not _depth:
        _end(_ended)


def _end(at: float) -> None:
    global since, _seconds
    if since is not None and not _depth:
        _seconds, since = _seconds + max(0.0, at - since), None


def _begin() -> bool:
    """Whether this save holds up the program."""
    global since, _depth, _seen
    if get_ident() != thread:
        return False
    _seen = True
    _depth += 1
    if since is None:
        since = time.perf_counter()
    return True


def _return(follows: bool) -> None:
    """follows: whether what comes next may belong to the save."""
    global _depth, _ended
    _depth -= 1
    _ended = time.perf_counter()
    if not follows:
        _end(_ended)


def _forget() -> None:
    """In a forked child, what its parent has saved is not its own."""
    global thread, since, _depth, _seconds, _seen
    thread, since, _depth, _seconds, _seen = get_ident(), None, 0, 0.0, False


os.register_at_fork(after_in_child=_forget)


def _argument(position: int, name: str) -> Any:
    """Finds this argument of a call."""

    def find(args: Any, kwargs: Any, result: Any) -> Any:
        return kwargs.get(name, args[position] if len(args) > position else None)

    return find


def _saved(target: Any, took: float) -> None:
    if isinstance(target, io.BytesIO):
        return  # a copy in memory
    path = os.path.abspath(target) if isinstance(target, (str, os.PathLike)) else None
    checkpoint.observed.append((time.time(), took, path))


def _began(checkpointer: Any, took: float) -> None:
    """It has copied the state, and writes it in the background."""
    _writing.add(checkpointer)


def _finished(checkpointer: Any, took: float) -> None:
    """What was written in the background is complete: an error would have been raised."""
    if checkpointer in _writing:
        _writing.discard(checkpointer)
        checkpoint.observed.append((time.time(), took, None))


def _promised(response: Any, took: float) -> None:
    """It is written in the background, and says when that is complete; of an error it says nothing here."""
    response.on_complete(lambda _: checkpoint.observed.append((time.time(), took, None)))


def _wrap(owner: Any, name: str, target: Any, then: Any, follows: bool = False) -> None:
    """Call `then(target(args, kwargs, result), seconds)` after each call that returns. follows: whether the program is
    seen to go on, so that what comes next belongs to the save."""
    original = getattr(owner, name)
    if getattr(original, "_rightpool", False):
        return

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        began = time.perf_counter()
        call = object()
        checkpoint.running.add(call)
        counted = _begin()
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            raise
        finally:
            checkpoint.running.discard(call)
            if counted:
                _return(follows)
        try:
            then(target(args, kwargs, result), time.perf_counter() - began)
        except Exception:
            pass
        return result

    save._rightpool = True  # type: ignore[attr-defined]
    setattr(owner, name, save)
