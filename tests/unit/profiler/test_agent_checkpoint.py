"""Which files under spec.checkpoint.path prove a save, and when."""

import itertools
import os
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rightpool_agent import checkpoint_files
from rightpool_agent.checkpoint_files import CheckpointFiles, matches

from tests.yardstick import work_of


def newest(root: Path, *patterns: str) -> tuple[float, int] | None:
    return CheckpointFiles(patterns).newest(str(root))


def write(root: Path, *names: str, at: float | None = None) -> None:
    """Files of 7 bytes, each a second newer than the one before."""
    begin = time.time() - 1000 if at is None else at
    for offset, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("weights")
        os.utime(path, (begin + offset, begin + offset))


@pytest.mark.parametrize(
    "name",
    [
        "events.out.tfevents.1700000000.host.1.0",
        "metrics.jsonl",
        "train.log",
        "nohup.out",
        "save.lock",
        "model.pt.tmp",
        "loss.csv",
        "config.json",
        "README.md",
        "checkpoint_tmp",
        ".model.pt",
        "10.orbax-checkpoint-tmp-170/_CHECKPOINT_METADATA",
        "tmp-checkpoint-10/model.safetensors",
        "main.py",
    ],
)
def test_what_is_no_save(tmp_path: Path, name: str) -> None:
    write(tmp_path / "run", name)
    assert newest(tmp_path) is None


@pytest.mark.parametrize(
    "name",
    [
        "step_10.pt",
        "newest.pth",
        "lightning/version_0/checkpoints/epoch=3-step=40.ckpt",
        "accelerate/optimizer.bin",
        "model.safetensors",
        "state.npz",
        "100/default/manifest.ocdbt",
        "100/_CHECKPOINT_METADATA",
        "0.zarr",
        "checkpoint_100",
        "ckpt-7.index",
        "model.keras",
    ],
)
def test_a_checkpoint_is_one_beside_newer_logs(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "train.log")
    found = newest(tmp_path)
    assert found is not None and found == ((tmp_path / name).stat().st_mtime, 7)


@pytest.mark.parametrize(
    ("files", "last"),
    [
        (("global_step10/mp_rank_00_model_states.pt", "global_step10/zero_pp_rank_0_optim_states.pt"), "latest"),
        (("iter_0000010/mp_rank_00/model_optim_rng.pt",), "latest_checkpointed_iteration.txt"),
        (
            ("checkpoint-10/model.safetensors", "checkpoint-10/training_args.bin", "checkpoint-10/optimizer.pt"),
            "checkpoint-10/trainer_state.json",
        ),
        (("step_10/__0_0.distcp", "step_10/__1_0.distcp"), "step_10/.metadata"),
        (
            ("hf/model-00001-of-00002.safetensors", "hf/model-00002-of-00002.safetensors"),
            "hf/model.safetensors.index.json",
        ),
    ],
    ids=["DeepSpeed", "Megatron", "Trainer", "torch.distributed.checkpoint", "shards"],
)
def test_what_a_framework_writes_last_completes_it(tmp_path: Path, files: tuple[str, ...], last: str) -> None:
    write(tmp_path, *files)
    assert newest(tmp_path) is None, "it may be half of it"
    write(tmp_path, last, at=time.time() - 10)
    found = newest(tmp_path)
    assert found is not None and found[0] == (tmp_path / last).stat().st_mtime


@pytest.mark.parametrize(
    ("pattern", "name", "proves"),
    [
        ("*.bin", "a.bin", True),
        ("*.bin", "sub/a.bin", False),
        ("**/*.bin", "a.bin", True),
        ("**/*.bin", "x/y/z/w/a.bin", True),
        ("run-*/step_*", "run-1/step_4", True),
        ("run-*/step_*", "run-1/step_4/weights/part0", True),  # a directory: all that is in it
        ("run-*/step_*", "run-1/step_4/train.log", False),
        ("run-*/step_*", "run-1/step_4/part0.tmp", False),
        ("*", "train.log", False),
        ("*.txt", "done.txt", True),
        ("latest", "latest", True),
        ("*/.metadata", "s/.metadata", True),
        ("*", ".hidden", False),
        ("state?.x", "state1.x", True),
        ("state?.x", "state12.x", False),
    ],
)
def test_patterns_are_relative_to_the_path(tmp_path: Path, pattern: str, name: str, proves: bool) -> None:
    write(tmp_path, name)
    assert (newest(tmp_path, pattern) is not None) is proves


def test_patterns_take_the_place_of_the_defaults(tmp_path: Path) -> None:
    write(tmp_path, "model.pt")
    assert newest(tmp_path, "*.state") is None
    write(tmp_path, "global_step5/x.pt")
    assert newest(tmp_path, "global_step*") is not None, "who names the directory needs no marker"


def test_a_marker_named_in_full_may_be_empty(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "DONE").touch()
    assert newest(tmp_path, "*/DONE") is not None
    assert newest(tmp_path, "*/D*") is None


@pytest.mark.parametrize("value", ["[", "{}", "null", '"*.pt"', "[1, null, []]", "[" * 5000, '["../../*"]', '[""]'])
def test_malformed_patterns_leave_the_defaults(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIGHTPOOL_CHECKPOINT_FILES", value)
    write(tmp_path, "model.pt")
    assert CheckpointFiles.from_environment().newest(str(tmp_path)) is not None


@given(pattern=st.text("ab*?.", min_size=1, max_size=8), name=st.text("ab.", min_size=1, max_size=8))
def test_names_fit_as_in_a_shell(pattern: str, name: str) -> None:
    import fnmatch

    hidden = name.startswith(".") and not pattern.startswith(".")
    assert matches(pattern, name) is (fnmatch.fnmatchcase(name, pattern) and not hidden)


@given(name=st.text(min_size=1, max_size=40).filter(lambda text: "/" not in text and "\0" not in text))
def test_no_name_is_an_error(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("names")
    try:
        (root / name).write_text("x")
    except (OSError, ValueError, UnicodeError):
        return
    newest(root)
    newest(root, "*", "**/*a*a*a*b")


def test_a_hostile_pattern_takes_no_time() -> None:
    assert work_of(lambda: matches("*a" * 100 + "*b", "a" * 255)) < 65, "of a second"
    assert not matches("*a" * 100 + "*b", "a" * 255)


@pytest.mark.parametrize("patterns", [(), ("*.pt",)])
def test_a_walk_ends_in_time(tmp_path: Path, patterns: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, *(f"{i}/{j}.pt" for i in range(9) for j in range(9)))
    ticks = itertools.count(0.0, 0.5)
    monkeypatch.setattr(checkpoint_files, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    newest(tmp_path, *patterns)
    assert next(ticks) < 10.0


def test_the_newest_of_thousands(tmp_path: Path) -> None:
    """Old checkpoints are looked at last."""
    for step in range(60):
        write(tmp_path, *(f"step_{step}/part{i}.pt" for i in range(30)))
        os.utime(tmp_path / f"step_{step}", (1e9 + step, 1e9 + step))
    write(tmp_path, "step_31/new.pt", at=time.time())
    few = checkpoint_files._MAX_ENTRIES
    checkpoint_files._MAX_ENTRIES = 200
    try:
        found = newest(tmp_path)
    finally:
        checkpoint_files._MAX_ENTRIES = few
    assert found is not None and found[0] == (tmp_path / "step_31/new.pt").stat().st_mtime


def test_a_directory_that_is_renamed_while_it_is_read(tmp_path: Path) -> None:
    write(tmp_path, "kept.pt", *(f"a/{i}.pt" for i in range(50)))
    stop = threading.Event()

    def rename() -> None:
        here, there = tmp_path / "a", tmp_path / "b"
        while not stop.is_set():
            here.rename(there)
            here, there = there, here

    thread = threading.Thread(target=rename)
    thread.start()
    try:
        for _ in range(100):
            assert newest(tmp_path) is not None
    finally:
        stop.set()
        thread.join()


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "closed/new.pt", "model.pt")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "broken.pt").symlink_to(tmp_path / "nothing")
    (tmp_path / "zero.pt").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.pt")
    (tmp_path / "closed").chmod(0)
    try:
        found = newest(tmp_path)
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert found is not None and found[1] == 7
    assert newest(tmp_path / "absent") is None
