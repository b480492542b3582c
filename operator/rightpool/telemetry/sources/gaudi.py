"""Intel's exporter for Gaudi (https://docs.habana.ai/en/latest/Orchestration/Prometheus_Metric_Exporter.html).

Utilization is in percent and says whether the chip did anything, so that busy time is derived. Which units worked is
not said; nor is in which unit traffic over PCIe is counted, so that it is not read.
"""

from typing import Final

from rightpool.profiles.sample import Field, Quality
from rightpool.telemetry.sources.exporter import Counter, Exporter
from rightpool.telemetry.sources.source import Aggregate

_UTILIZATION: Final = (("habanalabs_utilization", 0.01),)

GAUDI: Final = Exporter(
    name="gaudi",
    counters=(
        Counter(Field.CHIP_BUSY, _UTILIZATION, Aggregate.AVG, Quality.DERIVED),
        Counter(Field.SLOWEST_CHIP_BUSY, _UTILIZATION, Aggregate.MIN, Quality.DERIVED),
        Counter(Field.MEMORY_USED, (("habanalabs_memory_used_bytes", 1.0),), Aggregate.MAX),
        Counter(Field.MEMORY_TOTAL, (("habanalabs_memory_total_bytes", 1.0),), Aggregate.MAX),
        Counter(Field.POWER, (("habanalabs_power_mW", 0.001),), Aggregate.AVG),
        Counter(Field.TEMPERATURE, (("habanalabs_temperature_onchip", 1.0),), Aggregate.MAX),
    ),
    chip="UUID",
    timed_by="habanalabs_utilization",
    namespace_labels=("pod_namespace",),
    pod_labels=("pod_name",),
)
