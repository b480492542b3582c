"""The batches that a PyTorch program takes from its data loader.

How many samples a batch has is known from the indexes that the loader's sampler drew for it, whatever the batch looks
like. Where the data set is a stream there are none; then all arrays of a batch must agree, and either be of several
kinds or have as many rows as the loader has asked the stream for.

Which batches a step has consumed is another question: some loaders fetch one in advance, an evaluation has a loader of
its own, and a program may look at a batch and throw it away. Each iterator is a queue, and a step takes from the one
whose batch its forward pass was made with, as many batches as there were forward passes; and from others whose batches
have had a backward pass, as before a step that was left out. Where batches of several were drawn for one step, and it
can't be told which it was made with, its samples are not known. Nor are they where an iterator hands out more batches
than there are forward passes, in step after step, unless the module is called with as many rows: a program may put
several together, or throw some away.
"""

from __future__ import annotations

import collections
import functools
import sys
import weakref
from _thread import get_ident
from collections.abc import Mapping
from typing import Any

from . import inputs, saves
from .methods import call_after

_MAX_LEAVES = 64
_MAX_ENDED = 64
_MAX_KEPT = 4096  # batches of an iterator that nobody trains with
_FEW_STEPS = 3  # of an iterator that is no more: from so many on, what is left of it tells
_MANY_STEPS = 16  # of one that goes on: batches may be fetched in advance

current: Drawn | None = None  # from what the last batch came
used = False  # has any batch been drawn since the last step?
repeats = False  # has a batch been drawn again right after itself?
undecided = False  # has any iterator ended after one step, and nobody knows of how many batches that was made?
left_over = False  # was one of two batches or more of an iterator that has ended in no forward pass?
_iterators: dict[int, Drawn] = {}
_ended: list[Drawn] = []  # iterators that are no more, and of which the next step may take
_inside: set[int] = set()  # threads that wait for a batch: a loader may draw from another one


class Drawn:
    """One iterator over a loader."""

    def __init__(self, iterator: Any) -> None:
        self.drawn: collections.deque[int | None] = collections.deque()  # samples of batches on their way
        self.pending: collections.deque[int | None] = collections.deque(maxlen=_MAX_KEPT)  # handed out, not consumed
        self.newest: list[Any] = []  # the indexes that were drawn last
        self.uses = 0  # forward passes that train, since the last step
        self.passes = 0  # backward passes since then
        self.steps = 0  # made with its batches
        self.left = 0  # batches that the first of them was made with as well, unless they were fetched in advance
        self.over = False  # was it asked for more than it has, or is it no more?
        self.fresh = 0  # batches handed out since the last step, to be trained with as far as is seen
        self.trains = False  # was any handed out where gradients are computed?
        self.evaluates = False  # whether a forward pass since then has not trained
        self.indexed = getattr(iterator, "_dataset_kind", 0) == 0 and getattr(iterator, "_in_order", True) is not False
        self.collated = bool(getattr(iterator, "_auto_collation", True))
        self.asked = 0  # rows of a full batch of a stream; 0 where that is not known
        self.stacked = "torch.utils.data" in str(getattr(getattr(iterator, "_collate_fn", None), "__module__", ""))

    def used(self) -> int:
        """How many batches the step was made with. Where there were more forward passes than backward ones, a batch
        was read more than once, or the losses of several were added up: then as many more are handed out for each step,
        but for the first one, before which some may be fetched in advance."""
        batches, left, first = self.uses, self.left, self.steps == 0
        self.steps, self.left = self.steps + 1, 0
        if not 0 < self.passes < batches:
            return batches
        if first and not self.over:
            self.left = batches - self.passes
            return self.passes
        if self.over or not self.fresh:  # what was fetched before is all there is
            return batches + left
        return min(batches, max(self.passes, self.fresh)) + (left if self.fresh >= batches else 0)

    def has_too_many(self, least: int) -> bool:
        """Whether one batch or more is left for each step, of which there are at least so many."""
        return self.steps >= least and len(self.pending) >= min(self.steps, _MAX_KEPT // 2)

    def take(self, batches: int) -> int | None:
        """Samples of the oldest batches; None if one of them is not known."""
        rows: int | None = 0
        for _ in range(min(batches, len(self.pending))):
            found = self.pending.popleft()
            rows = None if rows is None or found is None else rows + found
        return rows


def install(module: Any) -> None:
    """`module` is torch.utils.data.dataloader."""
    iterator = module._BaseDataLoaderIter
    original = iterator.__next__
    if getattr(original, "_rightpool", False):
        return
    is_grad_enabled = sys.modules["torch"].is_grad_enabled

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        global current, used
        thread = get_ident()
        nested = thread in _inside
        if saves.since is not None and thread == saves.thread:
            saves.go_on()
        _inside.add(thread)
        began = inputs.begin()
        try:
            found = original(self)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # no frame of the agent in it
            if not nested and isinstance(error, StopIteration):
                _ran_out(id(self))
            raise
        finally:
            inputs.end(began)
            if not nested:
                _inside.discard(thread)
        if nested:
            return found
        try:
            record = _iterators.get(id(self)) or _meet(self)
            used = True
            trains = is_grad_enabled()
            record.trains = record.trains or trains
            if trains or current is None or not current.pending:
                current = record  # an evaluation leaves the batch that was fetched before it
            rows = record.drawn.popleft() if record.drawn else None
            record.pending.append(_look(found, record) if rows is None else rows)
            if trains:
                record.fresh += 1
        except Exception:
            pass
        return found

    __next__._rightpool = True  # type: ignore[attr-defined]
    iterator.__next__ = __next__
    try:
        call_after(iterator, "_next_index", _index_drawn)
        call_after(iterator, "_reset", _begun_anew)
    except AttributeError:
        pass  # batches are looked at


def _meet(iterator: Any) -> Drawn:
    record = _iterators[id(iterator)] = Drawn(iterator)
    weakref.finalize(iterator, _leave, id(iterator)).atexit = False
    return record


def _ran_out(key: int) -> None:
    """The iterator was asked for more than it has. A loader that fetches one batch in advance asks before it hands out
    the last one, maybe after an evaluation."""
    global current
    record = _iterators.get(key)
    if record is not None:
        record.over = True
        if record.pending and record.trains:
            current = record


def _leave(key: int) -> None:
    """The iterator with this id is no more."""
    global undecided, left_over
    record = _iterators.pop(key, None)
    if record is None:
        return
    record.over = True
    left_over = left_over or record.has_too_many(_FEW_STEPS)
    undecided = undecided or bool(record.left and record.pending)
    if record.passes and len(_ended) < _MAX_ENDED:
        _ended.append(record)


def _index_drawn(iterator: Any, index: Any) -> None:
    global repeats
    record = _iterators.get(id(iterator)) or _meet(iterator)
    if getattr(iterator, "_num_workers", 0) == 0:
        record.drawn.clear()  # the one before was never handed out
    rows = len(index) if record.indexed and isinstance(index, list) else None
    if rows is None and record.collated and isinstance(index, list):
        record.asked = len(index)
    record.drawn.append(rows)
    if rows is not None and rows > 1:  # a single one may be drawn again by chance
        repeats = repeats or (index == record.newest and index is not record.newest)  # a list may be filled anew
        record.newest = index


def _begun_anew(iterator: Any, _: Any) -> None:
    """An iterator that keeps its workers begins another epoch. Its first batches are drawn after this."""
    record = _iterators.get(id(iterator))
    if record is not None:
        record.drawn.clear()
        record.newest = []
        record.over = False


def too_many() -> bool:
    """Whether there are more batches than forward passes, in step after step."""
    return left_over or any(one.has_too_many(_MANY_STEPS) for one in list(_iterators.values()))


def forget() -> None:
    """In a forked child: what its parent has drawn is not its own."""
    global current, repeats, undecided, left_over
    current = None
    repeats = undecided = left_over = False
    _inside.clear()
    _ended.clear()
    for record in _iterators.values():
        record.pending.clear()
        record.uses = record.passes = record.fresh = record.steps = record.left = 0


def forward() -> None:
    """A forward pass that trains has begun."""
    record = current
    if record is not None and record.pending:
        record.uses += 1


def skipped() -> None:
    """The newest of those has come to nothing."""
    record = current
    if record is not None and record.uses:
        record.uses -= 1
        if record.uses < len(record.pending):
            del record.pending[record.uses]


def evaluated() -> None:
    """A forward pass that does not train has begun."""
    if current is not None:
        current.evaluates = True


def passed() -> None:
    """A backward pass has been made."""
    if current is not None:
        current.passes += 1


def consumed(forwards: bool) -> int | None:
    """Samples of the step that has just ended; None if not known. `forwards`: are forward passes seen at all?"""
    global used
    used = False
    record = current
    if record is None:
        return 0
    rows, drawn = record.take(record.used() if forwards else len(record.pending)), record.fresh
    for other in [*list(_iterators.values()), *_ended]:
        if other is not record and other.uses and other.passes:
            more = other.take(other.used())
            rows = None if rows is None or more is None else rows + more
        elif other is not record and other.fresh == drawn and drawn and not other.evaluates:
            rows = None  # as many of each: the step was made with both, or with one
        other.uses = other.passes = other.fresh = 0
        other.evaluates = False
        if not forwards and other is not record:
            other.pending.clear()
    _ended.clear()
    return rows


def _look(batch: Any, record: Drawn) -> int | None:
    """Samples of a batch by its arrays: they must agree, and be of several kinds. A picture is no batch of its rows.

    Where all have one shape, their rows must be as many as the loader has asked the stream for; fewer, as at its end,
    count where PyTorch itself has put them together.
    """
    try:
        graphs = getattr(batch, "num_graphs", None)
        if isinstance(graphs, int):
            return graphs
        shapes: set[tuple[int, ...]] = set()
        if not _shapes(batch, shapes, 3):
            return None
        leading = {shape[0] for shape in shapes if shape}
        if len(leading) != 1:
            return None
        rows = leading.pop()
        asked = rows == record.asked or (record.stacked and rows < record.asked)
        return rows if asked or len({len(shape) for shape in shapes if shape}) > 1 else None
    except Exception:  # whatever a batch of the program's own making objects with
        return None


def _shapes(value: Any, found: set[tuple[int, ...]], depth: int) -> bool:
    shape = getattr(value, "shape", None)
    if shape is not None:
        found.add(tuple(int(one) for one in shape))
        return len(found) <= _MAX_LEAVES
    if depth == 0:
        return True
    if isinstance(value, (dict, Mapping)):
        return all(_shapes(one, found, depth - 1) for one in value.values())
    if isinstance(value, (list, tuple)):
        return all(_shapes(one, found, depth - 1) for one in value[:_MAX_LEAVES])
    return True
