"""How near a chip comes to what it can do at most."""

from __future__ import annotations

from typing import Final

from rightpool.api.value_object import value_object
from rightpool.api.wording import percent
from rightpool.profiles.sample import Field

_PIPES: Final = {
    Field.FP32_ACTIVE: "FP32 units",
    Field.FP64_ACTIVE: "FP64 units",
    Field.FP16_ACTIVE: "FP16 units",
}


@value_object
class Roofs:
    """Closeness to each roof while the chip works, 0 to 1 or slightly above; None without a counter."""

    matrix: float | None
    """Of the matrix units."""

    bandwidth: float | None
    """Of the memory's bandwidth."""

    pipe: tuple[float, Field] | None
    """The nearest of the pipes beside the matrix units, and its counter."""

    @property
    def arithmetic(self) -> float | None:
        """The nearer of matrix units and pipe."""
        known = [value for value in (self.matrix, None if self.pipe is None else self.pipe[0]) if value is not None]
        return max(known, default=None)

    @property
    def nearest(self) -> float | None:
        """The nearest of all."""
        known = [value for value in (self.arithmetic, self.bandwidth) if value is not None]
        return max(known, default=None)

    @property
    def by_pipe(self) -> bool:
        """Whether a pipe beside the matrix units does most of the arithmetic."""
        return self.pipe is not None and self.pipe[0] > (self.matrix or 0.0)

    def text(self) -> str:
        """How near the work comes to each that is counted."""
        known = []
        if self.bandwidth is not None:
            known.append(f"memory bandwidth {percent(min(1.0, self.bandwidth))}")
        if self.by_pipe and self.pipe is not None:
            known.append(f"{_PIPES[self.pipe[1]]} {percent(min(1.0, self.pipe[0]))}")
        if self.matrix is not None:
            known.append(f"matrix units {percent(min(1.0, self.matrix))}")
        return f"{', '.join(known)} of attainable"


@value_object
class Arithmetic:
    """What else is known of the arithmetic."""

    precision: str | None
    """What the program computes in; None where that is not known."""

    limit: float | None
    """Watts to which the board is limited below its data sheet; None where it is not."""

    data_sheet: float | None
    """Watts."""

    def text(self) -> str:
        """What is known of it, as clauses that end a sentence."""
        text = "" if self.precision is None else f"; the program computes in {self.precision}"
        if self.limit is not None and self.data_sheet is not None:
            text += f"; the board is limited to {self.limit:.0f} of {self.data_sheet:.0f} W"
        return text
