"""The readings of a profile that is kept, in one array.

Eighteen readings as tuples of floats take 3.1 kB, and packed 0.6: ten thousand jobs keep a profile each.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rightpool.profiles.profile import Reading
from rightpool.profiles.sample import Field, Quality

_QUALITIES: Final = (Quality.MEASURED, Quality.DERIVED)
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
        derived = (
            _QUALITIES.index(one.quality) << place
            for place, one in zip(self._places.values(), readings.values(), strict=True)
        )
        self._derived = sum(derived)

    def __getitem__(self, field: Field) -> Reading:
        found: Reading | None = self.get(field)
        if found is None:
            raise KeyError(field)
        return found

    def get(self, field: Field, default: Any = None, /) -> Any:
        """As of a dictionary. Mapping's own raises an error for each field that is missing."""
        place = self._places.get(field)
        if place is None:
            return default
        numbers, quality = self._numbers, _QUALITIES[self._derived >> place & 1]
        return Reading(numbers[place], numbers[place + 1], numbers[place + 2], quality)

    def rows(self) -> Iterator[tuple[Field, float, float, float]]:
        """Each field with its value, low and high: what is compared for every job needs no Reading."""
        numbers = self._numbers.tolist()
        return zip(self._places, numbers[::_NUMBERS], numbers[1::_NUMBERS], numbers[2::_NUMBERS], strict=True)

    def __contains__(self, field: object) -> bool:
        return field in self._places

    def __iter__(self) -> Iterator[Field]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)
