"""A real Prometheus, and pods for it to scrape."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightpool.profiles.sample import RevisionKey
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target, TelemetryReading
from tests.patience import PATIENCE, eventually
from tests.unit.telemetry.pages import Page, free_port, serving
from tests.unit.telemetry.sources.recordings import recorded


class Fleet:
    """Pods on loopback addresses, all on one port, and a Prometheus that scrapes each every second.

    Pods come and go by file discovery. Prometheus gets their labels from there, as it gets them from a pod's metadata
    in a cluster: what a page says of itself never replaces them.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.port = free_port()
        self._folder = folder
        self._stack = stack
        self._targets: dict[str, dict[str, Any]] = {}
        self._listen = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._binary = shutil.which("prometheus")
        if self._binary is None:
            pytest.fail("the program prometheus is missing: install it (Debian's package prometheus)")
        stack.callback(self.stop)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listen}"

    def pod(self, labels: dict[str, str], page: Page | None) -> str:
        """A pod with these labels; gives its address. Without a page nothing answers there."""
        address = f"127.0.0.{len(self._targets) + 2}"
        if page is not None:
            self._stack.enter_context(serving(page, address, self.port))
        self._targets[address] = {"targets": [f"{address}:{self.port}"], "labels": labels}
        return address

    def remove(self, *addresses: str) -> None:
        """Takes pods out of discovery."""
        for address in addresses:
            self._targets.pop(address, None)
        self.publish()

    def publish(self) -> None:
        written = self._folder / "targets.json.new"
        written.write_text(json.dumps(list(self._targets.values())))
        written.rename(self._folder / "targets.json")

    def start(self) -> None:
        """Once; pods that come later are found by what is published."""
        self.publish()
        if self._process is not None:
            return
        config = {
            "global": {"scrape_interval": "2500ms", "scrape_timeout": "2400ms"},
            "scrape_configs": [
                {
                    "job_name": "pods",
                    "file_sd_configs": [{"files": [str(self._folder / "targets.json")], "refresh_interval": "1s"}],
                }
            ],
        }
        (self._folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        assert self._binary is not None
        with (self._folder / "prometheus.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._binary,
                    f"--config.file={self._folder / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._listen}",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )
        eventually(self._ready)

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/-/ready", timeout=10) as answer:
            return bool(answer.status == 200)
        return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(PATIENCE)
            self._process = None


def read_of(reader: PrometheusReader, targets: Sequence[Target], *keys: RevisionKey) -> TelemetryReading:
    """A reading with these Revisions. On a busy machine a scrape takes too long now and then, and Prometheus then has
    nothing of its target until the next one."""

    def whole() -> TelemetryReading | None:
        reading = reader.read(targets, time.time())
        return reading if all(key in reading.samples for key in keys) else None

    reading = eventually(whole, f"Prometheus has {keys}")
    assert reading is not None
    return reading


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with ExitStack() as stack:
        yield Fleet(tmp_path_factory.mktemp("prometheus"), stack)


@pytest.fixture(scope="session")
def dcgm_page() -> str:
    """The page of a dcgm-exporter on a node of A100s."""
    return recorded("dcgm")
