"""Runs programs whose bottleneck is known with the real agent and sidecar, and prints what the diagnosis says of them.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.labelled_runs [--minutes 8] [--only NAME …] [--record FILE]
    PYTHONPATH=operator python -m tests.gpu.labelled_runs --judge FILE [--profiles FILE]

The first runs as many programs as fit into the time, each with its GPUs for itself, and keeps the pages of its sidecar.
It needs torch with CUDA, and `pynvml` (nvidia-ml-py) for the counters. Programs for one GPU run on each at once, before
them those for all; left out are those for another number, and those in JAX where there is none. Pages are judged by the
operator's own code: where its dependencies (pydantic) are missing, record there and judge elsewhere. Prints a Markdown
table. With --profiles, a line of JSON for each run is added to a file, as tests/unit/profiles reads them. Exits 1 if a
class is wrong, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.util
import json
import re
import sys
import time
import urllib.request
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from rightpool import contract
from tests.gpu.labelled_libraries import LIBRARIES
from tests.gpu.labelled_models import MODELS
from tests.gpu.labelled_programs import PROGRAMS
from tests.gpu.pod import Pod

WINDOW = 10.0  # seconds that a profile covers, right before the program's end
_INTERVAL = 1.0
_SPAN = 5  # seconds that rates and ratios are taken over
_LONGEST_START = 90.0  # seconds until a program trains, at most
_AROUND = 20.0  # seconds that a program takes beside its own
_ALL = PROGRAMS | MODELS | LIBRARIES

Recording = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--only", nargs="*", default=None, choices=_ALL)
    parser.add_argument("--record", type=Path, help="keep the pages here, as .json.gz")
    parser.add_argument("--judge", type=Path, help="judge pages that were kept, and run nothing")
    parser.add_argument("--profiles", type=Path, help="add what was measured in each run to this file")
    parser.add_argument("--cpu", action="store_true", help="try the script itself without a GPU; classes mean nothing")
    options = parser.parse_args()
    if options.judge is not None:
        with gzip.open(options.judge, "rt") as file:
            return judge(json.load(file), options.profiles)
    recording = record(options.minutes * 60.0, options.only, cpu=options.cpu)
    if options.record is not None:
        options.record.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(options.record, "wt") as file:
            json.dump(recording, file)
    if importlib.util.find_spec("pydantic") is None:
        print("no pydantic here: judge the recording elsewhere, with --judge")
        return 0
    return judge(recording, options.profiles)


def record(seconds: float, only: list[str] | None, *, cpu: bool) -> Recording:
    """Run the programs: those for all GPUs, then the others, one on each at a time. The pages of each, one a second."""
    if cpu:
        gpus, chip, limit = 2, "H200-SXM-141GB", None
    else:
        from tests.gpu import machine

        machine.require("torch")
        found = machine._ask_smi("name,power.limit")
        gpus, chip, limit = len(found), found[0][0], found[0][1]
    has_jax = importlib.util.find_spec("jax") is not None
    wanted = [name for name in only or _ALL if has_jax or not name.startswith("jax_")]
    wanted.sort(key=lambda name: -_ALL[name][2])  # a lane that is through early waits for the other's last one
    deadline = time.monotonic() + seconds
    runs: list[Recording] = []
    every = tuple(range(gpus))
    for width in sorted({gpus, 1}, reverse=True):
        lanes = [every] if width == gpus else [(one,) for one in every]
        queue = deque(name for name in wanted if _ALL[name][1] == width)
        with ThreadPoolExecutor(len(lanes)) as threads:
            for lane in [threads.submit(_runs, queue, lane, deadline) for lane in lanes]:
                runs += lane.result()
    return {"chip": chip, "powerLimit": limit, "runs": runs}


def _runs(queue: deque[str], gpus: tuple[int, ...], deadline: float) -> list[Recording]:
    """Run programs of the queue on these GPUs, one after the other."""
    made = []
    ahead = _next(queue, gpus)
    try:
        while ahead is not None:
            with ahead as run:
                # The next one imports its libraries meanwhile, on processors that this one does not need.
                ahead = _next(queue, gpus)
                labels, wants, lasts = _ALL[run.name]
                if deadline - time.monotonic() < lasts + _AROUND:
                    print(f"{run.name}: no time is left for it", flush=True)
                else:
                    made.append({"name": run.name, "labels": labels, "gpus": wants, **run.record()})
    finally:
        if ahead is not None:
            ahead.__exit__()
    return made


def _next(queue: deque[str], gpus: tuple[int, ...]) -> Run | None:
    try:
        return Run(queue.popleft(), gpus)
    except IndexError:
        return None


def command(name: str) -> list[str]:
    """The program's script with its arguments."""
    script = "labelled_models.py" if name in MODELS else "labelled_libraries.py"
    if name in PROGRAMS:
        script = "labelled_programs.py"
    elif name.startswith("jax_"):
        script = "labelled_jax.py"
    return [str(Path(__file__).with_name(script)), name, str(_ALL[name][2])]


class Run:
    """A program in a pod of its own, which waits until it is recorded. Ends both with the `with` block."""

    def __init__(self, name: str, gpus: tuple[int, ...]) -> None:
        self.name = name
        self._processes, self._seconds = _ALL[name][1:]
        launch: list[str] = []
        if self._processes > 1 and not name.startswith("jax_"):
            launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self._processes}"]
        more = {"NCCL_P2P_DISABLE": "1"} if name.endswith("_no_peer_access") else {}
        self._pod = Pod(len(gpus), gpus=gpus, interval=_SPAN).__enter__()
        self._program = self._pod.start(*launch, *command(name), **more)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._program.kill()
        self._program.communicate()
        self._pod.__exit__(None, None, None)

    def record(self) -> Recording:
        """Let it train; its pages with their times, its exit code and the end of its errors."""
        program, pages = self._program, []
        assert program.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            program.stdin.write(self._processes * "\n")
            program.stdin.flush()
        began = time.monotonic()
        while program.poll() is None and time.monotonic() - began < self._seconds + _LONGEST_START:
            time.sleep(_INTERVAL)
            text = page_of(self._pod.port)
            if text:
                pages.append((time.monotonic() - began, text))
        if program.poll() is None:
            program.kill()
        output, errors = program.communicate()
        own = re.search(r"^counted (\d+) (\d+)$", output, re.MULTILINE)
        # In its last seconds a program leaves, and its processes fall silent; before, one that has counted waits.
        silent = 3.0 if own is None else 5.0
        kept = [(at, text) for at, text in pages if at <= pages[-1][0] - silent] if pages else []
        print(f"{self.name}: exit code {program.returncode}, {len(kept)} pages", flush=True)
        return {
            "pages": kept,
            "code": program.returncode,
            "errors": errors[-1500:] if program.returncode else "",
            "counted": list(map(int, own.groups())) if own else None,
            "told": [total(pages[-1][1], name) for name in (contract.STEPS, contract.SAMPLES)] if pages else None,
        }


def total(page: str, metric: str) -> float | None:
    """Of all processes; None where the page has none."""
    found = re.findall(rf"^{metric}(?:{{.*}})? (\S+)$", page, re.MULTILINE)
    return sum(map(float, found)) if found else None


def page_of(port: int) -> str:
    """The text of /metrics; empty without an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{contract.PATH_METRICS}", timeout=2) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""


def judge(recording: Recording, kept: Path | None) -> int:
    """Print the table, and add the profiles to a file. 1 if a class is wrong."""
    from rightpool.hardware.catalog import load_catalog
    from rightpool.profiles.diagnosis import diagnose
    from tests.gpu.labelled_profiles import add

    catalog = load_catalog()
    name = recording["chip"]
    accelerator = catalog.get(catalog.by_label("nvidia.com/gpu.product", name.replace(" ", "-")) or name)
    print(f"\n{recording['chip']} as {accelerator.key}, enforced limit {recording.get('powerLimit')} W")
    print("| program | truth | said | right | evidence | lever | measured |")
    print("|---|---|---|---|---|---|---|")
    right, counts = 0, []
    for one in recording["runs"]:
        profile = profile_of(one["pages"], one["gpus"])
        verdict = diagnose(profile, accelerator)
        if kept is not None:
            add(kept, one["name"], one["labels"], accelerator.key, profile)
        bottleneck = verdict.bottleneck.value
        correct = bottleneck in one["labels"]
        right += correct
        values = ", ".join(f"{field.value} {reading.value:.3g}" for field, reading in sorted(profile.readings.items()))
        traits = profile.traits
        print(
            f"| {one['name']} | {' or '.join(one['labels'])} | {bottleneck} | {'yes' if correct else 'NO'} "
            f"| {verdict.finding.text()} | {verdict.finding.lever()} "
            f"| {profile.steadiness.value}; {values}; {traits.precision}, {traits.parameters} parameters, "
            f"batch {traits.batch} |"
        )
        if one.get("counted"):
            counts.append(f"{one['name']}: counted {one['counted']} steps and samples, told {one['told']}")
        if one["code"]:
            print(f"\n{one['name']} ended with {one['code']}:\n{one['errors']}\n", file=sys.stderr)
    print("\n".join(["", *counts]))
    print(f"\n{right} of {len(recording['runs'])} right")
    return 0 if right == len(recording["runs"]) else 1


def profile_of(pages: list[tuple[float, str]], chips: int) -> Any:
    """The Profile of the last WINDOW seconds, by the operator's own code."""
    from rightpool.profiles.profile import build_profile
    from rightpool.profiles.sample import RevisionKey
    from rightpool.profiles.window import Window
    from rightpool.telemetry.exposition import parse
    from rightpool.telemetry.samples import sample_of
    from rightpool.telemetry.sources.sidecar_page import page_of as pod_page
    from rightpool.telemetry.sources.sidecar_page import reading_of

    window = Window()
    parsed = [pod_page(parse(text), at) for at, text in pages]
    # Rates over some readings, as a Prometheus has them over its horizon.
    for number, page in enumerate(parsed):
        before = parsed[number - _SPAN] if number >= _SPAN else None
        span = 0.0 if before is None else page.at - before.at
        sample = sample_of((reading_of([(before, page)], page.at, 60.0),), span)
        if sample is not None:
            window.append(sample)
    return build_profile(
        RevisionKey("gpu", "labelled", 1),
        chips,
        window,
        window=WINDOW,
        interval=_INTERVAL,
        expected_pods=1,
        now=window.newest or 0.0,
    )


if __name__ == "__main__":
    sys.exit(main())
