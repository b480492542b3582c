"""How near a chip comes to what it can do at most."""

from __future__ import annotations

from dataclasses import dataclass

from rightpool.profiles.sample import Field


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """What else is known of the arithmetic."""

    precision: str | None
    """What the program computes in; None where that is not known."""

    limit: float | None
    """Watts to which the board is limited below its data sheet; None where it is not."""

    data_sheet: float | None
    """Watts."""
