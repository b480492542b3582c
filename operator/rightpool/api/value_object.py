"""Values: dataclasses with slots, none of whose fields is assigned once they are made."""

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_object(kind: type[T]) -> type[T]:
    """As `dataclass(frozen=True, slots=True)`, but that mypy alone refuses an assignment. The constructor of a frozen
    class makes a call for each field, so that it takes three times as long: for what is made for every job of a fleet.

    The class itself is made in a third of the time: of the functions that a dataclass compiles for each class, it has
    the constructor and the comparison alone. A command makes hundreds of classes before it does anything.
    """
    own = {"__hash__": _hash_of, "__repr__": _repr_of}
    given = {name: vars(kind)[name] for name in own if vars(kind).get(name) is not None}
    made: Any = dataclass(slots=True, repr=False)(kind)
    for name, make in own.items():
        setattr(made, name, given[name] if name in given else make(made))
    found: type[T] = made
    return found


def _hash_of(kind: Any) -> Any:
    names = [one.name for one in fields(kind) if (one.compare if one.hash is None else one.hash)]
    parts: Any = attrgetter(*names) if names else type

    def __hash__(self: Any) -> int:
        return hash(parts(self))

    return __hash__


def _repr_of(kind: Any) -> Any:
    names = [one.name for one in fields(kind) if one.repr]

    def __repr__(self: Any) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    return __repr__
