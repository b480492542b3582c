"""The unit in which the work of a job is counted: of its throughput, and of what a million cost."""

from enum import StrEnum
from typing import Final


class WorkUnit(StrEnum):
    """Samples where they are counted, else optimizer steps; of a server requests, or tokens where these have a target.
    Figures in different units are never compared."""

    SAMPLES = "Samples"
    STEPS = "Steps"
    REQUESTS = "Requests"
    TOKENS = "Tokens"

    @property
    def plural(self) -> str:
        """In a sentence, or after a number."""
        return self.value.lower()


SERVED: Final = frozenset({WorkUnit.REQUESTS, WorkUnit.TOKENS})
"""What servers do: as much as comes in."""


def counts_samples(unit: WorkUnit) -> bool:
    """What is the rule, and therefore not written."""
    return unit is WorkUnit.SAMPLES
