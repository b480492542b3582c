"""What libtpu says of its chips: a gRPC service that it offers inside the pod for as long as a program holds its TPU
(https://github.com/AI-Hypercomputer/cloud-accelerator-diagnostics, whose stubs of the protocol are used).

Imports gRPC, which takes 20 MB of memory: only sidecars of programs on a TPU import this module. Any program of the pod
may answer in libtpu's place, so that every number is checked, and what can't be true is left out.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import Any, Final

import grpc
from tpu_info.proto import tpu_metric_service_pb2 as messages
from tpu_info.proto.tpu_metric_service_pb2_grpc import RuntimeMetricServiceStub

from rightpool_profiler.report import Chip

FIRST_PORT: Final = 8431
"""Of the first process; others of the pod have the ports after it."""

_SECONDS: Final = 2.0  # for an answer, within the pod
_MOST_BYTES: Final = 2**20  # of an answer
_DUTY: Final = "tpu.runtime.tensorcore.dutycycle.percent"  # time in which the TensorCore did anything, of each chip
_BANDWIDTH: Final = "tpu.runtime.hbm.utilization.percent"  # of the memory bandwidth
_USED: Final = "tpu.runtime.hbm.memory.usage.bytes"  # of each core
_TOTAL: Final = "tpu.runtime.hbm.memory.total.bytes"  # of each core
_MOST: Final = {_DUTY: 100.0, _BANDWIDTH: 100.0, _USED: 2.0**45, _TOTAL: 2.0**45}

Readings = Mapping[str, tuple[float, ...]]
"""The values of each metric, in the order of the devices."""


async def read_chips(count: int, first_port: int = FIRST_PORT) -> list[Chip]:
    """The chips of this pod, of which it has at most `count`; none where nothing answers."""
    read = await asyncio.gather(*(_read(first_port + number, count) for number in range(count)))
    return [chip for number, readings in enumerate(read) for chip in chips_of(number, readings, count)][:count]


def chips_of(process: int, readings: Readings, most: int) -> list[Chip]:
    """The chips that one process says it has, at most so many. Each core of a chip has a part of the memory."""
    counts = [len(values) for values in readings.values()]
    count = min([most, *counts]) if counts else 0
    if count == 0 or any(other % count for other in counts):
        return []
    prefix = f"tpu-{process}." if process else "tpu-"
    found = []
    for number in range(count):
        own = {
            metric: values[number * len(values) // count : (number + 1) * len(values) // count]
            for metric, values in readings.items()
        }
        used, total = (math.fsum(own[metric]) if metric in own else None for metric in (_USED, _TOTAL))
        ratios = {
            name: math.fsum(own[metric]) / len(own[metric]) / 100.0
            for name, metric in (("busy", _DUTY), ("memory_bandwidth", _BANDWIDTH))
            if metric in own
        }
        if used is not None and total is not None and used > total:
            used = total = None
        found.append(Chip(uuid=f"{prefix}{number}", ratios=ratios, memory_used=used, memory_total=total))
    return found


async def _read(port: int, most: int) -> Readings:
    """What the process at this port says."""
    options = [("grpc.max_receive_message_length", _MOST_BYTES), ("grpc.enable_http_proxy", 0)]
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            service = RuntimeMetricServiceStub(channel)
            listed = await service.ListSupportedMetrics(messages.ListSupportedMetricsRequest(), timeout=_SECONDS)
            known = {metric.metric_name for metric in listed.supported_metric}
            found = {}
            for name in _MOST:
                if name in known:
                    request = messages.MetricRequest(metric_name=name, skip_node_aggregation=True)
                    answer = await service.GetRuntimeMetric(request, timeout=_SECONDS)
                    found[name] = _values(name, answer.metric.metrics, 2 * most)
            return {name: values for name, values in found.items() if values}
    except grpc.RpcError:  # nobody listens, or it is not libtpu
        return {}


def _values(name: str, metrics: Any, most: int) -> tuple[float, ...]:
    """The gauges in the order of their devices; none where one of them can't be true."""
    found: dict[int, float] = {}
    for metric in metrics:
        kind = metric.gauge.WhichOneof("value")
        if kind not in ("as_double", "as_int"):
            return ()
        value = float(getattr(metric.gauge, kind))
        if not 0.0 <= value <= _MOST[name]:
            return ()
        found[metric.attribute.value.int_attr] = value
    return tuple(found[device] for device in sorted(found)) if len(found) <= most else ()
