"""How long requests and tokens may take, by the targets of a server."""

from __future__ import annotations

from collections.abc import Mapping

from rightpool.api.latency import Percentile
from rightpool.api.targets import Targets
from rightpool.profiles.served import RequestTime

Limits = Mapping[RequestTime, Percentile]
"""Of each time that has a target."""


def sized_limits(targets: Targets) -> Limits:
    """Those that a server is sized for: of its tokens, or else of its requests. Empty where it has none."""
    limits = time_limits(targets)
    tokens: Limits = {time: one for time, one in limits.items() if time is not RequestTime.WHOLE}
    return tokens or limits


def sized_by_tokens(targets: Targets) -> bool:
    """Whether a server is sized for the times of its tokens."""
    return RequestTime.WHOLE not in (sized_limits(targets) or {RequestTime.WHOLE})


def time_limits(targets: Targets) -> dict[RequestTime, Percentile]:
    """Of each time that has a target."""
    declared = {
        RequestTime.WHOLE: targets.latency,
        RequestTime.FIRST_TOKEN: targets.time_to_first_token,
        RequestTime.BETWEEN_TOKENS: targets.inter_token_latency,
    }
    return {time: one.percentile for time, one in declared.items() if one is not None}
