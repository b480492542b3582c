"""Has all ranks of a program on two GPUs traced on request, and looks at what the answer and the files say.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_trace_all [--keep FOLDER]

DistributedDataParallel over NCCL under torchrun; rank 1 has more work than rank 0, which waits for it in the
all-reduce. With --keep the files stay, for a look by Perfetto. Who holds up the others is the operator's to say, by its
own code where its dependencies (pydantic) are. Exits 1 if a check fails, 2 without two GPUs.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import io
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rightpool import contract
from rightpool_profiler.traces.kept import Kept
from tests.gpu import machine
from tests.gpu.pod import Checks, Pod

PROGRAM = """
import os, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda().bfloat16()
net = DistributedDataParallel(net, device_ids=[rank])
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
x = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)
stop = sys.argv[1]
for step in range(10 ** 9):
    if rank == 1:
        with torch.no_grad():
            for _ in range(3): net.module(x)
    net(x).float().mean().backward()
    optimizer.step(); optimizer.zero_grad()
    over = torch.tensor(float(os.path.exists(stop)), device="cuda")
    dist.all_reduce(over)
    if over.item(): break
dist.destroy_process_group()
"""
_PHASES = frozenset("XMisftbenC")  # of Chrome's format, as Kineto writes them


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    machine.require("torch", 2)
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder, Pod(2) as pod:
        script, stop = Path(folder) / "program.py", Path(folder) / "stop"
        script.write_text(PROGRAM)
        launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script), str(stop))
        program = pod.start(*launch, **{contract.ENV_INTERVAL: "1"})
        while program.poll() is None and not pod.page().get(contract.STEPS, 0) >= 20:
            time.sleep(0.1)
        answer = pod.ask_trace("all", contract.TRACE_ALL)
        packed = io.BytesIO()
        sent = Kept(pod.kept).send("all", packed)
        stop.touch()
        _, errors = program.communicate()
    checks.true(
        "exit code", program.returncode == 0, f"{program.returncode} {errors[-500:] if program.returncode else ''}"
    )
    ranks = answer["ranks"]
    checks.true("ranks traced", [one["state"] for one in ranks] == [contract.TRACE_CAPTURED] * 2, str(answer)[:300])
    for one in ranks:
        summary = one["summary"]
        parts = {part: round(share, 3) for part, share in summary["parts"].items()}
        checks.true(f"rank {one['rank']}", summary["on"] == "device" and summary["steps"] > 0, f"{parts}")
        checks.true("NCCL's kernels", bool(summary["collectives"]), str(summary["collectives"])[:200])
    first, second = (one["summary"]["parts"][contract.PART_EXPOSED_COMMUNICATION] for one in ranks)
    checks.true("rank 0 waits for rank 1", first > 2 * second, f"exposed {first:.3f} and {second:.3f}")
    if importlib.util.find_spec("pydantic") is not None:
        say_straggler(checks, answer)
    body, sizes = packed.getvalue(), list[int]()
    for one in ranks:
        body = body.partition(b"\n")[2]
        file, body = body[: one["packed"]], body[one["packed"] :]
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            (options.keep / f"{one['rank']}.json.gz").write_bytes(file)
        found = json.loads(gzip.decompress(file))
        sizes.append(len(found["traceEvents"]))
        checks.true(
            f"file of rank {one['rank']}", not wrong(found["traceEvents"]), f"{wrong(found['traceEvents'])[:3]}"
        )
    checks.true("files", sent == 0 and min(sizes) > 100, f"{sizes} events")
    if options.keep is not None:
        (options.keep / "answer.json").write_text(json.dumps(answer))
    return 1 if checks.failed else 0


def say_straggler(checks: Checks, answer: dict[str, Any]) -> None:
    """What the operator makes of the answer."""
    from rightpool.planning.moves.trace_ranks import never_waiting

    parts = {one["rank"]: one["summary"]["parts"] for one in answer["ranks"]}
    found = never_waiting({rank: own[contract.PART_EXPOSED_COMMUNICATION] for rank, own in parts.items()}, {})
    checks.true("straggler", found == 1, f"rank {found}")


def wrong(events: Iterable[dict[str, Any]]) -> list[str]:
    """What Perfetto's importer of Chrome traces would leave out: it wants a phase that it knows, a time that is no
    negative number where the phase has one, a duration of spans, and a number or a name for the process."""
    found = []
    for event in events:
        phase = event.get("ph")
        if phase not in _PHASES or not isinstance(event.get("name", ""), str):
            found.append(f"phase {phase!r}")
        elif phase != "M" and not (isinstance(event.get("ts"), int | float) and event["ts"] >= 0):
            found.append(f"ts {event.get('ts')!r}")
        elif phase == "X" and not (isinstance(event.get("dur"), int | float) and event["dur"] >= 0):
            found.append(f"dur {event.get('dur')!r}")
        elif not isinstance(event.get("pid"), int | str):
            found.append(f"pid {event.get('pid')!r}")
    return found


if __name__ == "__main__":
    sys.exit(main())
