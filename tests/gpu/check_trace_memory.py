"""Compares what traces on request say of a GPU's memory with what PyTorch's allocator tells the program itself.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_trace_memory [--keep FOLDER]

Needs torch with CUDA. Programs whose peak lies in a phase of the step that is known by how they are made, and one that
leaks, are traced while they run, twice. Each resets the allocator's peaks between its phases and prints them; peak,
phase, what each step leaves and what the allocator holds must be the same in the trace, to the byte. Losses and errors
are compared with those of the same program without the agent, and the file is read as JSON. Then a program is killed
within a trace, and while it writes one: the next one that starts in its place must be traced. With --keep, answers and
files are left in FOLDER. Exits 1 if a check fails, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rightpool import contract
from rightpool_profiler.traces.kept import Kept
from tests.gpu import machine
from tests.gpu.pod import PATIENCE, Checks, Pod, bare_environment

PROGRAM = """
import hashlib, json, sys, time
import torch
from torch import nn
from torch.nn import functional

name, steps, wait = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
MIB, GPU = 1 << 20, "cuda"

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.back = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, length, width = x.shape
        parts = self.into(self.before(x)).split(width, dim=2)
        q, k, v = (one.view(rows, length, self.heads, -1).transpose(1, 2) for one in parts)
        scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        seen = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(rows, length, width))
        return x + self.back(functional.gelu(self.wide(self.between(x))))

class Gpt(nn.Module):
    "As nanoGPT has it, with attention written out."
    def __init__(self, words=4096, length=256, width=384, layers=4):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 6) for _ in range(layers))
        self.last, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens, wanted):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks: x = block(x)
        return functional.cross_entropy(self.head(self.last(x)).flatten(0, 1), wanted.flatten())

class Scratch(torch.autograd.Function):
    "Takes memory for a moment, in one of the passes."
    @staticmethod
    def forward(context, x, forward, backward):
        context.bytes = backward
        torch.empty(forward, dtype=torch.uint8, device=x.device)
        return x.clone()
    @staticmethod
    def backward(context, gradient):
        torch.empty(context.bytes, dtype=torch.uint8, device=gradient.device)
        return gradient, None, None

class Small(nn.Module):
    def __init__(self, width, forward=0, backward=0):
        super().__init__()
        self.one, self.two, self.scratch = nn.Linear(width, width), nn.Linear(width, width), (forward, backward)

    def forward(self, x, wanted):
        return functional.mse_loss(self.two(Scratch.apply(self.one(x), *self.scratch)), wanted)

def small(width, rows, *scratch):
    return Small(width, *scratch), lambda: (torch.randn(rows, width, device=GPU), torch.randn(rows, width, device=GPU))

def gpt():
    return Gpt(), lambda: tuple(torch.randint(4096, (8, 256), device=GPU) for _ in range(2))

model, batch = {
    "gpt": gpt,
    "leak": gpt,
    "forward": lambda: small(512, 64, 64 * MIB, 8 * MIB),
    "backward": lambda: small(512, 64, 8 * MIB, 64 * MIB),
    "optimizer": lambda: small(4096, 16),
}[name]()
model = model.to(GPU)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)

def peak():
    most = torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return most

digest, found, leaked = hashlib.sha256(), [], []
for step in range(steps):
    with torch.autocast(GPU, dtype=torch.bfloat16):
        loss = model(*batch())
    phases = {"forward": peak()}
    loss.backward()
    phases["backward"] = peak()
    optimizer.step()
    phases["optimizer"] = peak()
    end = torch.cuda.memory_allocated()
    optimizer.zero_grad()
    digest.update(str(loss.item()).encode())
    if name == "leak": leaked.append(torch.empty(MIB, dtype=torch.uint8, device=GPU))
    found.append([phases, end, torch.cuda.memory_reserved()])
    time.sleep(wait)
print(json.dumps({"losses": digest.hexdigest(), "steps": found}))
"""
_PROGRAMS = {
    "gpt": None,
    "leak": None,
    "forward": contract.PHASE_FORWARD,
    "backward": contract.PHASE_BACKWARD,
    "optimizer": contract.PHASE_OPTIMIZER,
}
_STEPS = "600"
_WAIT = "0.015"
_DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
_TRACES = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    machine.require("torch")
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    checks = Checks()
    with ThreadPoolExecutor(len(_PROGRAMS) + 2) as side_by_side:
        runs = [side_by_side.submit(check, checks, name, options.keep) for name in _PROGRAMS]
        runs.append(side_by_side.submit(killed, checks, "within a trace", _capturing, "1"))
        runs.append(side_by_side.submit(killed, checks, "while it writes one", _writing, _WAIT))
    for run in runs:
        run.result()
    return 1 if checks.failed else 0


def check(checks: Checks, name: str, keep: Path | None) -> None:
    """One program, traced twice."""
    arguments = ("-c", PROGRAM, name, _STEPS, _WAIT)
    alone = subprocess.Popen(
        [sys.executable, *arguments],
        env=bare_environment() | _DETERMINISTIC,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with Pod() as pod:
        program = pod.start(*arguments, **_DETERMINISTIC)
        _wait_for_steps(pod, program, 50)
        answers = [pod.ask_trace(f"trace-{number}") for number in range(_TRACES)]
        packed = io.BytesIO()
        sent = Kept(pod.kept).send(f"trace-{_TRACES - 1}", packed)
        out, errors = program.communicate()
    bare_out, bare_errors = alone.communicate()
    ended = program.returncode == alone.returncode == 0
    checks.true(f"{name}: exit codes", ended, f"{program.returncode}, {alone.returncode} {errors[-500:]}")
    if not ended:
        return
    own, bare = json.loads(out), json.loads(bare_out)
    checks.true(f"{name}: losses and errors", (own["losses"], errors) == (bare["losses"], bare_errors), errors[-200:])
    checks.true(f"{name}: file", sent == 0, "sent by the sidecar")
    body = gzip.decompress(packed.getvalue().partition(b"\n")[2])
    events = json.loads(body)["traceEvents"]
    changes = sum(event.get("name") == "[memory]" for event in events)
    checks.true(f"{name}: events", changes > 0, f"{len(events)} events, {changes} of memory, {len(body)} bytes")
    for number, answer in enumerate(answers):
        captured = answer["state"] == contract.TRACE_CAPTURED
        checks.true(f"{name}: trace {number}", captured, str(answer.get("message")))
        if captured:
            _compare(checks, name, answer["summary"]["memory"], own["steps"])
    if keep is not None:
        (keep / f"{name}.json").write_text(json.dumps({"answers": answers, "own": own}))
        (keep / f"{name}.trace.json.gz").write_bytes(gzip.compress(body))


def _compare(checks: Checks, name: str, memory: dict[str, Any] | None, own: list[Any]) -> None:
    """The trace's memory with that of the same steps, which are known by what they left."""
    if memory is None:
        checks.true(f"{name}: memory", False, "the trace has none")
        return
    ends = [end for _, end, _ in own]
    count = len(memory["ends"])
    # Where all steps leave the same, any of them will do; but the first ones fill the optimizer's state.
    at = next((n for n in range(len(ends) - count, -1, -1) if ends[n : n + count] == memory["ends"]), None)
    checks.true(f"{name}: left by {count} steps", at is not None, f"{memory['ends']}, of the program {ends[-3:]}")
    if at is None:
        return
    peaks = {(phase, step): most for step in range(at, at + count) for phase, most in own[step][0].items()}
    (phase, _), most = max(peaks.items(), key=lambda item: item[1])
    checks.true(f"{name}: peak", memory["peak"] == most, f"{memory['peak']}, of the program {most}")
    checks.true(f"{name}: phase", memory["phase"] == phase, f"{memory['phase']}, of the program {phase}")
    made = _PROGRAMS[name]
    checks.true(f"{name}: phase as made", made in (None, phase), str(made))
    held = max(reserved for _, _, reserved in own[at : at + count])
    checks.true(f"{name}: held", memory["reserved"] == held, f"{memory['reserved']}, of the program {held}")
    found = machine.readings()[0]
    share = memory["capacity"] / found.memory_total if memory.get("capacity") else 0.0
    checks.near(f"{name}: memory of the device", 1.0, share, 0.02)


# --- killed ----------------------------------------------------------------------------------------------------------


def killed(checks: Checks, words: str, moment: Callable[[Pod], bool], wait: str) -> None:
    """A program is killed at a moment of its trace. The next one in its place serves the request, and the one after."""
    with Pod() as pod:
        program = pod.start("-c", PROGRAM, "gpt", "100000", wait)
        _wait_for_steps(pod, program, 5)
        answers: list[dict[str, Any]] = []
        asking = threading.Thread(target=lambda: answers.append(pod.ask_trace("first")))
        asking.start()
        deadline = time.monotonic() + PATIENCE
        while not (met := moment(pod)) and time.monotonic() < deadline:
            time.sleep(0.0005)
        program.kill()
        program.communicate()
        checks.true(f"killed {words}", met and not answers, f"exit code {program.returncode}")
        program = pod.start("-c", PROGRAM, "gpt", "100000", _WAIT)
        asking.join()
        answers.append(pod.ask_trace("second"))
        for answer, which in zip(answers, ("its", "the next"), strict=True):
            captured = answer["state"] == contract.TRACE_CAPTURED
            checks.true(f"killed {words}: {which} trace", captured, _outcome(answer))
        left = sorted(path.name for path in _traces(pod).iterdir())
        checks.true(f"killed {words}: the next program", program.poll() is None, f"runs on; files left: {left}")
        program.kill()
        program.communicate()


def _outcome(answer: dict[str, Any]) -> str:
    steps = answer["summary"]["steps"] if "summary" in answer else None
    return f"{answer['message'] or answer['state']}: {steps} steps"


def _capturing(pod: Pod) -> bool:
    """The agent has read the request, and the program has made two steps since; it takes a second for each of four."""
    command = pod.shared / Path(contract.COMMAND_DIR).name / "trace.json"
    try:
        return time.time() - command.stat().st_mtime > 4.0
    except OSError:
        return False


def _writing(pod: Pod) -> bool:
    return any(path.name.endswith(".tmp") for path in _traces(pod).iterdir())


def _traces(pod: Pod) -> Path:
    return pod.shared / Path(contract.TRACE_DIR).name


def _wait_for_steps(pod: Pod, program: subprocess.Popen[str], count: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while program.poll() is None and pod.page().get(contract.STEPS, 0) < count and time.monotonic() < deadline:
        time.sleep(0.1)
    assert pod.page().get(contract.STEPS, 0) >= count, "the program makes no steps"


if __name__ == "__main__":
    sys.exit(main())
