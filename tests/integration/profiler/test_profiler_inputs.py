"""What real programs wait for their data, however it comes to the thread that makes the steps; or that nobody knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import PATIENCE, Page, Pod
from tests.integration.profiler.forking import ForkHost

pytestmark = pytest.mark.torch

_INPUT: Final = f'{contract.STEP_SHARE}{{part="{contract.PART_INPUT}"}}'

_FEEDERS: Final = """
import ctypes, hashlib, multiprocessing, queue, threading, time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
import numpy
way = WAY

def read(number=0):
    time.sleep(0.02)
    return numpy.ones((8, 16), numpy.float32)

def again(get):
    while True:
        yield get()

def feed(put):
    if multiprocessing.parent_process():
        ctypes.CDLL(None).prctl(1, 9)  # to end with its parent
    while True:
        put(read())

def feeder(held, process=False):
    kind = multiprocessing.get_context("fork").Process if process else threading.Thread
    kind(target=feed, args=(held.put,), daemon=True).start()
    return again(held.get)

def futures():
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(read)
        while True:
            now, ahead = ahead.result(), pool.submit(read)
            yield now

def piped():
    mine, theirs = multiprocessing.Pipe(False)
    multiprocessing.get_context("fork").Process(target=feed, args=(theirs.send,), daemon=True).start()
    return again(mine.recv)

def loaded(rows=10**6):
    from torch.utils.data import DataLoader, Dataset
    class Data(Dataset):
        def __len__(self): return rows
        def __getitem__(self, i): return read()[0]
    return DataLoader(Data(), batch_size=2, collate_fn=numpy.stack)

def ahead_of(loader):  # a thread has the loader, and its waits are not the program's
    held = queue.Queue(maxsize=4)
    threading.Thread(target=lambda: [held.put(one) for one in loader], daemon=True).start()
    for _ in range(10**6):
        time.sleep(0.3)
        yield held.get()

def busy(make):  # a batch is always there: the program takes its time
    def feed():
        while True:
            make()
            held.put(numpy.ones((8, 16), numpy.float32))
    threading.Thread(target=feed, daemon=True).start()
    while True:
        for _ in range(40):
            time.sleep(0)  # gives Python's lock away
        spin(BUSY)
        yield held.get()

def spin(seconds):
    late = time.thread_time() + seconds
    while time.thread_time() < late:
        pass

def hashed():  # without Python's lock
    hashlib.sha256(text).digest()

def from_memory():
    while True:
        held.put_nowait(1)
        held.get_nowait()  # about something else
        yield numpy.ones((8, 16), numpy.float32)

BUSY, text = 0.06 * (way == "hashes"), bytes(2**24)
held = queue.Queue(maxsize=4)
batches = {
    "lock": lambda: busy(lambda: spin(0.02)),
    "hashes": lambda: busy(hashed),
    "queue": lambda: feeder(held),
    "process": lambda: feeder(multiprocessing.get_context("fork").Queue(4), True),
    "pipe": piped,
    "futures": futures,
    "pool": lambda: ThreadPool(1).imap(read, range(5000)),
    "loader": loaded,
    "ahead": lambda: ahead_of(loaded()),
    "memory": from_memory,
    "inline": lambda: again(read),
}[way]()
"""
_TORCH: Final = """
import torch
net = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for batch in batches:
    net(torch.from_numpy(batch)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
_JAX: Final = """
import jax, jax.numpy as jnp
step = jax.jit(lambda w, x: w - 0.01 * jax.grad(lambda w: ((x @ w) ** 2).mean())(w))
weights = jnp.ones((16, 1))
for batch in batches:
    weights = step(weights, batch)
    weights.block_until_ready()
"""
_STEPS: Final = 30


def page(pod: Pod, host: ForkHost, program: str, way: str, asked: Callable[[Page], object]) -> Page:
    running = host.start(pod, _FEEDERS.replace("WAY", repr(way)) + program)
    found = pod.page(lambda page: page.get(contract.STEPS, 0) >= _STEPS and asked(page))
    running.kill()
    running.wait(PATIENCE)
    return found


@pytest.mark.parametrize("way", ["queue", "process", "pipe", "futures", "pool", "loader"])
def test_a_program_waits_for_what_others_read(pod: Pod, torch_host: ForkHost, way: str) -> None:
    found = page(pod, torch_host, _TORCH, way, lambda page: page.get(_INPUT, 0.0) > 0.5)
    assert found[_INPUT] <= 1.0


def test_the_waits_of_a_thread_that_makes_no_steps_are_not_the_programs(pod: Pod, torch_host: ForkHost) -> None:
    """It reads for some 0.04 s a batch, while the program works for 0.3 s a step."""
    found = page(pod, torch_host, _TORCH, "ahead", lambda page: _INPUT in page)
    assert found[_INPUT] < 0.05


def test_a_thread_that_holds_pythons_lock_is_waited_for(pod: Pod, torch_host: ForkHost) -> None:
    """It makes batches in Python, and is ahead of the program by four."""
    page(pod, torch_host, _TORCH, "lock", lambda page: page.get(_INPUT, 0.0) > 0.3)


def test_a_thread_that_holds_no_lock_is_not_waited_for(pod: Pod, torch_host: ForkHost) -> None:
    found = page(pod, torch_host, _TORCH, "hashes", lambda page: _INPUT in page)
    assert found[_INPUT] < 0.2


@pytest.mark.parametrize("way", ["memory", "inline"])
def test_what_was_not_watched_is_missing(pod: Pod, torch_host: ForkHost, way: str) -> None:
    """The program has its data in memory, or reads it by itself: who knows?"""
    assert _INPUT not in page(pod, torch_host, _TORCH, way, lambda page: True)


@pytest.mark.jax
@pytest.mark.parametrize("way", ["queue", "loader"])
def test_a_jax_program_waits_for_what_others_read(pod: Pod, jax_host: ForkHost, way: str) -> None:
    page(pod, jax_host, _JAX, way, lambda page: page.get(_INPUT, 0.0) > 0.5)


@pytest.mark.jax
def test_what_a_jax_program_does_not_take_from_others_is_missing(pod: Pod, jax_host: ForkHost) -> None:
    assert _INPUT not in page(pod, jax_host, _JAX, "inline", lambda page: True)
