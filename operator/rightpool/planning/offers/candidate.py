"""A candidate: a placement with its estimate, its cost, and a verdict."""

from rightpool.api.estimate import Estimate
from rightpool.api.placement import Placement
from rightpool.api.status import PlaceSize
from rightpool.api.value_object import value_object
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.offers.flops import PeakExceeded
from rightpool.planning.offers.rejection import Rejection
from rightpool.prediction.predictor import Origin


@value_object
class Candidate:
    """One row of an evaluation, made for who asks: to explain, to recommend, or because it is taken."""

    placement: Placement
    """Where."""
    throughput: Estimate | None
    """Units of work a second; None where it can't be predicted."""
    cost_per_hour: float | None
    """Dollars; None where the price is unknown."""
    cost_per_million: Estimate | None
    """Dollars per million units."""
    healthy: float | None = None
    """Where the job is: units of work a second without the fault that throttles its chips. None where there is none."""
    useful: float = 1.0
    """Share of the time that is not lost to interruptions of spot capacity; cost_per_million has it in."""
    scaling_efficiency: float | None = None
    """Throughput / (chips × one-chip throughput)."""
    flops_utilization: float | None = None
    """Model FLOPs utilization, 0-1; None where FLOPs, precision or the chip's peak are not known or contradict."""
    peak_exceeded: PeakExceeded | None = None
    """Where the job is: why its FLOPs and the chip's peak can't both be so. None where they can."""
    score: float | None = None
    """Dollars per million units with the time at its value; lower is better."""
    saving: float | None = None
    """Share of the current score that moving saves; negative where it is worse."""
    probability: float | None = None
    """That it is better at all."""
    rejection: Rejection | None = None
    """None means eligible."""
    origin: Origin = Origin.PREDICTED
    """Where throughput is from."""
    size: PlaceSize | None = None
    """Of a server: what it would be there. Its throughput is then the requests a second that share its dollars."""
    unit: WorkUnit = WorkUnit.SAMPLES
    """What throughput and cost_per_million count."""
    vendor: str | None = None
    """Who makes the chips; None where the pool is not known."""
    chip: str | None = None
    """Key of the chips in the catalog; None where the pool is not known."""
    template_vendor: str | None = None
    """Whose chips the pod template itself is taken to run on, where these are used with a variant."""

    @property
    def eligible(self) -> bool:
        """No gate rejected it."""
        return self.rejection is None
