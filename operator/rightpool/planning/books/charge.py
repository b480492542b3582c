"""A charge: what jobs have used, as it is added up and written into the books."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from rightpool.api.estimate import Z80

EARLIER: Final = ""
"""The day of what is older than the days that are kept apart."""


class Charge(NamedTuple):
    """What jobs have used. Amounts are dollars."""

    spent: float = 0.0
    """For all chips that pods held."""
    saved: float = 0.0
    """By moves that paid."""
    lost: float = 0.0
    """By moves that did not, those corrections included that a later measurement brings."""
    chip_seconds: float = 0.0
    """For which pods held chips."""
    useful_seconds: float = 0.0
    """Chip-seconds that the work would have taken without loading, waiting and repeating."""
    saved_variance: float = 0.0
    """Of what was saved and lost, square dollars. Less where more is known by now than when it was last booked."""

    @property
    def saved_range(self) -> tuple[float, float]:
        """The 80% interval of what was saved, less what was lost. Jobs are off by themselves, so that variances add
        up."""
        net, half = self.saved - self.lost, Z80 * math.sqrt(max(self.saved_variance, 0.0))
        return net - half, net + half

    def plus(self, *others: Charge) -> Charge:
        """The sum of all."""
        return Charge(*map(sum, zip(self, *others, strict=True)))

    def texts(self) -> tuple[str, ...]:
        """The amounts as the books have them."""
        return tuple(f"{amount:.6f}".rstrip("0").rstrip(".") for amount in self)


def csv_rows(table: str, columns: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """The rows of a stored table. Raises ValueError where it has not these columns, or a row not as many cells."""
    reader = csv.DictReader(io.StringIO(table))
    if list(reader.fieldnames or ()) != list(columns):
        raise ValueError(f"the columns are {reader.fieldnames}, and not {list(columns)}")
    for row in reader:
        if None in row or None in row.values():
            raise ValueError(f"line {reader.line_num} has not as many cells as columns")
        yield row
