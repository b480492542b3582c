"""Rules of a PlacementPolicy: a change, the field that the API server names, and its message."""

from __future__ import annotations

from typing import Final

from .objects import POLICY, Case

_FREQUENCY_SAID: Final = 'must be a number, 0 or more, in quotes: write "0.5"'
_SHARE_SAID: Final = "must be a share between 0 and 1, in quotes"
_POSITIVE_SAID: Final = "must be a duration of 1s or more"

POLICY_CASES: Final = (
    Case("another name", POLICY, {"metadata.name": "mine"}, "metadata.name", "must be default: there is one policy"),
    Case(
        "run time in days",
        POLICY,
        {"spec.minRunTime": "1d"},
        "spec.minRunTime",
        "must be a duration, 0 or more: write 90s",
    ),
    Case("no time to start", POLICY, {"spec.startDeadline": "0s"}, "spec.startDeadline", _POSITIVE_SAID),
    Case("nobody may wait", POLICY, {"spec.fleet": {"maxWait": "0s"}}, "spec.fleet.maxWait", _POSITIVE_SAID),
    Case(
        "interruptions below 0",
        POLICY,
        {"spec.spotInterruptionsPerDay": "-1"},
        "spec.spotInterruptionsPerDay",
        _FREQUENCY_SAID,
    ),
    Case(
        "share in percent",
        POLICY,
        {"spec.circuitBreaker": {"maxRolledBackShare": "50%"}},
        "spec.circuitBreaker.maxRolledBackShare",
        _SHARE_SAID,
    ),
    Case(
        "trials that earn",
        POLICY,
        {"spec.trials": {"maxCostPerDay": "-1"}},
        "spec.trials.maxCostPerDay",
        "must be an amount in dollars, 0 or more, in quotes",
    ),
    Case(
        "chips worth less than nothing",
        POLICY,
        {"status.chips": [{"pool": "a100", "perChipHour": "-1"}]},
        "status.chips[0].perChipHour",
        "must be an amount in dollars, 0 or more, in quotes",
    ),
)
