"""GKE's TPU device plugin, at port 2112 of a node
(https://cloud.google.com/kubernetes-engine/docs/how-to/tpus#metrics).

The duty cycle is the time in which the TensorCore did anything; its utilization is what it computed of what it can.
"""

from typing import Final

from rightpool.profiles.sample import Field
from rightpool.telemetry.sources.exporter import Counter, Exporter
from rightpool.telemetry.sources.source import Aggregate

_DUTY: Final = (("duty_cycle", 0.01),)

TPU_DEVICE_PLUGIN: Final = Exporter(
    name="tpu-device-plugin",
    counters=(
        Counter(Field.CHIP_BUSY, _DUTY, Aggregate.AVG),
        Counter(Field.SLOWEST_CHIP_BUSY, _DUTY, Aggregate.MIN),
        Counter(Field.MATRIX_ACTIVE, (("tensorcore_utilization", 0.01),), Aggregate.AVG),
        Counter(Field.MEMORY_BANDWIDTH, (("memory_bandwidth_utilization", 0.01),), Aggregate.AVG),
        Counter(Field.MEMORY_USED, (("memory_used", 1.0),), Aggregate.MAX),
        Counter(Field.MEMORY_TOTAL, (("memory_total", 1.0),), Aggregate.MAX),
    ),
    chip="accelerator_id",
    timed_by="duty_cycle",
    where=',make="cloud-tpu"',
)
