"""libtpu's service over its real protocol: what a TPU's process says, and what a program in its place might."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tpu_info.proto import tpu_metric_service_pb2 as messages
from tpu_info.proto import tpu_metric_service_pb2_grpc as stubs

from rightpool_profiler.libtpu import chips_of, read_chips
from tests.unit.profiler.test_state import metrics, report, state

DUTY = "tpu.runtime.tensorcore.dutycycle.percent"
BANDWIDTH = "tpu.runtime.hbm.utilization.percent"
USED = "tpu.runtime.hbm.memory.usage.bytes"
TOTAL = "tpu.runtime.hbm.memory.total.bytes"
GIB = 2**30


class Libtpu(stubs.RuntimeMetricServiceServicer):
    """Says what it was given, each value with the number of its device; devices in the opposite order."""

    def __init__(self, served: Mapping[str, Sequence[Any]]) -> None:
        self._served = served

    async def ListSupportedMetrics(self, request: Any, context: Any) -> Any:
        listed = [messages.SupportedMetric(metric_name=name) for name in (*self._served, "hlo.queue.size.gauge")]
        return messages.ListSupportedMetricsResponse(supported_metric=listed)

    async def GetRuntimeMetric(self, request: Any, context: Any) -> Any:
        assert request.skip_node_aggregation  # each process speaks for itself
        found = []
        for device, value in reversed(list(enumerate(self._served[request.metric_name]))):
            attribute = messages.Attribute(key="device-id", value=messages.AttrValue(int_attr=device))
            kind = {float: "as_double", int: "as_int", str: "as_string"}[type(value)]
            found.append(messages.Metric(attribute=attribute, gauge=messages.Gauge(**{kind: value})))
        return messages.MetricResponse(metric=messages.TPUMetric(name=request.metric_name, metrics=found))


@asynccontextmanager
async def serving(*processes: Mapping[str, Sequence[Any]], port: int | None = None) -> AsyncIterator[int]:
    """The port of the first process, a free one where none is given; the others have those after it."""
    for first in range(28431, 29431, 10) if port is None else (port,):
        servers = [grpc.aio.server() for _ in processes]
        try:
            for number, (server, served) in enumerate(zip(servers, processes, strict=True)):
                stubs.add_RuntimeMetricServiceServicer_to_server(Libtpu(served), server)
                server.add_insecure_port(f"127.0.0.1:{first + number}")
        except RuntimeError:  # somebody else has the port
            continue
        break
    else:
        pytest.fail("no port is free")
    try:
        for server in servers:
            await server.start()
        yield first
    finally:
        await asyncio.gather(*(server.stop(None) for server in servers))


async def test_chips_of_one_process() -> None:
    served = {DUTY: [90.0, 0.0], BANDWIDTH: [40.0, 0.0], USED: [10 * GIB, 0], TOTAL: [16 * GIB, 16 * GIB]}
    async with serving(served) as port:
        one, other = await read_chips(2, port)
    assert (one.uuid, one.ratios, one.memory_used, one.memory_total) == (
        "tpu-0", {"busy": 0.9, "memory_bandwidth": 0.4}, 10 * GIB, 16 * GIB,
    )  # fmt: skip
    assert (other.uuid, other.ratios["busy"], other.memory_used) == ("tpu-1", 0.0, 0)


async def test_both_cores_of_a_chip_have_a_part_of_its_memory() -> None:
    async with serving({DUTY: [50.0], USED: [3 * GIB, 4 * GIB], TOTAL: [16 * GIB, 16 * GIB]}) as port:
        (chip,) = await read_chips(1, port)
    assert (chip.ratios, chip.memory_used, chip.memory_total) == ({"busy": 0.5}, 7 * GIB, 32 * GIB)


async def test_processes_with_a_chip_each() -> None:
    async with serving({DUTY: [80.0]}, {DUTY: [20.0]}) as port:
        found = await read_chips(2, port)
    assert {chip.uuid: chip.ratios["busy"] for chip in found} == {"tpu-0": 0.8, "tpu-1.0": 0.2}


async def test_nobody_answers() -> None:
    async with serving() as port:
        assert await read_chips(2, port) == []


async def test_who_is_not_libtpu_is_no_chip() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        assert await read_chips(1, server.sockets[0].getsockname()[1]) == []


@pytest.mark.parametrize("value", [-1.0, 100.5, math.nan, math.inf, "much"], ids=str)
async def test_what_cannot_be_true_is_missing(value: float | str) -> None:
    async with serving({DUTY: [value], USED: [GIB], TOTAL: [16 * GIB]}) as port:
        (chip,) = await read_chips(1, port)
    assert chip.ratios == {} and chip.memory_used == GIB


async def test_more_memory_in_use_than_there_is_is_missing() -> None:
    async with serving({DUTY: [1.0], USED: [17 * GIB], TOTAL: [16 * GIB]}) as port:
        (chip,) = await read_chips(1, port)
    assert chip.memory_used is None and chip.memory_total is None


async def test_a_pod_has_no_more_chips_than_it_was_given() -> None:
    async with serving({DUTY: [1.0] * 40}) as port:
        assert await read_chips(4, port) == []


_COUNTS = st.integers(0, 9)


@given(st.dictionaries(st.sampled_from([DUTY, BANDWIDTH, USED, TOTAL]), _COUNTS), st.integers(1, 8))
def test_nothing_is_invented(counts: dict[str, int], most: int) -> None:
    served = {metric: tuple(float(device) for device in range(count)) for metric, count in counts.items() if count}
    chips = chips_of(0, served, most)
    assert len(chips) <= most
    for chip in chips:
        assert set(chip.ratios) == {
            name for name, of in (("busy", DUTY), ("memory_bandwidth", BANDWIDTH)) if of in served
        }
        assert all(0.0 <= ratio <= 1.0 for ratio in chip.ratios.values())
        assert (chip.memory_total is None) or TOTAL in served


async def test_the_page_of_a_program_on_a_tpu() -> None:
    made = state(2)
    assert not made.on_tpu(1.0)
    made.apply(report(platform="tpu"), 1.0, 0.0)
    assert made.on_tpu(1.0)
    made.add_tpu_chips([], 1.0)
    assert not any("libtpu" in name for name in metrics(made, 1.0))  # it has never answered
    async with serving({DUTY: [90.0], USED: [GIB], TOTAL: [16 * GIB]}) as port:
        made.add_tpu_chips(await read_chips(1, port), 1.0)
    found = metrics(made, 1.0)
    assert found['rightpool_chip_busy_ratio{chip="tpu-0"}'] == 0.9
    assert found['rightpool_chip_memory_total_bytes{chip="tpu-0"}'] == 16 * GIB
    assert found['rightpool_source_up{source="libtpu"}'] == 1
    made.add_tpu_chips([], 2.0)
    assert metrics(made, 2.0)['rightpool_source_up{source="libtpu"}'] == 0


def test_a_program_that_has_gone_leaves_no_source_behind() -> None:
    """Nobody is asked any more then."""
    made = state(2)
    made.apply(report(platform="tpu"), 1.0, 0.0)
    made.add_tpu_chips(chips_of(0, {DUTY: (90.0,)}, 1), 1.0)
    assert metrics(made, 1.0)['rightpool_source_up{source="libtpu"}'] == 1
    assert metrics(made, 1000.0)['rightpool_source_up{source="libtpu"}'] == 0
