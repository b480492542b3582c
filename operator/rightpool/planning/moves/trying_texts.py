"""Why a trial has measured nothing, in words."""

from typing import Final

from rightpool.api.work_unit import WorkUnit

ENDED_ITSELF: Final = "its program ended with 0 before it was measured"


def not_started(seconds: float) -> str:
    """Its pods did not run in that time."""
    return f"it did not start within {seconds:.0f} s"


def not_measured(seconds: float) -> str:
    """Its pods ran for that time, and gave no profile."""
    return f"it was not measured within {seconds:.0f} s"


def counts_otherwise(unit: WorkUnit) -> str:
    """Its rate does not compare with the job's."""
    return f"it counts {unit.plural} there"


def spent_all(dollars: float) -> str:
    """All that its job allows for trials is spent."""
    return f"trial.maxCost of ${dollars:.2f} is spent"
