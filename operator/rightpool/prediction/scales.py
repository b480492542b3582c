"""Scales: how much chips, jobs and fleets differ, as standard deviations of the logarithm of throughput.

They are fitted by `make fit` (tools/fit), by marginal likelihood on published measurements.
"""

from rightpool.api.value_object import value_object


@value_object
class Scales:
    """Hyper-parameters of the chip model."""

    exponents: float
    """Of each exponent of peak FLOP/s, memory bandwidth and power about its prior mean, for all chips and jobs."""
    exponents_class: float
    """The same by class of precision."""
    arch: float
    """Of a micro-architecture: what its data sheet does not say."""
    chip: float
    """Of a chip within its micro-architecture."""
    fallback: float
    """Of fp32 on chips that have no tf32."""
    fallback_half: float
    """Of programs of half precision there: what they keep in fp32 runs without tf32, too."""
    fleet_exponents: float
    """Of a fleet's own exponents: its stack and its kinds of jobs."""
    fleet_chip: float
    """Of a chip in one fleet."""
    job_flops: float
    """Of a job's own exponent of FLOP/s."""
    job_bandwidth: float
    """Of a job's own exponent of bandwidth."""
    job_level: float
    """Of how much of the usual speed-up a job gets at all: what waits for the host gets less."""
    job_arch: float
    """Of a job on a micro-architecture."""
    job_fallback: float
    """Of a job of fp32 on chips that have no tf32."""
    job_fallback_half: float
    """Of a job of half precision there."""
    rest: float
    """Of a job on a chip, at half precision and less."""
    rest_single: float
    """Of a job on a chip, at single precision."""
    fleets: float
    """Of the logarithm of how much more than usual the jobs of a fleet differ."""
