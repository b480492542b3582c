"""The decider: planning as it is put together, for the operator, the command line and the benchmarks."""

from functools import cache

from rightpool.api.choices import FleetMode
from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.greedy import GreedyAllocator
from rightpool.planning.allocate.plan import Plan, plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.prediction.predictor import Predictor
from rightpool.prediction.step_model import StepModelPredictor


@cache
def _allocator(mode: FleetMode) -> Allocator:
    if mode is FleetMode.OFF:
        return GreedyAllocator()
    # Where the policy asks for it alone: to load it is a fiftieth of what `explain` takes.
    from rightpool.planning.allocate.fleet_allocator import FleetAllocator

    return FleetAllocator()


class Decider:
    """`plan` by one model and the way to share out chips that the policy names, with the memory of the last plan that
    spares it most of its work."""

    def __init__(self, predictor: Predictor | None = None, allocator: Allocator | None = None) -> None:
        self._predictor: Predictor = predictor or StepModelPredictor()
        self._allocator = allocator
        self._last: Plan | None = None

    def __call__(self, fleet: Fleet) -> Plan:
        allocator = self._allocator or _allocator(fleet.policy.fleet.mode)
        self._last = plan(fleet, self._predictor, allocator, self._last)
        return self._last
