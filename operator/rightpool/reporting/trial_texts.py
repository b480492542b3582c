"""What a trial has shown, in words."""

from __future__ import annotations

from typing import Final

from rightpool.api.tried import Tried
from rightpool.api.wording import number, place

NOTHING_MEASURED: Final = "was ended before it had measured anything"


def shown(tried: Tried) -> str:
    """What a trial that is over has measured, or why it has measured nothing."""
    there = place(tried.there)
    if tried.ratio is None:
        return f"nothing measured on {there}: {tried.why}; not tried there again until the program is edited"
    return f"on {there} the program is {number(tried.ratio)} times as fast as here"
