"""Real programs of which better or worse evidence comes in later, from the agent to what is made of it: what is counted
follows the best source at hand, counts nothing twice, and never goes back."""

from collections.abc import Iterator

import pytest

from rightpool import contract
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.revision_window import RevisionWindow
from rightpool.planning.work.progress import progress_of
from rightpool.profiles.sample import Field, Quality
from rightpool.profiles.step_count import Basis
from rightpool.telemetry.reader import Target
from rightpool.telemetry.scrape import ScrapeReader
from tests.integration.profiler.conftest import PATIENCE, Page, Pod
from tests.integration.profiler.forking import ForkHost
from tests.unit.planning.jobs import NOW, changed, running, spec

# Ten steps whenever it is told to: "rows" of a batch of 8 that is given to the module, "mixed" with arrays that do not
# agree, "hand" without the optimizer.
_PROGRAM = """
import sys, torch
class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 1)
    def forward(self, x, more=None):
        out = self.inner(x).square().mean()
        return out if more is None else out + more.mean()
net = Pair()
optimizer = None
for line in sys.stdin:
    for _ in range(10):
        if line == "hand\\n":
            net(torch.randn(8, 4)).backward()
            with torch.no_grad():
                for p in net.parameters():
                    p -= 0.01 * p.grad
                    p.grad = None
            continue
        optimizer = optimizer or torch.optim.SGD(net.parameters(), lr=0.01)
        optimizer.zero_grad()
        net(torch.randn(8, 4), *([torch.randn(3)] if line == "mixed\\n" else [])).backward()
        optimizer.step()
    print("done", flush=True)
"""


def pages(host: ForkHost, pod: Pod, phases: list[str]) -> Iterator[tuple[int, Page]]:
    """After each ten steps: how many the program has made, and the page that has them."""
    program = host.start(pod, _PROGRAM)
    for number, phase in enumerate(phases, 1):
        program.stdin.write(phase + "\n")
        program.stdin.flush()
        assert program.stdout.readline() == "done\n"
        least = 10 * number - (phase == "hand")  # of steps by hand, the last one shows with the next pass
        yield 10 * number, pod.page(lambda page, least=least: page.get(contract.STEPS, 0.0) >= least)
    _, err = program.communicate(timeout=PATIENCE)
    assert program.returncode == 0, err


def quality(page: Page, field: str) -> list[str]:
    names = (contract.QUALITY_MEASURED, contract.QUALITY_DERIVED, contract.QUALITY_MISSING)
    return [name for name in names if page.get(f'{contract.FIELD_QUALITY}{{field="{field}",quality="{name}"}}')]


@pytest.mark.torch
@pytest.mark.parametrize("per_step", [None, 8])
def test_a_program_that_ceases_to_count_its_samples_keeps_a_throughput(
    torch_host: ForkHost, pod: Pod, per_step: int | None
) -> None:
    progress = {} if per_step is None else {"progress": {"samplesPerStep": per_step}}
    job = running(made=spec(profiling={"interval": "10s", "window": "1m"}, **progress))
    window = RevisionWindow.of(job, 1)
    clock, done = [0.0], [0]
    reader = ScrapeReader(port=pod.port, timeout=60.0, budget=120.0, clock=lambda: clock[0])
    target = Target(window.key, (("pod-0", "127.0.0.1"),), 10.0)
    bases = []
    for made, page in pages(torch_host, pod, 5 * ["rows"] + 12 * ["mixed"]):
        clock[0] = float(made)
        counted = made <= 50
        assert quality(page, contract.SAMPLES) == ["measured" if counted else "missing"]
        assert page.get(contract.SAMPLES) == (8.0 * made if counted else None)
        for sample in reader.read((target,), NOW + clock[0]).samples.values():
            window.append(sample)
        seen = window.observe(job, None, NOW + clock[0])
        bases.append(window.count.basis)
        done.append(progress_of(changed(job, profile=seen.profile, track=seen.track), NOW + clock[0]).done)
    reader.close()
    assert bases[4] is Basis.COUNTED and bases[-1] is (Basis.STEPS if per_step is None else Basis.DERIVED)
    profile = seen.profile
    assert profile is not None and profile.complete and profile.throughput is not None
    if per_step is None:
        assert (profile.unit, profile.throughput.value) == (WorkUnit.STEPS, pytest.approx(1.0))
    else:
        reading = profile.readings[Field.SAMPLES_PER_SECOND]
        assert (reading.value, reading.quality) == (pytest.approx(8.0), Quality.DERIVED)
        assert done == sorted(done) and done[-1] == 8 * 170, "each once"


@pytest.mark.torch
def test_an_optimizer_that_comes_later_makes_steps_measured_and_none_twice(torch_host: ForkHost, pod: Pod) -> None:
    found = [
        (made, page[contract.STEPS], quality(page, contract.STEPS))
        for made, page in pages(torch_host, pod, 3 * ["hand"] + 3 * ["rows"])
    ]
    assert [one for *_, one in found] == 3 * [["derived"]] + 3 * [["measured"]]
    counts = [steps for _, steps, _ in found]
    assert counts == sorted(counts)
    assert [made - steps for made, steps, _ in found][3:] == 3 * [0.0]
