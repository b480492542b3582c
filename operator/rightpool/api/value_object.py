"""Values: dataclasses with slots, none of whose fields is assigned once they are made."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_object(kind: type[T]) -> type[T]:
    """As `dataclass(frozen=True, slots=True)`, but that mypy alone refuses an assignment. The constructor of a frozen
    class makes a call for each field, so that it takes three times as long: for what is made for every job of a fleet.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)
