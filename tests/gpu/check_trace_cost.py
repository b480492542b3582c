"""What traces on request cost a PyTorch program in all: two of each program, one after the other.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_trace_cost [--only NAME …]

Needs torch with CUDA. The programs are a U-Net of many kernels a step, in fp16 with averaged weights, and a GPT. Each
notes when its steps end. What a trace cost is by how much the steps from the request on took longer than the median of
those around each, of those that took a quarter longer: a program that waits for its launches may change its pace by
half within seconds, without any trace. The agent's own figure is in the answer. Prints a Markdown table. Takes a
minute; exits 1 if a first trace cost more than 1 s or a second one more than half of that, and 2 without a GPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from tests.gpu import machine
from tests.gpu.pod import PATIENCE, Pod

_PROGRAM: Final = """
import json, os, sys, time
import torch
from torch import nn
from torch.nn import functional

cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"

class Block(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, before), nn.GroupNorm(8, after)])
        self.convs = nn.ModuleList([nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)])
        self.time, self.past = nn.Linear(256, after), nn.Conv2d(before, after, 1)
    def forward(self, x, t):
        y = self.convs[0](functional.silu(self.norms[0](x))) + self.time(functional.silu(t))[:, :, None, None]
        return self.convs[1](functional.silu(self.norms[1](y))) + self.past(x)

class UNet(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, widths[0], 3, padding=1), nn.Conv2d(widths[0], 3, 3, padding=1)
        self.down, self.up, kept, now = nn.ModuleList(), nn.ModuleList(), [], widths[0]
        for width in widths:
            for _ in range(3):
                self.down.append(Block(now, width))
                now = width
                kept.append(width)
        self.middle = Block(now, now)
        for width in reversed(widths):
            for _ in range(3):
                self.up.append(Block(now + kept.pop(), width))
                now = width
    def forward(self, x, t):
        x, kept = self.stem(x), []
        for number, block in enumerate(self.down):
            x = block(x, t)
            kept.append(x)
            if number % 3 == 2: x = functional.avg_pool2d(x, 2)
        x = self.middle(x, t)
        for number, block in enumerate(self.up):
            if number % 3 == 0: x = functional.interpolate(x, scale_factor=2.0)
            x = block(torch.cat([x, kept.pop()], 1), t)
        return self.head(x)

def unet():
    net = UNet((96, 128, 192, 256) if cuda else (8, 16)).to(device)
    mean = [one.detach().clone() for one in net.parameters()]
    optimizer, scaler = torch.optim.AdamW(net.parameters(), lr=1e-4), torch.amp.GradScaler(device)
    rows, side = (16, 64) if cuda else (2, 16)
    x, t = torch.randn(rows, 3, side, side, device=device), torch.randn(rows, 256, device=device)
    def step():
        with torch.autocast(device, torch.float16 if cuda else torch.bfloat16):
            loss = functional.mse_loss(net(x, t).float(), x)
        scaler.scale(loss).backward()
        scaler.step(optimizer); scaler.update(); optimizer.zero_grad()
        with torch.no_grad():
            for kept, one in zip(mean, net.parameters()): kept.lerp_(one, 1e-3)
    return step

def gpt():
    width, layers, rows, length = (512, 8, 32, 256) if cuda else (32, 2, 2, 16)
    layer = nn.TransformerEncoderLayer(width, width // 32, 4 * width, batch_first=True, norm_first=True, dropout=0.0)
    net = nn.Sequential(nn.Embedding(8192, width), nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
                        nn.Linear(width, 8192)).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    tokens = torch.randint(0, 8192, (rows, length), device=device)
    def step():
        with torch.autocast(device, torch.bfloat16): out = net(tokens)
        functional.cross_entropy(out.float().flatten(0, 1), tokens.flatten()).backward()
        optimizer.step(); optimizer.zero_grad()
    return step

step, flag, ends = {"unet": unet, "gpt": gpt}[sys.argv[1]](), sys.argv[2], []
while not os.path.exists(flag):
    step()
    if cuda: torch.cuda.synchronize()
    ends.append(time.time())
with torch.profiler.profile(acc_events=True) as profile:
    step()
    if cuda: torch.cuda.synchronize()
kernels = sum(one.device_type == torch.autograd.DeviceType.CUDA for one in profile.events())
print(json.dumps([ends, kernels]))
"""
_WORDS: Final = {"unet": "a U-Net in fp16 with averaged weights", "gpt": "a GPT in bf16"}
_MOST: Final = (1.0, 0.5)  # seconds that the first and the second trace may cost
_APART: Final = 4.0  # seconds before a trace and after it
_AROUND: Final = 10  # steps on either side that say what a step takes: a trace slows four at most
_LONGER: Final = 1.25  # times as long as those


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(_WORDS), choices=_WORDS)
    options = parser.parse_args()
    machine.require("torch")
    print("| program | step | kernels | trace | steps longer by, in all | by the answer | most step |")
    print("|---|---|---|---|---|---|---|", flush=True)
    failed = 0
    for name in options.only:
        usual, kernels, costs = measure(name)
        for number, (cost, by_answer, longest) in enumerate(costs):
            failed += cost > _MOST[number]
            answer = "–" if by_answer is None else f"{by_answer:.2f} s"
            print(
                f"| {_WORDS[name]} | {usual * 1e3:.1f} ms | {kernels:,} | {('first', 'second')[number]} "
                f"| {cost:.2f} s | {answer} | {longest:.2f} s |",
                flush=True,
            )
    return 1 if failed else 0


def measure(name: str) -> tuple[float, int, list[tuple[float, float | None, float]]]:
    """Seconds of a usual step, its kernels, and of each trace what it cost, what the answer says, and the longest
    step."""
    with tempfile.TemporaryDirectory() as folder, Pod() as pod:
        script, flag = Path(folder) / "program.py", Path(folder) / "flag"
        script.write_text(_PROGRAM)
        program = pod.start(str(script), name, str(flag))
        try:
            late = time.monotonic() + PATIENCE
            while not any(key.startswith("rightpool_steps_total") for key in pod.page()):
                assert program.poll() is None and time.monotonic() < late, "the program makes no steps"
                time.sleep(0.2)
            time.sleep(3.0)  # libraries choose their algorithms
            asked: list[tuple[float, float, float | None]] = []
            for number in range(2):
                time.sleep(_APART)
                at = time.time()
                answer = pod.ask_trace(f"cost-{number}")
                asked.append((at, time.time(), (answer.get("summary") or {}).get("cost")))
            time.sleep(_APART)
            flag.touch()
            output, _ = program.communicate(timeout=PATIENCE)
        except (AssertionError, subprocess.TimeoutExpired):
            program.kill()
            print(program.communicate()[1][-2000:], file=sys.stderr)
            raise
    ends, kernels = json.loads(output.strip().rpartition("\n")[2])
    took = [(after, after - before) for before, after in itertools.pairwise(ends)]
    seconds = [one for _, one in took]
    usual = [statistics.median(seconds[max(0, n - _AROUND) : n + _AROUND + 1]) for n in range(len(seconds))]
    costs = []
    for at, until, by_answer in asked:
        within = [n for n, (end, _) in enumerate(took) if at <= end < until + _APART / 2]
        longer = sum(seconds[n] - usual[n] for n in within if seconds[n] > _LONGER * usual[n])
        costs.append((longer, by_answer, max(seconds[n] for n in within)))
    return statistics.median(seconds), kernels, costs


if __name__ == "__main__":
    sys.exit(main())
