"""What the operator writes it can read, in every number of every type that a status is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import pytest
from pydantic import TypeAdapter

from rightpool.api.record import HINTS, PARTS, Record
from rightpool.api.status import ProfiledJobStatus

# Between moments of two processes, whose clocks differ by seconds or by years, and what is too small to be shown.
DURATIONS = (-31_536_000.0, -90.0, -0.25, -1e-9, 0.0, 1e-9, 0.25, 90.0, 1e9)
MOMENTS = (0.0, 0.0004, 1_795_910_400.123_456, 1_795_910_399.999_9, 2e9)


def numbers(hint: Any) -> Iterator[Any]:
    """The types of numbers that a field is made of, with what is said of them."""
    if hint is float or (get_origin(hint) is Annotated and get_args(hint)[0] is float):
        yield hint
    else:
        for part in get_args(hint):
            yield from numbers(part)


def held(kind: type[Record], found: dict[str, type[Record]]) -> dict[str, type[Record]]:
    """By name, a persisted type and all that it holds."""
    if kind.__name__ not in found:
        found[kind.__name__] = kind
        for part in PARTS[kind]:
            for inner in part.records:
                held(inner, found)
    return found


PERSISTED = held(ProfiledJobStatus, {})


@pytest.mark.filterwarnings("ignore::pydantic.warnings.UnsupportedFieldAttributeWarning")  # of a name on the wire
@pytest.mark.parametrize("name", sorted(PERSISTED))
def test_each_number_is_read_again_whatever_two_clocks_have_made_of_it(name: str) -> None:
    for field, hint in HINTS[PERSISTED[name]].items():
        for number in numbers(hint):
            adapter: TypeAdapter[float] = TypeAdapter(number)
            is_moment = adapter.json_schema(mode="serialization").get("format") == "date-time"
            for value in MOMENTS if is_moment else DURATIONS:
                written = adapter.dump_python(value, mode="json")
                again = adapter.validate_python(written)
                assert adapter.dump_python(again, mode="json") == written, f"{field} loses digits more than once"


def test_the_types_are_found() -> None:
    assert {"LedgerEntry", "Account", "Migration", "Variation", "Interruption", "SlowStart"} <= PERSISTED.keys()
    assert sum(1 for kind in PERSISTED.values() for hint in HINTS[kind].values() for _ in numbers(hint)) > 100
