"""Traces that a user asks for, of real PyTorch programs on the CPU, through a real agent and sidecar."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from rightpool import contract
from rightpool.planning.jobs.trace_answer import TraceAnswer
from rightpool.planning.moves.trace_ranks import with_ranks
from rightpool.runtime.act.trace_answers import read_answer
from rightpool_profiler.traces.kept import Kept
from tests.integration.profiler.conftest import ALL_STEPS, PATIENCE, Pod, free_port
from tests.integration.profiler.forking import Forked, ForkHost

pytestmark = pytest.mark.torch

_PROGRAM: Final = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self): return 1 << 20
    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.ones(64)

net = torch.nn.Linear(64, 64)
several = int(os.environ.get("WORLD_SIZE", "1")) > 1
if several:
    torch.distributed.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
own = os.environ.get("OWN_PROFILER")
if own:
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    profiler.start()

def to_stop():
    stop = torch.tensor(float(os.path.exists(os.environ["STOP"])))
    if several:
        torch.distributed.all_reduce(stop)  # a rank that left alone would end the other one in its next step
    return stop > 0

held = []

def work():
    if os.environ.get("HOLDS"):
        torch.ones(8 << 20)  # 32 MiB, for a moment
        held.append(torch.ones(1 << 18))  # 1 MiB, for good
    until = time.monotonic() + float(os.environ.get("WORK", "0"))
    while time.monotonic() < until:
        torch.ones(256, 256) @ torch.ones(256, 256)

for batch in DataLoader(Data(), batch_size=8):
    work()
    net(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if to_stop():
        break
if own:
    profiler.stop()
if several:
    torch.distributed.destroy_process_group()
print("done", flush=True)
"""


class Program:
    def __init__(self, host: ForkHost, pod: Pod, folder: Path) -> None:
        self.host = host
        self.pod = pod
        self.stop = folder / "stop"

    def start(self, ranks: int = 1, slow: int | None = None, **environment: str) -> list[Forked]:
        """slow: the rank that computes for most of a second in each step."""
        port = str(free_port())
        launcher = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port} if ranks > 1 else {}
        programs = [
            self.host.start(
                self.pod,
                _PROGRAM,
                STOP=str(self.stop),
                RANK=str(rank),
                WORK="0.7" if rank == slow else "0",
                **launcher,
                **environment,
            )
            for rank in range(ranks)
        ]
        self.pod.until(lambda: self.pod.metrics().get(contract.STEPS, 0) >= 3)
        return programs

    def start_alone(self, **environment: str) -> list[subprocess.Popen[str]]:
        """A Python of its own, as users start it."""
        self.pod.alter("torch_trace.py", ALL_STEPS)
        program = self.pod.start("-c", _PROGRAM, STOP=str(self.stop), **environment)
        self.pod.until(lambda: self.pod.metrics().get(contract.STEPS, 0) >= 3)
        return [program]

    def end(self, programs: Sequence[subprocess.Popen[str] | Forked]) -> None:
        """The program has run on as if nothing had happened, and said nothing that it does not say alone."""
        self.stop.touch()
        for program in programs:
            out, err = program.communicate(timeout=PATIENCE)
            assert (program.returncode, out) == (0, "done\n"), err
            assert "profiler" not in err.lower() and "rightpool" not in err and "ERROR" not in err, err


@pytest.fixture
def program(torch_host: ForkHost, pod: Pod, tmp_path: Path) -> Program:
    return Program(torch_host, pod, tmp_path)


def served(pod: Pod, identity: str, rank: int | str = 0) -> dict[str, Any]:
    """The sidecar's answer when it is over; of one rank, with what it says of it."""
    found: dict[str, Any] = {}

    def settled() -> bool:
        nonlocal found
        status, found = pod.post({"id": identity, "rank": rank}, path=contract.PATH_TRACE)
        assert status == 202, found
        return found["state"] in (contract.TRACE_CAPTURED, contract.TRACE_FAILED)

    pod.until(settled)
    return found if rank == contract.TRACE_ALL or not found["ranks"] else {**found, **found["ranks"][0]}


def sent(pod: Pod, identity: str, *, of_xla: bool = False) -> tuple[int, bytes]:
    """What the command line gets."""
    out = io.BytesIO()
    return Kept(pod.kept).send(identity, out, of_xla=of_xla), out.getvalue()


def chrome_traces(pod: Pod, identity: str, answers: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The events of each file as the command line gets them, by rank as in the answers."""
    status, stream = sent(pod, identity)
    assert status == 0
    found = []
    for left, answer in reversed(list(enumerate(reversed(answers)))):
        head, _, stream = stream.partition(b"\n")
        about = json.loads(head)
        assert (about["rank"], about["left"], about["sha256"]) == (answer["rank"], left, answer["sha256"])
        packed, stream = stream[: about["size"]], stream[about["size"] :]
        found.append(_events(packed, answer))
    assert stream == b""
    return found


def chrome_trace(pod: Pod, identity: str, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The same of one rank."""
    (events,) = chrome_traces(pod, identity, [answer])
    return events


def _events(packed: bytes, answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Of a file, checked against the format of Chrome traces."""
    assert hashlib.sha256(packed).hexdigest() == answer["sha256"]
    body = gzip.decompress(packed)
    assert len(body) == answer["bytes"]
    events = json.loads(body)["traceEvents"]
    assert isinstance(events, list)
    for event in events:
        assert isinstance(event["ph"], str) and isinstance(event["name"], str)
        assert event["ph"] == "M" or isinstance(event["ts"], (int, float))
        if event["ph"] == "X":
            assert event["dur"] >= 0 and "pid" in event and "tid" in event
    return list(events)


def test_a_trace_of_a_program_on_the_cpu(program: Program) -> None:
    pod = program.pod
    running = program.start_alone()
    answer = served(pod, "first")
    assert answer["state"] == contract.TRACE_CAPTURED, answer
    summary = answer["summary"]
    assert summary["on"] == "host" and summary["steps"] == 4
    assert sum(summary["parts"].values()) == pytest.approx(1.0)
    assert summary["parts"][contract.PART_INPUT] * summary["seconds"] >= 4 * 8 * 0.002, "it sleeps for each sample"
    (product,) = (one for one in summary["operations"] if one["name"] == "aten::addmm")
    assert product["flops"] / product["bytes"] == pytest.approx(
        2 * 8 * 64 * 64 / (4 * (64 + 8 * 64 + 64 * 64 + 8 * 64))
    )
    events = chrome_trace(pod, "first", answer)
    assert sum(event["name"].startswith("Optimizer.step#") for event in events) == 4
    assert served(pod, "first") == answer, "a repeated request is the same one"
    second = served(pod, "second")
    assert second["state"] == contract.TRACE_CAPTURED and second["sha256"] != answer["sha256"]
    assert sent(pod, "first")[0] == 1, "the next one has taken its place"
    assert len(list(pod.kept.iterdir())) == 2, "what was answered, and the file"
    assert list((pod.shared / "traces").iterdir()) == [], "the program's side keeps none"
    pod.restart_sidecar()
    assert served(pod, "second") == second, "it is not taken again"
    program.end(running)


def test_memory_of_a_program_that_holds_more_after_each_step(program: Program) -> None:
    """Twice, as PyTorch goes on to count where the first trace has ended."""
    running = program.start_alone(HOLDS="1")
    for identity in ("first", "second"):
        answer = served(program.pod, identity)
        assert answer["state"] == contract.TRACE_CAPTURED, answer
        memory = answer["summary"]["memory"]
        mebibyte = 1 << 20
        assert (memory["device"], memory["phase"]) == ("cpu", contract.PHASE_FORWARD)
        assert 32 * mebibyte <= memory["peak"] == max(memory["timeline"]) < 40 * mebibyte
        assert "reserved" not in memory and "capacity" not in memory and "others" not in memory
        assert 0.0 < memory["step"] < 1.0
        assert [after - before for before, after in pairwise(memory["ends"])] == [mebibyte] * 3
        read = read_answer(json.dumps(answer)).ranks[0].summary
        assert read is not None and read.memory is not None and read.memory.growth == mebibyte
    program.end(running)


def test_memory_is_left_out_where_pytorch_would_tell_of_it(program: Program) -> None:
    """A program that asks for more of PyTorch's log than warnings gets all of it, and nothing of ours."""
    running = program.start_alone(TORCH_CPP_LOG_LEVEL="INFO")
    answer = served(program.pod, "first")
    assert answer["state"] == contract.TRACE_CAPTURED and answer["summary"]["memory"] is None
    program.stop.touch()
    out, err = running[0].communicate(timeout=PATIENCE)
    assert (running[0].returncode, out) == (0, "done\n") and "unknown size" not in err


def test_one_rank_of_two(program: Program) -> None:
    running = program.start(ranks=2)
    answer = served(program.pod, "one", rank=1)
    assert answer["state"] == contract.TRACE_CAPTURED, answer
    (collective,) = answer["summary"]["collectives"]
    assert collective["name"] == "gloo:all_reduce" and 0 < collective["exposed"] <= collective["share"] < 1
    assert answer["summary"]["parts"][contract.PART_EXPOSED_COMMUNICATION] > 0
    events = chrome_trace(program.pod, "one", answer)
    pids = {event["pid"] for event in events if event.get("cat") == "cpu_op"}
    assert pids == {running[1].pid}
    program.pod.restart_sidecar(altered={"START_SECONDS": 0.0})
    assert served(program.pod, "nobody", rank=7)["reason"] == "NoRank"
    program.end(running)


def test_all_ranks_and_which_one_holds_up_the_other(program: Program) -> None:
    pod = program.pod
    running = program.start(ranks=2, slow=1)
    assert pod.post({"id": "all", "rank": "all"}, path=contract.PATH_TRACE)[0] == 202
    pod.until(lambda: (pod.kept / "newest.json").exists())
    # The first rank has had its turn. On a busy machine the other one is heard of late.
    pod.restart_sidecar(altered={"HEARD_SECONDS": 20.0})
    answer = served(pod, "all", contract.TRACE_ALL)
    assert answer["state"] == contract.TRACE_CAPTURED and answer["world"] == 2, answer
    assert [(one["rank"], one["reason"]) for one in answer["ranks"]] == [(0, ""), (1, "")]
    for rank, events in enumerate(chrome_traces(pod, "all", answer["ranks"])):
        assert {event["pid"] for event in events if event.get("cat") == "cpu_op"} == {running[rank].pid}
        assert sum(event["name"].startswith("Optimizer.step#") for event in events) == 4
    found = read_answer(json.dumps(answer))
    compared = with_ranks(TraceAnswer("all", None, found.state), {"pod": found}, {}).ranks
    assert compared is not None and (compared.captured, compared.failed, compared.program) == (2, 0, 2)
    (waiting,) = (one for one in compared.parts if one.part == "ExposedCommunication")
    assert (waiting.least_rank, waiting.most_rank, compared.straggler) == (1, 0, 1), compared
    assert list((pod.shared / "traces").glob("*.requested.json*")) == [], "the program's side keeps none"
    assert served(pod, "all", contract.TRACE_ALL) == answer, "a repeated request is the same one"
    assert served(pod, "one", 1)["state"] == contract.TRACE_CAPTURED
    assert len(list(pod.kept.iterdir())) == 2, "the next one has taken the place of both"
    program.end(running)


def test_the_programs_own_profiler_goes_first(program: Program) -> None:
    running = program.start(OWN_PROFILER="1")
    answer = served(program.pod, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "ProgramProfiles")
    program.stop.touch()
    out, err = running[0].communicate(timeout=PATIENCE)
    assert (running[0].returncode, out) == (0, "done\n"), err


def test_a_full_volume_of_the_sidecar(program: Program) -> None:
    running = program.start()
    (program.pod.kept / "copy.tmp").symlink_to("/dev/full")
    answer = served(program.pod, "one")
    assert (answer["state"], answer["reason"]) == (contract.TRACE_FAILED, "NoSpace")
    again = served(program.pod, "two")
    assert again["state"] == contract.TRACE_CAPTURED, "what was in the way is gone with the attempt"
    program.end(running)


def test_a_program_that_makes_no_more_steps(pod: Pod, tmp_path: Path) -> None:
    for module, change in {
        "trace_schedule.py": {"_REQUESTED_LONGEST = 90.0": "_REQUESTED_LONGEST = 1.0"},
        "trace_request.py": {"_LASTS = 240.0": "_LASTS = 5.0"},
    }.items():
        pod.alter(module, change)
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, torch\n"
        "net = torch.nn.Linear(4, 4)\n"
        "optimizer = torch.optim.SGD(net.parameters(), lr=0.01)\n"
        "for _ in range(20):\n"
        "    net(torch.ones(2, 4)).sum().backward(); optimizer.step()\n"
        "sys.stdin.readline()\n"
    )
    running = pod.start(str(script))
    pod.until(lambda: pod.metrics().get(contract.STEPS, 0) >= 20)
    assert served(pod, "one")["reason"] == "NoSteps"
    running.communicate("\n", timeout=PATIENCE)
    assert running.returncode == 0


def test_without_the_agent(make_pod: Callable[..., Pod]) -> None:
    pod = make_pod()
    pod.start_sidecar(altered={"NO_AGENT_SECONDS": 0.5, "START_SECONDS": 0.0})
    assert served(pod, "one")["reason"] == "NoAgent"


def test_the_command_that_sends_it(pod: Pod) -> None:
    """As the command line runs it in the container: nothing is kept, and it says so."""
    result = subprocess.run(
        [sys.executable, "-m", "rightpool_profiler", "trace", "gone"],
        env={**pod.sidecar_environment()},
        capture_output=True,
        timeout=PATIENCE,
        cwd="/",
    )
    assert result.returncode == 1
    assert json.loads(result.stdout) == {"message": "this trace is not kept any more: the newest one is none"}
