"""Every panel against a real Prometheus that scrapes what the operator and a profiler export."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest

from dashboards.answers import check_panels
from devcluster import deps
from rightpool import contract
from rightpool.api.status import Outcome
from rightpool.runtime.metrics import OperatorMetrics
from rightpool_profiler.exposition import Histogram, Sample, render

PHASES = ("list", "snapshot", "telemetry", "profile", "plan", "step", "execute")


class Fleet:
    """One leader and one pod of a job; everything moves on with every scrape."""

    def __init__(self) -> None:
        self.operator = OperatorMetrics(lambda: True)
        self._scrapes = 0

    def operator_page(self) -> bytes:
        metrics = self.operator
        metrics.leader.set(1)
        metrics.telemetry_up.set(1)
        metrics.pools.set(3)
        metrics.spent.set(40.5)
        metrics.saved.set(96.1)
        for state in ("Waiting", "Running", "Migrating", "Suspended", "Finished"):
            metrics.jobs.labels(state).set(1)
        for phase in PHASES:
            metrics.cycle_seconds.labels(phase).observe(0.02)
        metrics.decisions.labels("Move", "CheaperPoolMeetsTargets").inc()
        metrics.migrations.labels(Outcome.VERIFIED.value).inc()
        return generate_latest(metrics.registry)

    def profiler_page(self) -> bytes:
        self._scrapes += 1
        chip = {contract.LABEL_CHIP: "GPU-0"}
        gauges = {
            contract.CHIP_BUSY: 0.9,
            contract.CHIP_COMPUTE_ACTIVE: 0.7,
            contract.CHIP_MATRIX_ACTIVE: 0.4,
            contract.CHIP_MEMORY_BANDWIDTH: 0.5,
            contract.CHIP_MEMORY_USED: 2.0**33,
            contract.CHIP_MEMORY_TOTAL: 2.0**34,
        }
        samples = [Sample(name, chip, value) for name, value in gauges.items()]
        samples += [Sample(contract.STEP_SHARE, {contract.LABEL_PART: part}, 0.1) for part in contract.PARTS]
        samples += [
            Sample(contract.SAMPLES, {}, 100.0 * self._scrapes),
            Sample(contract.STEPS, {}, float(self._scrapes)),
            Sample(contract.FIELD_QUALITY, {"field": contract.CHIP_BUSY, "quality": contract.QUALITY_MEASURED}, 1.0),
        ]
        steps = Histogram(contract.STEP_SECONDS, (0.1, 0.5), (self._scrapes, 0, 0), 0.09 * self._scrapes)
        return render(samples, [steps]).encode()


@pytest.fixture(scope="module")
def pages() -> Iterator[str]:
    fleet = Fleet()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = fleet.operator_page() if self.path == "/operator" else fleet.profiler_page()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def prometheus(pages: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = deps.find("prometheus")
    assert program is not None, "Debian package prometheus: python -m devcluster deps"
    folder = tmp_path_factory.mktemp("prometheus")
    config = folder / "prometheus.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s"},
                "scrape_configs": [
                    _job("operator", "/operator", pages, {"namespace": "rightpool-system", "pod": "rightpool-0"}),
                    _job(
                        "jobs",
                        "/metrics",
                        pages,
                        {"namespace": "research", "pod": "bert-r1-0", "profiledjob": "bert", "revision": "1"},
                    ),
                ],
            }
        )
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={config}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
                "--log.level=warn",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _until_ready(address, folder / "log")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _job(name: str, path: str, target: str, labels: dict[str, str]) -> dict[str, object]:
    return {"job_name": name, "metrics_path": path, "static_configs": [{"targets": [target], "labels": labels}]}


def _until_ready(address: str, log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/-/ready", timeout=10):
                return
        except OSError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)


def test_every_panel_has_data(prometheus: str) -> None:
    deadline = time.monotonic() + 240
    while (failures := check_panels(prometheus)) and time.monotonic() < deadline:
        time.sleep(1)
    assert failures == []


def test_every_panel_has_data_for_one_job_of_one_operator(prometheus: str) -> None:
    chosen = {"operator": "rightpool-system", "namespace": "research", "profiledjob": "bert"}
    deadline = time.monotonic() + 240
    while (failures := check_panels(prometheus, variables=chosen)) and time.monotonic() < deadline:
        time.sleep(1)
    assert failures == []


def test_panels_of_another_job_are_empty(prometheus: str) -> None:
    """The check can fail: what has no data is named."""
    failures = check_panels(prometheus, variables={"namespace": "research", "profiledjob": "absent"})
    assert failures
    assert all("Rightpool / Job" in failure and failure.endswith("no data") for failure in failures)


def test_a_broken_query_is_named(prometheus: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboards import answers

    broken = answers.PanelQuery("Fleet", "Cost", "sum(", required=False, ranged=False)
    monkeypatch.setattr(answers, "panel_queries", lambda: iter([broken]))
    (failure,) = check_panels(prometheus, require_data=False)
    assert "parse error" in failure
