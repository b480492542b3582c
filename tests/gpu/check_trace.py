"""Has a program on a GPU traced on request, three times, and compares the summaries with what the program does.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_trace

The program waits on the host for a part of each step that it knows, and computes on the device for the rest. Its losses
are compared with those of the same program without the agent. Takes less than a minute. Exits 1 if a check fails, 2
without a GPU.
"""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import time

from rightpool import contract
from rightpool_profiler.traces.kept import Kept
from tests.gpu import machine
from tests.gpu.pod import Checks, Pod, bare_environment

_TRACES = 3
_PROGRAM = """
import hashlib, os, sys, time
import torch
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(4)]).to("cuda", torch.bfloat16)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
x = torch.randn(8192, 4096, device="cuda", dtype=torch.bfloat16)
digest, computing, steps = hashlib.sha256(), 0.0, int(sys.argv[1])
for step in range(steps):
    time.sleep(0.01)
    began = time.perf_counter()
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    digest.update(str(loss.item()).encode())
    if step >= 10:
        computing += time.perf_counter() - began
print(digest.hexdigest(), computing / (computing + 0.01 * (steps - 10)))
"""
_STEPS = "1000"


def main() -> int:
    """The exit status."""
    machine.require("torch")
    checks = Checks()
    deterministic = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    alone = subprocess.run(
        [sys.executable, "-c", _PROGRAM, _STEPS], env=bare_environment() | deterministic, capture_output=True, text=True
    )
    with Pod() as pod:
        program = pod.start("-c", _PROGRAM, _STEPS, **deterministic, **{contract.ENV_INTERVAL: "1"})
        while program.poll() is None and not pod.page().get(contract.STEPS, 0) >= 20:
            time.sleep(0.1)
        answers = [pod.ask_trace(f"trace-{number}") for number in range(_TRACES)]
        packed = io.BytesIO()
        sent = Kept(pod.kept).send(f"trace-{_TRACES - 1}", packed)
        out, errors = program.communicate()
    checks.true("exit code", program.returncode == alone.returncode == 0, f"{program.returncode} {errors[-300:]}")
    digest, share = out.split()
    checks.true("losses as without the agent", digest == alone.stdout.split()[0], digest[:12])
    for answer in answers:
        checks.true("captured", answer["state"] == contract.TRACE_CAPTURED, str(answer)[:300])
        if answer["state"] != contract.TRACE_CAPTURED:
            continue
        summary = answer["summary"]
        print(json.dumps(summary)[:1500])
        checks.true("time of the device", summary["on"] == "device", f"{summary['steps']} steps")
        checks.near("share of computing", float(share), summary["parts"].get(contract.PART_COMPUTE, 0.0), 0.12)
        checks.near("sum of the parts", 1.0, sum(summary["parts"].values()), 0.01)
    if sent == 0:
        events = json.loads(gzip.decompress(packed.getvalue().partition(b"\n")[2]))["traceEvents"]
        kinds = {event.get("cat") for event in events}
        checks.true("operators and kernels", {"cpu_op", "kernel"} <= kinds, f"{len(events)} events")
    return 1 if checks.failed or sent != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
