"""Finds the batch among the arguments of a jitted function, and its size.

State (parameters, optimizer) comes back out of a training step with the same shapes; the batch does not. What is left
are arrays that share their first dimension; where they don't, the size of the batch is not known. An array spread
over several processes counts with this process' share, so that the sum over all processes is the job's batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rows = Callable[[Any, Any], int]

_MAX_BATCH_LEAVES = 64
_MAX_DEVICES = 4096
_TRAINS = 0.5  # share of a function's input that comes out again if it trains


def none(args: Any, kwargs: Any) -> int:
    """No batch was found: samples stay absent."""
    return 0


class Layout:
    """The result of inspecting a call."""

    def __init__(
        self,
        rows: Rows,
        leaf: Any,
        weight: float,
        platform: str | None,
        trains: bool,
        state: float,
        alike: tuple[Any, ...] = (),
    ) -> None:
        self.rows = rows
        self.batch = leaf  # the array whose first dimension it is; None if there is none
        self.weight = weight  # bytes of all arguments: training steps carry the parameters, helpers do not
        self.platform = platform
        self.state = state  # bytes of floating point numbers that come out again, by shape
        self.alike = alike  # arguments that hold it, where each of its arrays has the shape of a parameter
        self.trains = trains  # whether most of what comes in goes out again, changed: parameters, or their gradients


def study(tree_util: Any, args: Any, kwargs: Any, output: Any, mapped: bool = False) -> Layout:
    """Inspect the arguments and results of a call. `mapped`: the first dimension is that of `pmap`."""
    results: dict[Any, int] = {}
    for leaf in _arrays(tree_util, output):
        results[kind(leaf)] = results.get(kind(leaf), 0) + 1
    # `pmap` gives arrays that all devices got alone back once for each device.
    copies = {(shape[1:], dtype): (shape, dtype) for shape, dtype in results if mapped and shape}
    weight = state = 0.0
    platform: str | None = None
    groups: list[tuple[Any, list[Any]]] = []
    mixed = False  # does an argument hold state, and something else?
    matched: set[Any] = set()
    for where, value in [*enumerate(args), *kwargs.items()]:
        left, inside = [], _arrays(tree_util, value)
        for leaf in inside:
            size = float(getattr(leaf, "nbytes", 0) or 0)
            weight += size
            if platform is None and hasattr(leaf, "sharding"):
                platform = next(iter(leaf.sharding.device_set)).platform
            came_out = kind(leaf) if results.get(kind(leaf), 0) > 0 else copies.get(kind(leaf))
            if came_out is not None and results[came_out] > 0:
                results[came_out] -= 1
                matched.add(kind(leaf))
                state += size if "float" in str(leaf.dtype) else 0.0
            elif leaf.shape and not _is_key(leaf):
                left.append(leaf)
        if left:
            groups.append((where, left))
            mixed = mixed or len(left) < len(inside)
    # What has the shape of a parameter is none of the batch: gradients, momentum.
    unlike = [(where, [leaf for leaf in leaves if kind(leaf) not in matched]) for where, leaves in groups]
    alike = () if mixed or any(leaves for _, leaves in unlike) else _alike(groups, matched)
    groups = groups if alike else unlike
    batch = sum(float(leaf.nbytes) for _, leaves in groups for leaf in leaves)
    trains = state > 0 and state >= _TRAINS * (weight - batch)
    where, found = _agreed(groups, mapped)
    if found is None:
        return Layout(none, None, weight, platform, trains, state)
    value = args[where] if isinstance(where, int) else kwargs[where]
    if mapped:
        constant = int(found.shape[0] * found.shape[1])
        return Layout(lambda args, kwargs: constant, found, weight, platform, trains, state, alike)
    rows = _reader(tree_util, where, value, found, _share(found))
    return Layout(rows, found, weight, platform, trains, state, alike)


def _arrays(tree_util: Any, value: Any) -> list[Any]:
    return [leaf for leaf in tree_util.tree_leaves(value) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]


def kind(leaf: Any) -> Any:
    """Shape and dtype."""
    return tuple(leaf.shape), str(leaf.dtype)


def _alike(groups: list[tuple[Any, list[Any]]], matched: set[Any]) -> tuple[Any, ...]:
    """The arguments whose arrays have shapes of parameters and may be a batch all the same.

    Gradients have the shapes of all parameters, or are those of one layer; a batch has several arrays, or is none of
    JAX's.
    """
    leaves = [leaf for _, found in groups for leaf in found]
    several = len(leaves) > 1 or any(not hasattr(leaf, "sharding") for leaf in leaves)
    some = {kind(leaf) for leaf in leaves} < {one for one in matched if one[0] and "float" in one[1]}
    return tuple(where for where, _ in groups) if several and some else ()


def _agreed(groups: list[tuple[Any, list[Any]]], mapped: bool) -> tuple[Any, Any]:
    """(argument, array) of the batch, if all that may be one agree; (None, None) otherwise.

    An argument whose arrays differ in their first dimension is no batch: parameters that are only read. Nor is a single
    array of floating point numbers without another dimension: it may be one row. Whole ones may be indexes of rows.
    """
    if mapped:
        groups = [(where, [leaf for leaf in leaves if len(leaf.shape) >= 2]) for where, leaves in groups]
    depth = 2 if mapped else 1
    kept = [
        (where, leaves[0])
        for where, leaves in groups
        if leaves and len(leaves) <= _MAX_BATCH_LEAVES and len({tuple(leaf.shape[:depth]) for leaf in leaves}) == 1
    ]
    if not kept or len({tuple(leaf.shape[:depth]) for _, leaf in kept}) != 1:
        return None, None
    only = kept[0][1]
    if sum(len(leaves) for _, leaves in groups) == 1 and len(only.shape) == depth and "float" in str(only.dtype):
        return None, None
    return kept[0]


def _is_key(leaf: Any) -> bool:
    name = str(leaf.dtype)
    return name.startswith("key<") or (name == "uint32" and tuple(leaf.shape)[-1:] in ((2,), (4,)))


def _share(leaf: Any) -> float:
    """The part of the first dimension that this process counts."""
    if getattr(leaf, "is_fully_addressable", True):
        return 1.0
    devices = leaf.sharding.device_set
    if len(devices) > _MAX_DEVICES:
        return len(leaf.sharding.addressable_devices) / len(devices)
    owners: dict[tuple[int, int], set[int]] = {}
    total = leaf.shape[0]
    for device, index in leaf.sharding.devices_indices_map(tuple(leaf.shape)).items():
        start, stop, _ = index[0].indices(total)
        owners.setdefault((start, stop), set()).add(device.process_index)
    here = next(iter(leaf.sharding.addressable_devices)).process_index
    mine: float = sum(
        (stop - start) / len(processes) for (start, stop), processes in owners.items() if here in processes
    )
    return float(mine / total)


def _reader(tree_util: Any, where: Any, value: Any, leaf: Any, share: float) -> Rows:
    """A function that finds the batch size in later calls, whose last batch may be smaller."""
    path: list[Any] = []
    if value is not leaf:
        if isinstance(value, dict):
            path = [key for key, item in value.items() if item is leaf]
        elif isinstance(value, (list, tuple)):
            path = [index for index, item in enumerate(value) if item is leaf]
        if not path:
            return _deep_reader(tree_util, where, value, leaf, share)
    inner = path[:1]
    if share == 1.0 and isinstance(where, int) and inner:
        key = inner[0]

        def read_at(args: Any, kwargs: Any) -> int:
            """Handles the usual case only, because it runs in every step."""
            try:
                rows: int = args[where][key].shape[0]
                return rows
            except Exception:
                return 0

        return read_at

    def read(args: Any, kwargs: Any) -> int:
        try:
            found = args[where] if isinstance(where, int) else kwargs[where]
            for step in inner:
                found = found[step]
            rows: int = round(found.shape[0] * share)
            return rows
        except Exception:  # a batch of the program's own class may raise anything
            return 0

    return read


def _deep_reader(tree_util: Any, where: Any, value: Any, leaf: Any, share: float) -> Rows:
    """Of an array somewhere in a tree, which is flattened in C."""
    leaves = tree_util.tree_leaves(value)
    place = next(index for index, item in enumerate(leaves) if item is leaf)
    flatten = tree_util.tree_leaves

    def read(args: Any, kwargs: Any) -> int:
        try:
            found = args[where] if isinstance(where, int) else kwargs[where]
            rows: int = round(flatten(found)[place].shape[0] * share)
            return rows
        except Exception:
            return 0

    return read
