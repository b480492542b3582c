"""All targets, in the order in which they are asked."""

from typing import Final

from rightpool.api.choices import Objective
from rightpool.api.conditions import Reason
from rightpool.api.targets import Targets
from rightpool.planning.judge.yardstick import Yardstick
from rightpool.planning.offers.rejection import Rejection
from rightpool.planning.offers.targets.budget import Budget
from rightpool.planning.offers.targets.deadline import Deadline
from rightpool.planning.offers.targets.flops_utilization import FlopsUtilization
from rightpool.planning.offers.targets.hourly_cost import HourlyCost
from rightpool.planning.offers.targets.sample_cost import SampleCost
from rightpool.planning.offers.targets.scaling import Scaling
from rightpool.planning.offers.targets.target import JobTarget

TARGETS: Final[tuple[JobTarget, ...]] = (
    HourlyCost(),
    SampleCost(),
    Scaling(),
    FlopsUtilization(),
    Deadline(),
    Budget(),
)


def target_of(reason: Reason) -> JobTarget | None:
    """The target that a move with this reason was made for; None where it was made for something else."""
    return next((target for target in TARGETS if target.missed is reason), None)


def target_missed(rejection: Rejection) -> JobTarget | None:
    """The target that is missed; None where a placement is rejected for something else."""
    return next((target for target in TARGETS if target.reason is rejection.reason), None)


def yardstick_of(reason: Reason) -> Yardstick:
    """What judges a move that was made for this reason."""
    target = target_of(reason)
    if target is not None:
        return target.yardstick
    return Yardstick.NONE if reason is Reason.PLACEMENT_DISALLOWED else Yardstick.OBJECTIVE


def dollar_target(targets: Targets) -> str | None:
    """The first declared target that is in dollars, as users write it."""
    return next((target.name for target in TARGETS if target.in_dollars and target.declared(targets)), None)


def needs_price(targets: Targets) -> bool:
    """Whether a placement without a price can't be compared with the others."""
    return targets.objective is not Objective.MINIMIZE_TIME or dollar_target(targets) is not None
