"""How long requests and tokens may take, by the targets of a server."""

from __future__ import annotations

from rightpool.api.latency import Percentile
from rightpool.api.targets import Targets
from rightpool.profiles.served import RequestTime


def time_limits(targets: Targets) -> dict[RequestTime, Percentile]:
    """Of each time that has a target."""
    declared = {
        RequestTime.WHOLE: targets.latency,
        RequestTime.FIRST_TOKEN: targets.time_to_first_token,
        RequestTime.BETWEEN_TOKENS: targets.inter_token_latency,
    }
    return {time: one.percentile for time, one in declared.items() if one is not None}
