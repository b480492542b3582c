"""The decider: planning as it is put together, for the operator, the command line and the benchmarks."""

from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.greedy import GreedyAllocator
from rightpool.planning.allocate.plan import Plan, plan
from rightpool.planning.jobs.fleet import Fleet
from rightpool.prediction.predictor import Predictor
from rightpool.prediction.step_model import StepModelPredictor


class Decider:
    """`plan` by one model and one way to share out chips, with the memory of the last plan that spares it most of its
    work."""

    def __init__(self, predictor: Predictor | None = None, allocator: Allocator | None = None) -> None:
        self._predictor: Predictor = predictor or StepModelPredictor()
        self._allocator: Allocator = allocator or GreedyAllocator()
        self._last: Plan | None = None

    def __call__(self, fleet: Fleet) -> Plan:
        self._last = plan(fleet, self._predictor, self._allocator, self._last)
        return self._last
