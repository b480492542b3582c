"""How much slower a program is before, after one, and after two of the agent's traces, in this process.

With the argument `teardown`, CUPTI is torn down after each, as the agent asks for.
"""

import os
import sys
import time

import torch
import torch.autograd.profiler as module

net = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(64)]).cuda().bfloat16()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)
batch = torch.ones(64, 512, device="cuda", dtype=torch.bfloat16)


def step() -> None:
    net(batch).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def rate(seconds: float = 4.0) -> float:
    torch.cuda.synchronize()
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        step()
        steps += 1
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps * 1e3


def trace() -> int:
    if sys.argv[1:] == ["teardown"]:
        os.putenv("TEARDOWN_CUPTI", "1")
    profiler = module.profile(use_device="cuda", use_cpu=False, use_kineto=True)
    profiler._prepare_trace()
    profiler._start_trace()
    for _ in range(4):
        step()
    module._run_on_profiler_stop()
    return len(module._disable_profiler().events())


rate()
print(f"ms a step: bare {rate():.3f} {rate():.3f}", end="", flush=True)
for _ in range(2):
    events = trace()
    print(f"; after a trace of {events} events {rate():.3f} {rate():.3f}", end="", flush=True)
print()
