"""FLOPs and bytes of PyTorch's matrix products, by the shapes of what they take.

FLOPs are two for each multiplication and addition, as PyTorch's own FlopCounterMode counts them. Bytes are those of the
operands and of the result, each once: the least that has to be moved, so that the arithmetic intensity is the most that
there can be. Of other operations a trace has shapes from which neither follows.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, Final

Cost = tuple[float | None, float | None]
"""FLOPs and bytes; None for what is not known."""

_PRODUCTS: Final = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1}  # where the factors begin
_SIZES: Final = {
    "double": 8,
    "float": 4,
    "c10::BFloat16": 2,
    "c10::Half": 2,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "signed char": 1,
}
_LONGEST: Final = 1 << 40  # of a dimension


def cost_of(operator: str, arguments: Mapping[str, Any]) -> Cost | None:
    """Of one operator of a trace with shapes; None where it is no matrix product, or has none."""
    first = _PRODUCTS.get(operator)
    if first is None:
        return None
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list) or len(types) < first + 2:
        return None
    taken = [_shape(shape) for shape in shapes[: first + 2]]
    if len(taken) < first + 2 or any(shape is None for shape in taken):
        return None
    left, right = taken[first] or [], taken[first + 1] or []
    if len(left) != len(right) or len(left) < 2 or left[-1] != right[-2] or left[:-2] != right[:-2]:
        return None
    result = prod(left[:-1]) * right[-1]
    size = _SIZES.get(str(types[first]))
    moved = None if size is None else float(size * (result + sum(prod(shape or [0]) for shape in taken)))
    return 2.0 * result * left[-1], moved


def _shape(value: Any) -> list[int] | None:
    """A shape that a tensor can have."""
    if not isinstance(value, list) or not 0 < len(value) <= 8:
        return None
    plain = all(isinstance(one, int) and not isinstance(one, bool) and 0 < one < _LONGEST for one in value)
    return value if plain else None
