"""Why a trial that a user asks for does not begin."""

from __future__ import annotations

from typing import Final

from rightpool.api.placement import Placement
from rightpool.api.wording import span
from rightpool.contract import ANNOTATION_TRIAL

MALFORMED: Final = f"the value of {ANNOTATION_TRIAL} is not ID, ID:POOL, ID::SECONDS or ID:POOL:SECONDS"
NOT_ALLOWED: Final = "nothing lets the program be tried: set spec.trial"
NOT_RUNNING: Final = "the job does not run, or is moved: ask again when it runs"
NOT_MEASURED: Final = "the job was not measured yet: ask again when its condition Profiled is True"
NOT_RECORDED: Final = (
    "its requests and batches are not known yet: ask again when status.server says how many are needed"
)
NO_SAMPLE: Final = "a trial sends the server sample requests, and none is given: set workload.server.warmUp"


def too_long(seconds: float, longest: float) -> str:
    """longest: that spec.trial allows."""
    return f"{span(seconds)} are asked for, and spec.trial.duration is {span(longest)}: ask for less"


def under_way(name: str) -> str:
    """name: of the trial's ProfiledJob."""
    return f"ProfiledJob {name} is under way: ask again when it is over"


def not_predicted(name: str, pool: str | None) -> str:
    """name: of the job. pool: that is asked for; any where None."""
    where = "elsewhere" if pool is None else f"on pool {pool}"
    return f"nothing that the job could have {where} is predicted: see `rightpool explain {name}`"


def beyond_own_dollars(cost: float, left: float) -> str:
    """left: of spec.trial.maxCost."""
    return f"it would cost ${cost:.2f}, and ${max(left, 0.0):.2f} of spec.trial.maxCost is left: raise it"


def beyond_dollars_of_all(cost: float, left: float) -> str:
    """left: of what the fleet may spend today."""
    return (
        f"it would cost ${cost:.2f}, and ${max(left, 0.0):.2f} of the PlacementPolicy's "
        "trials.maxCostPerDay is left until midnight UTC"
    )


def no_chips(place: Placement) -> str:
    """Where it would run."""
    return f"pool {place.pool} has no {place.chips} chips free that no job waits for: ask again when it has"
