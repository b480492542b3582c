"""The readings of a profile that is kept, in one array.

Eighteen readings as tuples of floats take 3.1 kB, and packed 0.6: ten thousand jobs keep a profile each.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rightpool.profiles.profile import Reading
from rightpool.profiles.sample import Field, Quality

_NUMBERS: Final = 3  # of a reading: value, low, high
_PLACES: Final[dict[tuple[Field, ...], Mapping[Field, int]]] = {}


def _places(fields: tuple[Field, ...]) -> Mapping[Field, int]:
    """Where the numbers of each field begin. One for all profiles with these fields, in this order."""
    found = _PLACES.get(fields)
    if found is None:
        found = _PLACES[fields] = {one: _NUMBERS * number for number, one in enumerate(fields)}
    return found


class PackedReadings(Mapping[Field, Reading]):
    """Readings by field. Each is made anew when it is asked for."""

    __slots__ = ("_derived", "_numbers", "_places")

    def __init__(self, readings: Mapping[Field, Reading]) -> None:
        self._places = _places(tuple(readings))
        self._numbers = array("d", [number for reading in readings.values() for number in reading[:_NUMBERS]])
        derived = (place for place, one in zip(self._places.values(), readings.values(), strict=True) if _derived(one))
        self._derived = sum(1 << place for place in derived)

    def __getitem__(self, field: Field) -> Reading:
        return self._at(self._places[field])

    def get(self, field: Field, default: Any = None, /) -> Any:
        """As of a dictionary. Mapping's own raises an error for each field that is missing."""
        place = self._places.get(field)
        return default if place is None else self._at(place)

    def __contains__(self, field: object) -> bool:
        return field in self._places

    def __iter__(self) -> Iterator[Field]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _at(self, place: int) -> Reading:
        value, low, high = self._numbers[place : place + _NUMBERS]
        return Reading(value, low, high, Quality.DERIVED if self._derived >> place & 1 else Quality.MEASURED)


def _derived(reading: Reading) -> bool:
    return reading.quality is Quality.DERIVED
