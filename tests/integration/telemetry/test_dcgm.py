"""Chip counters of a dcgm-exporter through a real Prometheus."""

from __future__ import annotations

import re
import time

import pytest

from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target
from rightpool.telemetry.sources.registry import trusting
from rightpool.telemetry.sources.sidecar_series import SIDECAR_SERIES
from tests.integration.telemetry.conftest import Fleet, read_of
from tests.patience import eventually
from tests.unit.telemetry.pages import Page

STARTED = time.time()
LLM = Target(RevisionKey("ml", "llm", 1), (("llm-0", "10.0.0.1"),), 10.0)
BARE = Target(RevisionKey("ml", "bare", 1), (("bare-0", "10.0.0.2"),), 10.0)
OTHER = Target(RevisionKey("other", "llm", 1), (("llm-0", "10.0.0.3"), ("dcgm-x", "")), 10.0)


@pytest.fixture(scope="module")
def source(fleet: Fleet, dcgm_page: str) -> PrometheusReader:
    """The exporter's own pod is dcgm-x. One job has sidecars that read a part of the chip, another has none."""
    bare = dcgm_page.replace("llm-0", "bare-0").replace("GPU-1", "GPU-2")
    for number, page in enumerate((dcgm_page, bare)):
        labels = {"job": "dcgm-exporter", "namespace": "monitoring", "pod": f"dcgm-{number}"}
        fleet.pod(labels, Page(lambda _, page=page: page))  # type: ignore[misc]
    sidecar = 'rightpool_chip_busy_ratio{chip="0"} 0.5\nrightpool_chip_memory_used_bytes{chip="0"} 7e10\n'
    fleet.pod({"namespace": "ml", "profiledjob": "llm", "revision": "1", "pod": "llm-0"}, Page(lambda _: sidecar))
    fleet.start()
    source = PrometheusReader(fleet.url, scrape_interval=2.5)

    def complete() -> bool:
        samples = source.read([LLM, BARE], time.time()).samples
        return BARE.key in samples and len(samples) == 2 and len(samples[LLM.key].values) == 12

    eventually(complete)
    return source


def test_dcgm_fills_what_the_sidecar_could_not_read(source: PrometheusReader) -> None:
    reading = read_of(source, [LLM, OTHER], LLM.key)
    assert reading.failures == ()
    sample = reading.samples[LLM.key]
    assert sample.values == pytest.approx(
        {
            Field.PODS: 1,
            Field.CHIP_BUSY: 0.5,
            Field.SLOWEST_CHIP_BUSY: 0.5,
            Field.COMPUTE_ACTIVE: 0.812345,
            Field.MATRIX_ACTIVE: 0.374102,
            Field.MEMORY_BANDWIDTH: 0.288614,
            Field.POWER: 362.418,
            Field.MEMORY_USED: 7e10,
            Field.MOST_COMPUTE_ACTIVE: 0.812345,
            Field.LEAST_COMPUTE_ACTIVE: 0.812345,
            Field.PEER_SENT: 61234567890,
            Field.PCIE_SENT: 187431022,
        }
    )
    assert OTHER.key not in reading.samples, "a pod of the same name elsewhere is another pod"


def test_without_sidecars_the_chips_alone_are_known(source: PrometheusReader) -> None:
    sample = read_of(source, [BARE], BARE.key).samples[BARE.key]
    assert sample.values[Field.CHIP_BUSY] == pytest.approx(0.99)
    assert sample.values[Field.MEMORY_USED] == 71234 * 2**20
    assert Field.PODS not in sample.values
    assert STARTED < sample.at < time.time(), "the time of a scrape"


@pytest.mark.usefixtures("source")  # which starts the fleet
def test_counters_that_the_chip_does_not_have_are_missing(fleet: Fleet, dcgm_page: str) -> None:
    blank = "9223372036854775794"
    assert blank in dcgm_page
    page = dcgm_page.replace("llm-0", "old-0").replace("GPU-1", "GPU-3").replace("0.812345", blank)
    fleet.pod({"job": "dcgm-exporter", "namespace": "monitoring", "pod": "dcgm-2"}, Page(lambda _: page))
    fleet.publish()
    target = Target(RevisionKey("ml", "old", 1), (("old-0", ""),), 10.0)
    reader = PrometheusReader(fleet.url, scrape_interval=2.5)
    values = read_of(reader, [target], target.key).samples[target.key].values
    reader.close()
    assert Field.COMPUTE_ACTIVE not in values
    assert Field.MATRIX_ACTIVE in values


@pytest.mark.usefixtures("source")
def test_a_tenants_page_says_nothing_of_other_peoples_chips(fleet: Fleet, dcgm_page: str) -> None:
    """It serves the exporter's series with the victim's pod in their labels, and would count as its busiest chip."""
    forged = re.sub(r" \d[\d.]*$", " 1", dcgm_page.replace("GPU-1", "GPU-9"), flags=re.MULTILINE)
    assert "llm-0" in forged and forged != dcgm_page
    fleet.pod({"namespace": "attacker", "pod": "mine"}, Page(lambda _: forged))
    fleet.publish()
    reader = PrometheusReader(fleet.url, scrape_interval=2.5)
    believing = PrometheusReader(fleet.url, scrape_interval=2.5, sources=trusting(["pods"]))
    eventually(
        lambda: Field.POWER in believing.read([LLM], time.time()).samples[LLM.key].values, "the forged page is scraped"
    )
    values = read_of(reader, [LLM], LLM.key).samples[LLM.key].values
    reader.close()
    believing.close()
    assert values[Field.COMPUTE_ACTIVE] == pytest.approx(0.812345)
    assert values[Field.LEAST_COMPUTE_ACTIVE] == pytest.approx(0.812345)


def test_dcgm_is_optional(fleet: Fleet, source: PrometheusReader) -> None:
    without = PrometheusReader(fleet.url, scrape_interval=2.5, sources=[SIDECAR_SERIES])
    sample = read_of(without, [LLM], LLM.key).samples[LLM.key]
    without.close()
    assert sample.values.keys() == {Field.PODS, Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY, Field.MEMORY_USED}
