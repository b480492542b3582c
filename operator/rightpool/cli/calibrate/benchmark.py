"""What one chip computes and copies, and how fast chips of one node add up: a program for the pod of a calibration.

    python benchmark.py --json [--platform gpu|tpu|cpu] [--dtypes bf16,fp32] [--chips N]

It is one file without imports of ours, since it is passed to the container as text. It takes PyTorch or JAX, whichever
finds the platform; on one chip well below a minute. The last line of its output is a JSON object:

    rightpoolBenchmark   1, the version of this format
    platform, device     gpu, tpu or cpu; the chip's name as the framework has it
    memoryBytes          of one chip; null where the framework does not tell
    software             framework and version
    chips                that were asked for
    flops                by dtype: {median, best, size}; FLOP/s of a product of square matrices with `size` rows
    copy                 {median, best, size}; bytes a second, read and written, of a copy of `size` bytes
    allReduce            for 2, 4, … and all chips: {chips, median, best, size}; bus bandwidth, bytes a second in one
                         direction: 2 (n-1)/n · size / time
    errors               by dtype, or by copy or allReduce: why something could not be measured

A chip of the platform cpu is one core, computed on by one thread.
"""

import argparse
import datetime
import functools
import importlib.util
import json
import multiprocessing
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

DTYPES = ("fp32", "tf32", "bf16", "fp16")
SIZES = (256, 512, 1024, 2048, 4096, 8192, 16384)
GIB = 2**30
# At most this part of a chip's memory is taken.
PART = 0.25
# Seconds: one step may last so long; a size is tried for so long, and the best one is measured so often for so long.
LONGEST_STEP, TRIAL, REPEATS, REPEAT = 0.25, 0.1, 11, 0.15
PATIENCE = 240


class Torch:
    """PyTorch on one GPU (CUDA or ROCm), or on one core of the processor."""

    def __init__(self, platform: str, rank: int) -> None:
        import torch

        self.torch = torch
        if platform == "gpu":
            if not torch.cuda.is_available():
                raise SystemExit("benchmark: PyTorch sees no GPU: does the image fit the driver of the node?")
            torch.cuda.set_device(rank)
            self.device = torch.device("cuda", rank)
            about = torch.cuda.get_device_properties(rank)
            self.name, self.memory = str(about.name), int(about.total_memory)
            stack = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
        else:
            torch.set_num_threads(1)
            self.device, self.name, self.memory = torch.device("cpu"), processor(), 0
            stack = "CPU"
        self.software = f"PyTorch {torch.__version__}, {stack}"

    def wait(self, _: Any) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def product(self, dtype: str, size: int) -> Callable[[], Any]:
        torch = self.torch
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        kind = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(dtype, torch.float32)
        left, right = (torch.randn(size, size, device=self.device).to(kind) for _ in range(2))
        out = torch.empty(size, size, device=self.device, dtype=kind)
        return lambda: torch.mm(left, right, out=out)

    def copy(self, size: int) -> Callable[[], Any]:
        source = self.torch.ones(size // 4, device=self.device)
        target = self.torch.empty_like(source)
        return lambda: target.copy_(source)

    def all_reduces(self, rank: int, counts: list[int], size: int, meeting: str) -> list[dict[str, Any]]:
        """Run by all processes alike; what rank 0 returns counts. meeting: the file by which they find each other."""
        import torch.distributed as dist

        kind = "nccl" if self.device.type == "cuda" else "gloo"
        # The others wait here while rank 0 measures alone; where one of them has died, nobody waits for ever.
        patience = datetime.timedelta(seconds=PATIENCE)
        where = pathlib.Path(meeting).as_uri()
        dist.init_process_group(kind, init_method=where, rank=rank, world_size=counts[-1], timeout=patience)
        data = self.torch.zeros(size // 4, device=self.device)
        found = []
        for count in counts:
            group = dist.new_group(list(range(count)))
            if rank < count:
                rates = []
                for number in range(REPEATS + 2):
                    dist.barrier(group)
                    self.wait(None)
                    began = time.perf_counter()
                    dist.all_reduce(data, group=group)
                    self.wait(None)
                    if number >= 2:  # the first ones connect
                        rates.append(2 * (count - 1) / count * size / (time.perf_counter() - began))
                found.append({"chips": count, "size": size, **summary(rates)})
            dist.barrier()
        dist.destroy_process_group()
        return found


class Jax:
    """JAX on TPUs, GPUs or cores of the processor; one process has all chips."""

    def __init__(self, platform: str, chips: int) -> None:
        if platform == "cpu":
            flags = f"--xla_force_host_platform_device_count={chips} --xla_cpu_multi_thread_eigen=false"
            os.environ |= {"JAX_PLATFORMS": "cpu", "NPROC": "1", "XLA_FLAGS": flags}
        import jax

        self.jax = jax
        self.devices = list(jax.local_devices())
        if self.devices[0].platform != platform:
            raise SystemExit(f"benchmark: JAX sees {self.devices[0].platform} and no {platform}: take another image")
        if len(self.devices) < chips:
            raise SystemExit(f"benchmark: JAX sees {len(self.devices)} of {chips} chips")
        self.name = processor() if platform == "cpu" else str(self.devices[0].device_kind)
        # On a GPU the limit is that of a reserved part.
        stats = (self.devices[0].memory_stats() or {}) if platform == "tpu" else {}
        self.memory = int(stats.get("bytes_limit", 0))
        self.software = f"JAX {jax.__version__}"

    def wait(self, result: Any) -> None:
        result.block_until_ready()

    def product(self, dtype: str, size: int) -> Callable[[], Any]:
        jax = self.jax
        if dtype == "tf32" and self.devices[0].platform != "gpu":
            raise ValueError("JAX has TF32 on GPUs alone")
        kind = {"bf16": "bfloat16", "fp16": "float16"}.get(dtype, "float32")
        precision = "tensorfloat32" if dtype == "tf32" else "highest" if dtype == "fp32" else "default"
        left, right = (jax.random.normal(jax.random.key(key), (size, size)).astype(kind) for key in (0, 1))
        step = jax.jit(lambda x, y: jax.numpy.matmul(x, y, precision=precision))
        return lambda: step(left, right)

    def copy(self, size: int) -> Callable[[], Any]:
        # Into its own place, since new memory would be cleared first; a plain copy would be optimised away.
        step = self.jax.jit(lambda x: -x, donate_argnums=0)
        held = [self.jax.numpy.ones(size // 4, dtype="float32")]

        def again() -> Any:
            held[0] = step(held[0])
            return held[0]

        return again

    def all_reduces(self, counts: list[int], size: int) -> list[dict[str, Any]]:
        jax = self.jax
        found = []
        for count in counts:
            devices = self.devices[:count]
            step = jax.pmap(lambda x: jax.lax.psum(x, "chips"), "chips", devices=devices)
            data = step(jax.numpy.zeros((count, size // 4)))  # each row on its chip from now on
            self.wait(step(data))
            seconds = timings(functools.partial(step, data), self.wait, 1)
            rates = [2 * (count - 1) / count * size / one for one in seconds]
            found.append({"chips": count, "size": size, **summary(rates)})
        return found


def processor() -> str:
    """The processor's name, where the system tells."""
    try:
        with open("/proc/cpuinfo") as lines:  # noqa: PTH123 (text of one file for any Python)
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return "CPU"


def timings(step: Callable[[], Any], wait: Callable[[Any], None], count: int) -> list[float]:
    """Seconds of a step, REPEATS times the mean of `count` steps."""
    found = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(count):
            result = step()
        wait(result)
        found.append((time.perf_counter() - began) / count)
    return found


def once(step: Callable[[], Any], wait: Callable[[Any], None]) -> float:
    """Seconds of one step that is warm; the mean of as many as TRIAL has room for."""
    wait(step())
    began = time.perf_counter()
    wait(step())
    single = max(time.perf_counter() - began, 1e-7)
    count = max(1, min(1000, int(TRIAL / single)))
    began = time.perf_counter()
    for _ in range(count):
        result = step()
    wait(result)
    return (time.perf_counter() - began) / count


def summary(rates: list[float]) -> dict[str, float]:
    """Of rates a second."""
    return {"median": statistics.median(rates), "best": max(rates)}


def measured_product(framework: Any, dtype: str) -> dict[str, Any]:
    """FLOP/s at the size of matrices at which they are highest."""
    most = PART * (framework.memory or 2 * GIB)
    tried: dict[int, float] = {}
    for size in SIZES:
        if 3 * 4 * size**2 > most:
            break
        tried[size] = once(framework.product(dtype, size), framework.wait)
        if 8 * tried[size] > LONGEST_STEP:  # the next one has eight times the work
            break
    size = max(tried, key=lambda one: one**3 / tried[one])
    count = max(1, int(REPEAT / tried[size]))
    seconds = timings(framework.product(dtype, size), framework.wait, count)
    return {"size": size, **summary([2 * size**3 / one for one in seconds])}


def measured_copy(framework: Any) -> dict[str, Any]:
    """Bytes a second of a copy that no cache holds."""
    size = 2 * GIB if framework.memory and framework.memory > 12 * GIB else GIB // 4
    step = framework.copy(size)
    count = max(1, int(REPEAT / once(step, framework.wait)))
    return {"size": size, **summary([2 * size / one for one in timings(step, framework.wait, count)])}


def on_one_chip(framework: Any, dtypes: list[str]) -> dict[str, Any]:
    """Everything that needs one chip alone."""
    errors: dict[str, str] = {}
    flops: dict[str, Any] = {}
    copy = None
    for dtype in dtypes:
        try:
            flops[dtype] = measured_product(framework, dtype)
        except Exception as error:  # of any library; the other dtypes count
            errors[dtype] = f"{type(error).__name__}: {error}"[:300]
    try:
        copy = measured_copy(framework)
    except Exception as error:
        errors["copy"] = f"{type(error).__name__}: {error}"[:300]
    return {
        "device": framework.name,
        "memoryBytes": framework.memory or None,
        "software": framework.software,
        "flops": flops,
        "copy": copy,
        "allReduce": [],
        "errors": errors,
    }


def counts_of(chips: int) -> list[int]:
    """2, 4, … and all: how many chips add up."""
    found = [count for power in range(1, chips.bit_length()) if (count := 2**power) < chips]
    return [*found, chips] if chips > 1 else []


def all_reduce_bytes(platform: str) -> int:
    return GIB // 4 if platform != "cpu" else GIB // 32


def torch_process(rank: int, options: argparse.Namespace, meeting: str, answers: Any) -> None:
    """One of as many processes as chips. Only rank 0 answers."""
    framework = Torch(options.platform, rank)
    found = on_one_chip(framework, options.dtypes) if rank == 0 else None
    try:
        sums = framework.all_reduces(rank, counts_of(options.chips), all_reduce_bytes(options.platform), meeting)
    except Exception as error:
        if found is None:
            raise
        found["errors"]["allReduce"] = f"{type(error).__name__}: {error}"[:300]
    else:
        if found is not None:
            found["allReduce"] = sums
    if found is not None:
        answers.send(found)


def with_torch(options: argparse.Namespace) -> dict[str, Any]:
    """One process a chip, forked before PyTorch is loaded: a GPU cannot be used on both sides of a fork."""
    if options.chips == 1:
        return on_one_chip(Torch(options.platform, 0), options.dtypes)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    # A file and no port: two calibrations on one host would take the same one.
    with tempfile.TemporaryDirectory() as folder:
        meeting = f"{folder}/processes"
        workers = [
            context.Process(target=torch_process, args=(rank, options, meeting, sender))
            for rank in range(options.chips)
        ]
        for worker in workers:
            worker.start()
        sender.close()
        try:
            found: dict[str, Any] = receiver.recv()
        except EOFError:
            raise SystemExit("benchmark: a process ended before it had measured; its message is above") from None
        finally:
            for worker in workers:
                worker.join(20)
                worker.kill()
    return found


def with_jax(options: argparse.Namespace) -> dict[str, Any]:
    """All chips in this process."""
    framework = Jax(options.platform, options.chips)
    found = on_one_chip(framework, options.dtypes)
    try:
        found["allReduce"] = framework.all_reduces(counts_of(options.chips), all_reduce_bytes(options.platform))
    except Exception as error:
        found["errors"]["allReduce"] = f"{type(error).__name__}: {error}"[:300]
    return found


def main() -> int:
    """Measure, and print; 0 where there is something to print."""
    parser = argparse.ArgumentParser(description="What one chip computes and copies, and how fast chips add up.")
    parser.add_argument("--json", action="store_true", help="only the line with the results")
    parser.add_argument("--platform", choices=("gpu", "tpu", "cpu"), default="gpu")
    parser.add_argument("--dtypes", type=lambda text: [name for name in text.split(",") if name], default=list(DTYPES))
    parser.add_argument("--chips", type=int, default=1)
    options = parser.parse_args()
    there = {name for name in ("torch", "jax") if importlib.util.find_spec(name) is not None}
    order = ("torch", "jax") if options.platform == "gpu" else ("jax", "torch")
    chosen = next((name for name in order if name in there and (name, options.platform) != ("torch", "tpu")), None)
    if chosen is None:
        raise SystemExit(f"benchmark: this image has {' and '.join(there) or 'neither PyTorch nor JAX'}: take another")
    unknown = set(options.dtypes) - set(DTYPES)
    if unknown:
        raise SystemExit(f"benchmark: {', '.join(sorted(unknown))} can't be measured: take some of {', '.join(DTYPES)}")
    began = time.perf_counter()
    found = (with_torch if chosen == "torch" else with_jax)(options)
    if not options.json:
        print(f"took {time.perf_counter() - began:.1f} s with {chosen}", file=sys.stderr)
    head = {"rightpoolBenchmark": 1, "platform": options.platform, "chips": options.chips}
    print(json.dumps(head | found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
