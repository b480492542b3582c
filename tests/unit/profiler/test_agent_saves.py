"""Saves by functions of frameworks: seen, timed, and never in the program's way."""

import io
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rightpool_agent import checkpoint, saves
from rightpool_agent.steps import StepLog


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIGHTPOOL_CHECKPOINT_PATH", raising=False)
    monkeypatch.setattr(checkpoint, "_SETTLED", 0.0)
    checkpoint.observed.clear()
    checkpoint.running.clear()


@pytest.fixture
def watch(tmp_path: Path) -> checkpoint.Watch:
    return checkpoint.Watch(str(tmp_path))


def saved(watch: checkpoint.Watch) -> float | None:
    return watch.look(StepLog(), 0).get("saved")


class Checkpointer:
    """As orbax' synchronous one."""

    fails = False

    def save(self, directory: Any, *args: Any, force: bool = False, **kwargs: Any) -> None:
        """The user's documentation."""
        if self.fails:
            raise ValueError("cannot write")


class AsyncCheckpointer(Checkpointer):
    """As orbax' that writes in the background."""

    def save(self, directory: Any, *args: Any, force: bool = False, **kwargs: Any) -> None:
        self.wait_until_finished()

    def wait_until_finished(self) -> None:
        if self.fails:
            raise ValueError("cannot write")


@pytest.fixture
def orbax() -> Any:
    synchronous = type("Checkpointer", (Checkpointer,), {"save": Checkpointer.save})
    background = type(
        "AsyncCheckpointer",
        (AsyncCheckpointer,),
        {"save": AsyncCheckpointer.save, "wait_until_finished": AsyncCheckpointer.wait_until_finished},
    )
    module = SimpleNamespace(Checkpointer=synchronous, AsyncCheckpointer=background)
    saves.install_orbax(module)
    saves.install_orbax(module)
    return module


def safetensors() -> Any:
    def save_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
        if tensors is None:
            raise TypeError("no tensors")

    module = SimpleNamespace(save_file=save_file)
    saves.install_safetensors(module)
    saves.install_safetensors(module)
    return module


def test_a_file_of_safetensors_is_a_save(watch: checkpoint.Watch) -> None:
    began = time.time()
    safetensors().save_file({}, "model.safetensors")
    assert len(checkpoint.observed) == 1, "installed twice, seen once"
    at = saved(watch)
    assert at is not None and began <= at <= time.time()


def test_a_shard_is_none_but_the_last_one_is(watch: checkpoint.Watch) -> None:
    module = safetensors()
    module.save_file({}, filename="model-00001-of-00002.safetensors")
    assert saved(watch) is None
    module.save_file({}, filename="model-00002-of-00002.safetensors")
    assert saved(watch) is not None


def test_more_files_of_the_same_checkpoint_are_awaited(
    watch: checkpoint.Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "_SETTLED", 3600.0)
    safetensors().save_file({}, "model.safetensors")
    assert saved(watch) is None
    monkeypatch.setattr(checkpoint, "_SETTLED", 0.0)
    checkpoint.running.add("another save")
    assert saved(watch) is None
    checkpoint.running.clear()
    assert saved(watch) is not None


def test_what_fails_is_no_save_and_fails_as_before(watch: checkpoint.Watch, orbax: Any) -> None:
    with pytest.raises(TypeError, match="no tensors"):
        safetensors().save_file(None, "model.safetensors")
    orbax.Checkpointer.fails = True
    with pytest.raises(ValueError, match="cannot write") as raised:
        orbax.Checkpointer().save("/ckpt/1")
    assert not any("rightpool_agent" in str(entry.path) for entry in raised.traceback[1:])
    assert not checkpoint.running
    assert saved(watch) is None


def test_a_checkpointer_that_returns_has_saved(watch: checkpoint.Watch, orbax: Any) -> None:
    orbax.Checkpointer().save(directory=Path("/ckpt/1"), force=True)
    assert saved(watch) is not None
    assert orbax.Checkpointer.save.__doc__ == "The user's documentation."


def test_a_write_in_the_background_is_a_save_when_it_was_waited_for(watch: checkpoint.Watch, orbax: Any) -> None:
    checkpointer = orbax.AsyncCheckpointer()
    checkpointer.wait_until_finished()
    assert saved(watch) is None, "nothing was written"
    checkpointer.save("/ckpt/1")
    assert saved(watch) is None
    checkpointer.wait_until_finished()
    first = saved(watch)
    assert first is not None
    checkpointer.wait_until_finished()
    assert saved(watch) == first


def test_a_write_in_the_background_that_fails_is_none(watch: checkpoint.Watch, orbax: Any) -> None:
    checkpointer = orbax.AsyncCheckpointer()
    checkpointer.save("/ckpt/1")
    checkpointer.fails = True
    with pytest.raises(ValueError, match="cannot write"):
        checkpointer.wait_until_finished()
    assert saved(watch) is None


class Response:
    """As that of orbax v1: what it is told to call, it calls when all is written, and not after an error."""

    def __init__(self) -> None:
        self.complete: Any = None

    def on_complete(self, callback: Any) -> None:
        self.complete = callback


def orbax_v1(**more: Any) -> Any:
    def save(path: Any, state: Any, *, overwrite: bool = False) -> None:
        if state is None:
            raise ValueError("no state")

    def save_async(path: Any, state: Any) -> Response:
        return Response()

    module = SimpleNamespace(save=save, save_async=save_async, **more)
    saves.install_orbax_v1(module)
    saves.install_orbax_v1(module)
    return module


def test_a_function_of_orbax_v1_that_returns_has_saved(watch: checkpoint.Watch) -> None:
    module = orbax_v1()
    with pytest.raises(ValueError, match="no state"):
        module.save("/ckpt/1", None)
    assert saved(watch) is None
    module.save(path=Path("/ckpt/1"), state={}, overwrite=True)
    assert len(checkpoint.observed) == 1, "installed twice, seen once"
    assert saved(watch) is not None


def test_what_orbax_v1_writes_in_the_background_is_a_save_when_it_is_complete(watch: checkpoint.Watch) -> None:
    response = orbax_v1().save_async("/ckpt/1", {})
    assert saved(watch) is None
    response.complete(None)
    assert saved(watch) is not None


def test_the_older_names_of_orbax_v1_are_seen_as_well(watch: checkpoint.Watch) -> None:
    orbax_v1(save_pytree=lambda path, tree: None).save_pytree("/ckpt/1", {})
    assert saved(watch) is not None


def test_a_copy_in_memory_is_no_save(watch: checkpoint.Watch) -> None:
    def save(obj: Any, f: Any) -> None: ...

    module = SimpleNamespace(save=save)
    saves.install_torch(module)
    module.save({}, io.BytesIO())
    assert saved(watch) is None
    module.save({}, "model.pt")
    assert saved(watch) is not None


class Odd:
    """Whatever is asked of it raises."""

    __slots__ = ()

    def __hash__(self) -> int:
        raise RuntimeError("not now")

    def __fspath__(self) -> str:
        raise RuntimeError("not now")


def test_arguments_that_raise_are_the_programs_own(watch: checkpoint.Watch, orbax: Any) -> None:
    module = safetensors()
    module.save_file({}, Odd())
    module.save_file({}, "a\0b")
    odd = type("OddCheckpointer", (orbax.AsyncCheckpointer,), {"__hash__": Odd.__hash__})()
    odd.save(Odd())
    odd.wait_until_finished()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Time of saves, and none of them so far."""
    made = SimpleNamespace(now=0.0, time=time.time, perf_counter=lambda: made.now)
    monkeypatch.setattr(saves, "time", made)
    saves._forget()
    yield made
    saves._forget()


def saving_module(clock: Any, takes: float) -> Any:
    def save(thing: Any, f: Any) -> None:
        clock.now += takes

    module = SimpleNamespace(save=save)
    saves._wrap(module, "save", saves._argument(1, "f"), saves._saved, follows=True)
    return module


def test_before_the_first_save_nothing_is_said_of_their_time(clock: Any) -> None:
    assert saves.facts() == {}


@pytest.mark.parametrize(("goes_on", "expected"), [(True, 5.0), (False, 2.0)])
def test_what_follows_a_save_belongs_to_it_until_the_program_goes_on(
    clock: Any, goes_on: bool, expected: float
) -> None:
    module = saving_module(clock, 2.0)
    module.save({}, io.BytesIO())
    clock.now += 3.0  # an upload
    assert saves.facts() == {"saving_seconds": 5.0}
    if goes_on:
        saves.go_on()
    clock.now += 4.0
    saves.stepped()
    clock.now += 8.0
    assert saves.facts() == {"saving_seconds": expected}


def test_a_save_of_another_thread_holds_nothing_up(clock: Any) -> None:
    other = threading.Thread(target=saving_module(clock, 2.0).save, args=({}, "file"))
    other.start()
    other.join()
    assert saves.facts() == {}


def test_a_save_within_a_save_counts_once(clock: Any) -> None:
    module = saving_module(clock, 2.0)
    outer = SimpleNamespace(save=lambda directory: module.save({}, directory))
    saves._wrap(outer, "save", saves._argument(0, "directory"), saves._saved)
    outer.save("folder")
    clock.now += 3.0
    assert saves.facts() == {"saving_seconds": 2.0}
