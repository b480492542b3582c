"""Injects faults around the agent while a PyTorch program runs on the GPU: the program must not be affected.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.faults [--steps 1500]

Needs torch with CUDA and `pynvml` (nvidia-ml-py); root for the full disk, which is a small tmpfs. The program computes
the same bits in every run; its exit code, output and errors are compared with those of a run without the agent. The
agent traces it (the environment says that it is one of two processes), and a fault comes after a hundred steps. All
runs with the agent are made at once. Exits 1 if one differs or a fault had no effect, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import PATIENCE, Checks, Page, Pod, bare_environment, labelled

PROGRAM = """
import hashlib, sys
import torch
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
layers = [torch.nn.Linear(64, 4096)] + [torch.nn.Linear(4096, 4096) for _ in range(12)]
net = torch.nn.Sequential(*layers).cuda().bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.randn(64, 2048, 64), batch_size=None)
done, steps = 0, int(sys.argv[1])
while done < steps:
    for batch in loader:
        net(batch.cuda().bfloat16()).float().pow(2).mean().backward()
        optimizer.step(); optimizer.zero_grad()
        done += 1
weights = b"".join(p.detach().cpu().view(torch.uint8).numpy().tobytes() for p in net.parameters())
print(done, hashlib.sha256(weights).hexdigest(), flush=True)
"""
# One of two: single processes are not traced. The second makes cuBLAS compute the same bits each time.
_ENVIRONMENT = {"WORLD_SIZE": "2", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

Fault = Callable[[Pod], bool]  # returns whether it had its effect
Outcome = tuple[int, str, str]  # exit code, output, errors


def nothing(pod: Pod) -> bool:
    return bool(labelled(pod.page(), contract.CHIP_BUSY))


def kill(pod: Pod) -> bool:
    pod.sidecar.kill()
    pod.sidecar.wait()
    return not pod.page()


def stop(pod: Pod) -> bool:
    """Stop the sidecar, so that the socket fills."""
    pod.sidecar.send_signal(signal.SIGSTOP)
    return pod.sidecar.poll() is None


def remove(pod: Pod) -> bool:
    shutil.rmtree(pod.shared)
    return not pod.shared.exists()


def fill(pod: Pod) -> bool:
    """Fill the tmpfs before the agent writes its trace."""
    try:
        with (pod.shared / "everything").open("wb", buffering=0) as file:
            while True:
                file.write(b"\0" * 4096)
    except OSError:
        return shutil.disk_usage(pod.shared).free == 0


def traced(pod: Pod) -> bool:
    """Whether the sidecar has read a trace, which it looks for every two seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if any(contract.PART_COMPUTE in name for name in pod.page() if name.startswith(contract.STEP_SHARE)):
            return True
        time.sleep(0.2)
    return False


def no_nvml(pod: Pod) -> bool:
    """NVML was unreadable from the start: steps arrive, but no counters of the chip."""
    page = pod.page()
    return page.get(contract.STEPS, 0) > 0 and not labelled(page, contract.CHIP_BUSY)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1500)
    options = parser.parse_args()
    machine.require("torch")
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "program.py"
        script.write_text(PROGRAM)
        # A directory with the library's name precedes the library: even root can't load it.
        (Path(folder) / "broken" / "libnvidia-ml.so.1").mkdir(parents=True)
        broken = {"LD_LIBRARY_PATH": f"{folder}/broken:{os.environ.get('LD_LIBRARY_PATH', '')}"}
        command = (str(script), str(options.steps))
        done = subprocess.run(
            [sys.executable, *command], env={**bare_environment(), **_ENVIRONMENT}, capture_output=True, text=True
        )
        bare = done.returncode, done.stdout, done.stderr
        checks.true("without the agent", done.returncode == 0, f"{bare}")
        faults: list[tuple[str, Fault, dict[str, str]]] = [
            ("nothing", nothing, {}),
            ("sidecar killed", kill, {}),
            ("sidecar stopped", stop, {}),
            ("shared directory removed", remove, {}),
            ("NVML unreadable", no_nvml, broken),
        ]
        with ThreadPoolExecutor(len(faults) + 1) as side_by_side:
            runs = [side_by_side.submit(one_fault, checks, bare, command, *fault) for fault in faults]
            runs.append(side_by_side.submit(full_disk, checks, bare, command))
        for run in runs:
            run.result()
    return 1 if checks.failed else 0


def one_fault(
    checks: Checks, bare: Outcome, command: tuple[str, ...], name: str, fault: Fault, more: dict[str, str]
) -> None:
    with Pod() as pod:
        break_it(checks, bare, name, fault, pod, command, more)
        if fault is nothing:
            checks.true("its trace", traced(pod), "was taken: the others are broken around one")


def full_disk(checks: Checks, bare: Outcome, command: tuple[str, ...]) -> None:
    shared = Path(tempfile.mkdtemp(prefix="rightpool-", dir="/tmp"))
    try:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(shared)]).returncode:
            checks.true("shared directory full", False, "not run: only root may mount a tmpfs")
            return
        with Pod(shared=shared) as pod:
            break_it(checks, bare, "shared directory full", fill, pod, command, {})
            left = [path.name for path in (shared / Path(contract.TRACE_DIR).name).glob("*")]
            checks.true("trace that found no room", not left, f"left behind: {left or 'nothing'}")
        subprocess.run(["umount", str(shared)], check=True)
    finally:
        shutil.rmtree(shared, ignore_errors=True)


def break_it(
    checks: Checks, bare: Outcome, name: str, fault: Fault, pod: Pod, command: tuple[str, ...], more: dict[str, str]
) -> None:
    """Run the program, inject a fault once it steps, and compare how it ends."""
    program = pod.start(*command, **_ENVIRONMENT, **more)
    page: Page = {}
    deadline = time.monotonic() + PATIENCE
    while page.get(contract.STEPS, 0) < 100 and program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
        page = pod.page()
    time.sleep(2)  # the chips' counters are averages between two reports
    effect = fault(pod)
    running = program.poll() is None
    broken_at = time.monotonic()
    out, err = program.communicate()
    left = time.monotonic() - broken_at
    same = (program.returncode, out, err) == bare
    checks.true(
        name,
        effect and running and same,
        f"at step {page.get(contract.STEPS, 0):.0f}, {left:.0f} s before the end: exit code {program.returncode}, "
        f"output and errors {'the same' if same else 'DIFFER'}"
        + ("" if effect and running else "; THE FAULT HAD NO EFFECT")
        + ("" if same else f": {out[-300:]} {err[-2000:]}"),
    )


if __name__ == "__main__":
    sys.exit(main())
