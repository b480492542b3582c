"""AWS' neuron-monitor with its Prometheus script
(https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-monitor-user-guide.html).

Its series carry a pod only where it runs in the pod, or where a scraper adds one; then each NeuronCore is a chip. A
core that is in use is not told from one whose matrix units work.
"""

from typing import Final

from rightpool.profiles.sample import Field
from rightpool.telemetry.sources.exporter import Counter, Exporter
from rightpool.telemetry.sources.source import Aggregate

_IN_USE: Final = (("neuroncore_utilization_ratio", 1.0),)

NEURON: Final = Exporter(
    name="neuron",
    counters=(
        Counter(Field.CHIP_BUSY, _IN_USE, Aggregate.AVG),
        Counter(Field.SLOWEST_CHIP_BUSY, _IN_USE, Aggregate.MIN),
    ),
    chip="neuroncore",
    timed_by="neuroncore_utilization_ratio",
)
