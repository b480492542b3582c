"""Trains on the first of two or more GPUs, and shows that the page says of the others that nothing uses them.

    PYTHONPATH=operator:profiler_sidecar python -m tests.gpu.check_unused_chips

Takes a minute and a half, because a chip is called unused after a minute. Exits 1 if a check fails, 2 without two GPUs.
"""

from __future__ import annotations

import sys
import time

from rightpool import contract
from tests.gpu import machine
from tests.gpu.pod import Checks, Page, Pod, labelled

_SECONDS = 85
_PROGRAM = f"""
import time, torch
net = torch.nn.Linear(4096, 4096).to("cuda")
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
x = torch.randn(4096, 4096, device="cuda")
until = time.monotonic() + {_SECONDS}
while time.monotonic() < until:
    net(x).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
"""


def main() -> int:
    """The exit status."""
    machine.require("torch", gpus=2)
    count = len(machine.readings())
    checks = Checks()
    early: Page = {}
    last: Page = {}
    with Pod(count) as pod:
        program = pod.start("-c", _PROGRAM, **{contract.ENV_INTERVAL: "1"})
        began = time.monotonic()
        while program.poll() is None:
            time.sleep(1.0)
            page = pod.page()
            if not page.get(contract.STEPS):
                continue
            last = page
            if time.monotonic() - began < 40.0:
                early = page
        errors = program.communicate()[1]
    checks.true("exit code", program.returncode == 0, f"{program.returncode} {errors[-300:]}")
    busy = sorted(labelled(last, contract.CHIP_BUSY))
    checks.true("busy chips", len(busy) == count and busy[-1] > 0.5 and busy[-2] < 0.01, str(busy))
    checks.near("unused chips at first", 0, early.get(contract.CHIPS_UNUSED, -1), 0)
    checks.near("unused chips after a minute", count - 1, last.get(contract.CHIPS_UNUSED, -1), 0)
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
