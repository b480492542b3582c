"""What is read of a jaxpr, and of the values in it."""

from __future__ import annotations

from typing import Any


class Budget:
    """How many equations may be looked at."""

    def __init__(self, equations: int) -> None:
        self.left = equations

    def take(self) -> None:
        """One more is looked at. Raises OverflowError where that is too many."""
        self.left -= 1
        if self.left <= 0:
            raise OverflowError


def opened(closed: Any) -> Any:
    """The jaxpr without its constants."""
    return getattr(closed, "jaxpr", closed)


def is_literal(var: Any) -> bool:
    return hasattr(var, "val")


def shape(var: Any) -> tuple[int, ...]:
    return tuple(getattr(var.aval, "shape", ()))


def kind(var: Any) -> Any:
    """Shape and dtype."""
    return shape(var), str(getattr(var.aval, "dtype", ""))


def elements(var: Any) -> int:
    size = 1
    for length in shape(var):
        size *= int(length)
    return size


def scan_parts(equation: Any) -> tuple[Any, int, int]:
    """Of a `lax.scan`: its body, how many of its arguments are the same in each turn, and how many are carried.

    What is scanned has one dimension more outside than inside. Versions of JAX name the numbers differently.
    """
    body = opened(equation.params["jaxpr"])
    carried = sum(shape(out) == shape(one) for out, one in zip(equation.outvars, body.outvars))
    scanned = sum(shape(out) != shape(one) for out, one in zip(equation.invars, body.invars))
    return body, len(equation.invars) - carried - scanned, carried


def inside(equation: Any) -> list[Any]:
    """The jaxprs that an equation holds, such as a loop's body."""
    lists = (value if isinstance(value, (list, tuple)) else [value] for value in equation.params.values())
    return [opened(one) for values in lists for one in values if hasattr(opened(one), "eqns")]
