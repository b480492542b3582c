"""AMD's device metrics exporter (https://github.com/ROCm/device-metrics-exporter).

Activity is in percent, memory in MiB, what went over a link of xGMI in KiB. The profiler's fields are absent unless
the exporter is set up to read them. Matrix units are MFMA. How many of the compute units are active is not said.
"""

from typing import Final

from rightpool.profiles.sample import Field
from rightpool.telemetry.sources.exporter import Counter, Exporter
from rightpool.telemetry.sources.source import Aggregate

_MEBIBYTE: Final = 2.0**20
_ACTIVITY: Final = (("gpu_gfx_activity", 0.01),)

AMD: Final = Exporter(
    name="amd",
    counters=(
        Counter(Field.CHIP_BUSY, _ACTIVITY, Aggregate.AVG),
        Counter(Field.SLOWEST_CHIP_BUSY, _ACTIVITY, Aggregate.MIN),
        Counter(Field.MATRIX_ACTIVE, (("gpu_prof_tensor_active_percent", 0.01),), Aggregate.AVG),
        Counter(Field.OCCUPANCY, (("gpu_prof_occupancy_percent", 0.01),), Aggregate.AVG),
        Counter(Field.MEMORY_BANDWIDTH, (("gpu_umc_activity", 0.01),), Aggregate.AVG),
        Counter(Field.MEMORY_USED, (("gpu_used_vram", _MEBIBYTE),), Aggregate.MAX),
        Counter(Field.MEMORY_TOTAL, (("gpu_total_vram", _MEBIBYTE),), Aggregate.MAX),
        Counter(
            Field.POWER,
            (("gpu_average_package_power", 1.0), ("gpu_package_power", 1.0), ("gpu_power_usage", 1.0)),
            Aggregate.AVG,
        ),
        Counter(Field.PEER_SENT, (("gpu_xgmi_link_tx", 1024.0),), Aggregate.AVG, rate=True),
        Counter(Field.PEER_RECEIVED, (("gpu_xgmi_link_rx", 1024.0),), Aggregate.AVG, rate=True),
        Counter(Field.TEMPERATURE, (("gpu_junction_temperature", 1.0),), Aggregate.MAX),
        Counter(Field.UNCORRECTED_ERRORS, (("gpu_ecc_uncorrect_total", 1.0),), Aggregate.MAX),
    ),
    chip="serial_number",
    part="gpu_partition_id",
    timed_by="gpu_gfx_activity",
)
