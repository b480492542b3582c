"""What one compiled function has returned and another is given: parameters that they train together.

A training may be made of several functions: an epoch of whole batches and the rows that are left, a loop of many steps
and then single ones. What they share are the arrays that they hand to each other. Parameters that a step gets back from
itself show in the same way.
"""

from __future__ import annotations

import collections
import sys
import weakref
from typing import Any

from . import batch
from .steps import Track

PROBES = 4  # calls in which a function is looked at more closely
_REMEMBERED = 1  # probes left of a training loop: what its later calls return is kept in mind, and no more
_RECURS = 0.5  # of a function's state: that much is given to it again if it updates parameters
_ALIKE = 0.5  # of the larger state: functions that train the same parameters carry about as much

_newest: tuple[Track, list[Any]] | None = None  # what the last call that was looked at has returned


def look(track: Track, args: Any, kwargs: Any, output: Any) -> None:
    """In the first calls: does what the function has returned come in again, or what another one has?"""
    global _newest
    leaves = sys.modules["jax"].tree_util.tree_leaves
    if track.loops and track.probes == _REMEMBERED:
        _newest = track, list(map(weakref.ref, leaves(output)))
        return
    track.probes -= 1
    given = {id(leaf) for leaf in leaves((args, kwargs))}
    out = [leaf for leaf in leaves(output) if _float(leaf)]
    if not track.keeps and _comes_in(track.returned, given, track):
        track.recurs = track.feeds_itself = True
        if track.parameters is not None:
            again = map(batch.kind, _given(track.returned, given))
            track.unclear = bool(track.parameters.kinds - collections.Counter(again))
    if _newest is not None and _newest[0] is not track:
        kinds = {batch.kind(leaf) for leaf in out}
        if _comes_in(_newest[1], given, track, kinds):
            track.fed_by = _newest[0]
        held = [args[where] if isinstance(where, int) else kwargs[where] for where in track.alike]
        if _given(_newest[1], {id(leaf) for leaf in leaves(held)}):
            track.has_rows = False  # another function has made it: gradients
    if track.fed_by is not None:
        _join(track, track.fed_by)
    if track.constant is not None:
        first = track.constant()
        if first is None or id(first) not in given:
            track.constant = None
        elif track.probes == (_REMEMBERED if track.loops else 0):
            track.missed = True  # the same array each time: parameters that are only read, or all there is
    returned = [weakref.ref(leaf) for leaf in out]
    _newest = track, returned
    track.returned = returned if track.probes else []


def again(tracks: list[Track]) -> None:
    """A training loop is new: what is called next may get from it what it trains, also after many calls."""
    for one in tracks:
        one.probes = max(1, one.probes)


def _given(returned: list[Any], given: set[int]) -> list[Any]:
    """What was returned and is given."""
    arrays = [reference() for reference in returned]
    return [leaf for leaf in arrays if leaf is not None and id(leaf) in given]


def _comes_in(returned: list[Any], given: set[int], track: Track, kinds: Any = None) -> bool:
    """Whether most of the state of `track` is what was returned. kinds: those that come out of it; None: not asked."""
    found = _given(returned, given)
    size = sum(leaf.nbytes for leaf in found if kinds is None or batch.kind(leaf) in kinds)
    return bool(size) and size >= _RECURS * track.state


def _float(leaf: Any) -> bool:
    return "float" in str(getattr(leaf, "dtype", ""))


def _join(track: Track, other: Track) -> None:
    """Count the steps of both together where they train the same parameters. `other` has returned these to `track`."""
    while other.joins is not None:
        other = other.joins
    if track is other or track.joins is not None or track.keeps or other.keeps or not (track.trains and other.trains):
        return
    if _take_turns(track, other) or _train_the_same(track, other):
        main, lesser = (track, other) if track.weight >= other.weight else (other, track)
        main.opaque = main.opaque or lesser.opaque
        main.recurs, lesser.joins = True, main


def _take_turns(track: Track, other: Track) -> bool:
    """They hand the same parameters to each other, as an epoch of whole batches and the rows that are left. Who gets
    its own again is another thing: an update of what gradients are made for."""
    if track.feeds_itself or other.feeds_itself or max(track.probes, other.probes) > PROBES - 2:
        return False  # the first call can't show what is its own
    return other.fed_by is track


def _train_the_same(track: Track, other: Track) -> bool:
    """One of them holds a loop of steps. So it trains what it is given, and the other one does, if the same parameters
    are seen in it; else if it gets its own again, and computes as a step does. An average of the parameters doesn't."""
    if not (track.loops or other.loops) or track.doubtful or other.doubtful:
        return False
    if track.parameters is not None and other.parameters is not None:
        return bool(track.parameters == other.parameters)
    less, more = sorted((track.state, other.state))
    if less < _ALIKE * more or bool(track.products) != bool(other.products):
        return False
    known = track.parameters is not None or other.parameters is not None
    return track.recurs and other.recurs and bool(track.products or not known)
