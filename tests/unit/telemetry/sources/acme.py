"""A vendor's exporter that does not exist: what a new source is, as a whole."""

from typing import Final

from rightpool.profiles.sample import Field, Quality
from rightpool.telemetry.sources.exporter import Counter, Exporter
from rightpool.telemetry.sources.source import Aggregate

_ACTIVE: Final = (("acme_chip_active_percent", 0.01),)

ACME: Final = Exporter(
    name="acme",
    counters=(
        Counter(Field.CHIP_BUSY, _ACTIVE, Aggregate.AVG),
        Counter(Field.SLOWEST_CHIP_BUSY, _ACTIVE, Aggregate.MIN),
        Counter(Field.POWER, (("acme_package_power_milliwatts", 0.001),), Aggregate.AVG),
        Counter(Field.MEMORY_USED, (("acme_memory_used_bytes", 1.0),), Aggregate.MAX),
        Counter(Field.MEMORY_BANDWIDTH, (("acme_memory_busy_estimate", 1.0),), Aggregate.AVG, Quality.DERIVED),
    ),
    chip="serial",
    timed_by="acme_chip_active_percent",
)

FIELDS: Final = {
    Field.CHIP_BUSY: 0.7,
    Field.SLOWEST_CHIP_BUSY: 0.6,
    Field.POWER: 500.0,
    Field.MEMORY_USED: 9.6e10,
    Field.MEMORY_BANDWIDTH: 0.375,
}
"""What its recorded page says of the pod ml/llm-0."""
