"""Finds the batch among the arguments of a jitted function, and its size.

State (parameters, optimizer) comes back out of a training step with the same shapes; the batch does not. What is left
are arrays that share their first dimension. An array spread over several processes counts with this process' share,
so that the sum over all processes is the job's batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rows = Callable[[Any, Any], int]

_MAX_BATCH_LEAVES = 64
_MAX_DEVICES = 4096


def none(args: Any, kwargs: Any) -> int:
    """No batch was found: samples stay absent."""
    return 0


class Layout:
    """What one look at a call has shown."""

    def __init__(self, rows: Rows, weight: float, platform: str | None) -> None:
        self.rows = rows
        self.weight = weight  # bytes of all arguments: training steps carry the parameters, helpers do not
        self.platform = platform


def study(tree_util: Any, args: Any, kwargs: Any, output: Any) -> Layout:
    """Look once at the arguments and results of a call."""
    results = {tuple(leaf.shape) for leaf in tree_util.tree_leaves(output) if getattr(leaf, "shape", ())}
    weight = 0.0
    platform: str | None = None
    candidates: dict[int, list[tuple[float, Any, Any]]] = {}
    named = [(index, value) for index, value in enumerate(args)] + list(kwargs.items())
    for where, value in named:
        leaves = [leaf for leaf in tree_util.tree_leaves(value) if hasattr(leaf, "shape") and hasattr(leaf, "dtype")]
        for leaf in leaves:
            weight += float(getattr(leaf, "nbytes", 0) or 0)
            if platform is None and hasattr(leaf, "sharding"):
                platform = next(iter(leaf.sharding.device_set)).platform
        arrays = [leaf for leaf in leaves if leaf.shape and not _is_key(leaf)]
        if not arrays or len(arrays) > _MAX_BATCH_LEAVES:
            continue
        if all(tuple(leaf.shape) in results for leaf in arrays) or len({leaf.shape[0] for leaf in arrays}) != 1:
            continue
        size = sum(float(leaf.nbytes) for leaf in arrays)
        candidates.setdefault(arrays[0].shape[0], []).append((size, where, (value, arrays[0])))
    if not candidates:
        return Layout(none, weight, platform)
    best = max(candidates.values(), key=lambda group: sum(size for size, _, _ in group))
    _, where, (value, leaf) = best[0]
    return Layout(_reader(where, value, leaf, _share(leaf)), weight, platform)


def _is_key(leaf: Any) -> bool:
    name = str(leaf.dtype)
    return name.startswith("key<") or (name == "uint32" and tuple(leaf.shape) in ((2,), (4,)))


def _share(leaf: Any) -> float:
    """The part of the first dimension that is this process' to count."""
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


def _reader(where: Any, value: Any, leaf: Any, share: float) -> Rows:
    """A function that finds the batch size in later calls, whose last batch may be smaller."""
    path: list[Any] = []
    if value is not leaf:
        if isinstance(value, dict):
            path = [key for key, item in value.items() if item is leaf]
        elif isinstance(value, (list, tuple)):
            path = [index for index, item in enumerate(value) if item is leaf]
        if not path:
            constant = round(leaf.shape[0] * share)
            return lambda args, kwargs: constant
    inner = path[:1]
    if share == 1.0 and isinstance(where, int) and inner:
        key = inner[0]

        def read_at(args: Any, kwargs: Any) -> int:
            """The usual case, and nothing else: it runs inside every step."""
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
        except Exception:  # whatever a batch of the program's own making objects with
            return 0

    return read
