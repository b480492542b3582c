"""Publishes at the PlacementPolicy whether it holds, and what holds the fleet back."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from rightpool.api.conditions import Condition, PolicyConditionType, Reason, find_condition, set_conditions
from rightpool.api.policy import MAX_WORTHS, ChipWorth, PlacementPolicyStatus
from rightpool.api.wording import brief
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import PLACEMENT_POLICIES
from rightpool.planning.allocate.allocator import NOTHING_CHOSEN, Choice
from rightpool.planning.offers.evidence import Limit
from rightpool.reporting.stored_policy import StoredPolicy
from rightpool.runtime.act.status_publisher import StatusPublisher, stored_conditions
from rightpool.runtime.observe.facts import meta

# After which a refused status is sent again: the definition in the cluster may have been replaced.
_REFUSED_SECONDS: Final = 60.0

logger = logging.getLogger(__name__)


class PolicyPublisher:
    """Only the leader uses it."""

    def __init__(self, statuses: StatusPublisher) -> None:
        self._statuses = statuses
        self._problem: str | None = None
        self._refused_until = 0.0

    def publish(self, policy: StoredPolicy, stop: Limit | None, now: float, choice: Choice = NOTHING_CHOSEN) -> bool:
        """Whether its status was written. stop: what holds back the whole fleet; None where nothing does. choice: how
        the chips were shared out."""
        if policy.problem != self._problem and policy.problem is not None:
            logger.warning("PlacementPolicy: %s", policy.problem)
        self._problem = policy.problem
        if policy.body is None or now < self._refused_until:
            return False
        try:
            status = policy_status(policy.body, policy.problem, stop, now, choice)
            return self._statuses.publish(PLACEMENT_POLICIES, policy.body, status, PolicyConditionType)
        except ClusterError as error:
            self._refused_until = now + _REFUSED_SECONDS
            logger.warning("the status of the PlacementPolicy can't be written: %s", error.message)
            return False


def policy_status(
    body: Mapping[str, Any], problem: str | None, stop: Limit | None, now: float, choice: Choice
) -> Mapping[str, Any]:
    """The status of a stored policy, in wire form. problem: why it can't be read. stop: what holds back the fleet.
    choice: how its chips were shared out."""
    generation = int(meta(body).get("generation") or 0)
    ready = Condition(
        PolicyConditionType.READY.value,
        "True" if problem is None else "False",
        (Reason.POLICY_READ if problem is None else Reason.INVALID_SPEC).value,
        problem or "the policy can be read, and holds",
        generation,
    )
    trusted = Condition(
        PolicyConditionType.TRUSTED.value,
        "True" if stop is None else "False",
        (Reason.BREAKER_CLOSED if stop is None else stop.reason).value,
        "" if stop is None else stop.text(now),
        generation,
    )
    stored = stored_conditions(body, PolicyConditionType)
    made = [ready, trusted]
    if choice.failure is not None or find_condition(stored, PolicyConditionType.PLANNING) is not None:
        made.append(_planning(choice.failure, generation))
    conditions = set_conditions(stored, made, now)
    dearest = choice.dearest(MAX_WORTHS)
    chips = [ChipWorth(pool=pool, per_chip_hour=Decimal(f"{price:.2f}")) for pool, price in dearest]
    return PlacementPolicyStatus(observed_generation=generation, chips=chips, conditions=list(conditions)).to_dict()


def _planning(failure: str | None, generation: int) -> Condition:
    """Whether the plan of the fleet is made."""
    if failure is None:
        return Condition(PolicyConditionType.PLANNING.value, "True", Reason.FLEET_PLANNED.value, "", generation)
    message = f"a defect of the operator: {brief(failure, 60)}; chips go to one job after another until it is mended"
    return Condition(PolicyConditionType.PLANNING.value, "False", Reason.FLEET_PLAN_FAILED.value, message, generation)
