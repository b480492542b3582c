"""What a trial has measured: a job's own program, run elsewhere for some minutes while the job itself went on."""

from __future__ import annotations

from rightpool.api.placement import Placement
from rightpool.api.value_object import value_object


@value_object
class Tried:
    """One trial that is over."""

    here: Placement
    """Where the job ran meanwhile."""
    there: Placement
    """Where its program was tried."""
    ratio: float | None
    """Its rate there ÷ its rate here; None where it took no step there."""
    doubt: float
    """Standard deviation of the logarithm of the ratio, by how much such spans of the job differ."""
    at: float
    """Unix seconds of its end."""
    workload_hash: str
    """Of what was tried: an edit ends what it says."""
    here_chip: str
    """Key of the chips here, in the catalog of then."""
    there_chip: str
    """Key of the chips there."""
