"""Windows and profiles made by hand, for tests."""

from __future__ import annotations

from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey, Sample
from rightpool.profiles.window import Window

KEY = RevisionKey("research", "bert", 1)


def window(count: int = 31, interval: float = 10.0, start: float = 1000.0, /, **fields: float) -> Window:
    """Samples every `interval` seconds with constant fields (by member name, lower case) and steps that go on."""
    filled = Window()
    values = {Field[name.upper()]: value for name, value in fields.items()}
    for number in range(count):
        steps = {Field.STEPS: 100.0 + number}
        filled.append(Sample(start + number * interval, {**steps, **values}))
    return filled


def profile(chips: int = 1, steadiness: Steadiness = Steadiness.STEADY, /, **fields: float) -> Profile:
    """A profile whose readings are these values (by member name, lower case)."""
    readings = {Field[name.upper()]: Reading(value, value, value, Quality.MEASURED) for name, value in fields.items()}
    return Profile(KEY, chips, steadiness, 300.0, 1.0, 1300.0, 1, 1, readings)
