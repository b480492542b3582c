"""Two hours of requests to the demo's server, which Prometheus remembers: before an hour is on record none is moved."""

import json
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Final

from demo.job import StoryFailed
from devcluster import deps

RATE: Final = 30.0
"""Requests a second."""
SECONDS: Final = 7200
_EACH: Final = 5  # seconds between samples
_METRIC: Final = "nv_inference_request_success"
_SERIES: Final = f'{_METRIC}{{namespace="shop",profiledjob="ranker",pod="ranker-of-before",model="ranker",version="1"}}'


def put(data: Path, now: float) -> None:
    """Write them into Prometheus' folder, which it looks through each minute."""
    promtool = deps.find("promtool")
    if promtool is None:
        raise StoryFailed("promtool is missing; it is in Debian's package prometheus")
    last = round(now / _EACH) * _EACH
    samples = (f"{_SERIES} {at * RATE:.0f} {at}" for at in range(last - SECONDS, last, _EACH))
    with tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join((f"# TYPE {_METRIC} unknown", *samples, "# EOF", "")))
        file.flush()
        command = [promtool, "tsdb", "create-blocks-from", "openmetrics", file.name, str(data)]
        result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise StoryFailed(f"promtool: exit {result.returncode}\n{result.stdout}{result.stderr}")


def remembered(prometheus: str) -> bool:
    """Whether Prometheus has an hour of them. prometheus: its address."""
    query = urllib.parse.urlencode({"query": f"count_over_time({_SERIES}[6h]) >= {3600 // _EACH}"})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}", timeout=60) as answer:
        return bool(json.load(answer)["data"]["result"])
