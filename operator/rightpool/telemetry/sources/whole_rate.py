"""Rates of counters whose scrapes cover all of the range that they are taken over.

PromQL's `rate` divides by the whole range: of a series that began within it, or whose scrapes were missed at its
beginning, it tells too little. What `offset` finds may be five minutes old: it proves the age of the series alone.
So a scrape must also lie within one interval of where the range begins; over that `rate` extrapolates by itself.
"""

from typing import Final

SCRAPES_IN_RANGE: Final = 4  # so that two lost scrapes still leave the two that a rate needs


def whole_rate(selector: str, seconds: int, on: str = "") -> str:
    """PromQL of the rate a second over so many seconds; nothing where scrapes do not cover them. on: labels by which
    the scrapes are found, where not by all."""
    # An interval and a tenth, over which `rate` extrapolates: over more it does so for half an interval alone.
    begins = seconds * 1100 // SCRAPES_IN_RANGE
    scraped = f"timestamp({selector} offset {seconds * 1000 - begins}ms) >= time() - {seconds}"
    matching = f"and on ({on})" if on else "and"
    return f"(rate({selector}[{seconds}s]) {matching} ({scraped}) {matching} {selector} offset {seconds}s)"
