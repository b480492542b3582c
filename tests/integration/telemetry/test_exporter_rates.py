"""Rates of an exporter's counters, through a real Prometheus: none while a series is young."""

from __future__ import annotations

import re
import time

import pytest

from rightpool.profiles.sample import Field, RevisionKey
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target
from tests.integration.telemetry.conftest import Fleet
from tests.patience import eventually
from tests.unit.telemetry.pages import Page
from tests.unit.telemetry.sources.recordings import recorded

SENT = 4e9  # by each chip, over two links
_COUNTER = re.compile(r"^(gpu_xgmi_link_tx\{[^}]*\}) .*$", re.MULTILINE)


def test_young_series_give_no_rate_rather_than_too_low_a_one(fleet: Fleet) -> None:
    started = time.time()
    fleet.start()
    reader = PrometheusReader(fleet.url, scrape_interval=2.5)

    def readings(number: int) -> list[dict[Field, float]]:
        """Of a new exporter, until it has a rate."""
        recording = recorded("amd").replace("llm-0", f"llm-{number}")

        def page() -> str:
            at = int(1000 * time.time())
            kibibytes = SENT / 1024 / 2 * (at / 1000 - started + 100)
            return _COUNTER.sub(lambda found: f"{found[1]} {kibibytes} {at}", recording)

        labels = {"job": "dcgm-exporter", "namespace": "monitoring", "pod": f"exporter-{number}"}
        fleet.pod(labels, Page(lambda _: page()))
        fleet.publish()
        key = RevisionKey("ml", f"llm{number}", 1)
        found: list[dict[Field, float]] = []

        def complete() -> bool:
            sample = reader.read([Target(key, ((f"llm-{number}", "10.0.0.1"),), 10.0)], time.time()).samples.get(key)
            if sample is not None:
                found.append(dict(sample.values))
            return bool(found) and Field.PEER_SENT in found[-1]

        eventually(complete)
        return found

    # Where the machine is busy, the first reading may come late: another exporter, until one is read while it is young.
    for number in range(20):
        found = readings(number)
        assert Field.CHIP_BUSY in found[0]
        for one in found:
            assert one.get(Field.PEER_SENT, SENT) == pytest.approx(SENT, rel=0.05)
        if Field.PEER_SENT not in found[0]:
            break
    else:
        pytest.fail("even the first reading of a series has a rate")
    reader.close()
