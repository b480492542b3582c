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
    recording = recorded("amd")
    started = time.time()

    def page() -> str:
        at = int(1000 * time.time())
        kibibytes = SENT / 1024 / 2 * (at / 1000 - started + 100)
        return _COUNTER.sub(lambda found: f"{found[1]} {kibibytes} {at}", recording)

    fleet.pod({"namespace": "monitoring", "pod": "exporter"}, Page(lambda _: page()))
    fleet.start()
    key = RevisionKey("ml", "llm", 1)
    reader = PrometheusReader(fleet.url, scrape_interval=1.0)
    found: list[dict[Field, float]] = []

    def complete() -> bool:
        sample = reader.read([Target(key, (("llm-0", "10.0.0.1"),), 10.0)], time.time()).samples.get(key)
        if sample is not None:
            found.append(dict(sample.values))
        return bool(found) and Field.PEER_SENT in found[-1]

    eventually(complete)
    reader.close()
    assert Field.PEER_SENT not in found[0] and Field.CHIP_BUSY in found[0]
    assert found[-1][Field.PEER_SENT] == pytest.approx(SENT, rel=0.05)
