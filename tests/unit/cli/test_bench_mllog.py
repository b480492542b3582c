"""`rightpool bench read`: what MLPerf's lines in a log say of a program's rate."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from rightpool.cli.bench.mllog import MlperfLog
from rightpool.cli.main import main

ON = ("--accelerator", "H100-SXM5-80GB", "--chips", "8")


def line(at: float, key: str, value: object = None, **metadata: object) -> str:
    """As mlperf_logging writes it at this second, behind the rank that launchers put before it."""
    event = {"namespace": "", "time_ms": int(1_700_000_000_000 + at * 1e3), "event_type": "POINT_IN_TIME"}
    about = {"file": "train.py", "lineno": 1, **metadata}
    return f"0: :::MLLOG {json.dumps({**event, 'key': key, 'value': value, 'metadata': about})}\n"


def by_throughput(rate: float, epochs: int = 12) -> list[str]:
    """Ten seconds of training, then five of evaluation; the first epoch compiles."""
    lines = [line(0.0, "submission_benchmark", "resnet"), line(0.0, "global_batch_size", 256), line(1.0, "run_start")]
    for epoch in range(epochs):
        at = 1.0 + 15.0 * epoch
        rates = rate * (0.5 if epoch == 0 else 1.0 + 0.002 * (epoch % 3))
        lines += [line(at, "epoch_start", epoch_num=epoch + 1), "INFO:root: some other line\n"]
        lines += [line(at + 10.0, "tracked_stats", {"throughput": rates}, step=epoch)]
        lines += [line(at + 10.0, "eval_start", epoch_num=epoch + 1), line(at + 15.0, "eval_stop", epoch_num=epoch + 1)]
    return lines


def by_counts(rate: float, blocks: int = 12) -> list[str]:
    """The same by counts of samples, without rates."""
    lines = [line(0.0, "submission_benchmark", "llama31_8b"), line(1.0, "run_start")]
    for block in range(blocks):
        at, samples = 1.0 + 15.0 * block, int(10.0 * rate) * block
        lines += [line(at, "block_start", samples_count=samples)]
        lines += [line(at + 5.0, "train_loss", 3.0, samples_count=samples + int(5.0 * rate))]
        lines += [line(at + 10.0, "block_stop", samples_count=samples + int(10.0 * rate))]
        lines += [line(at + 15.0, "eval_accuracy", 3.4, samples_count=samples + int(10.0 * rate))]
    return lines


def read(folder: Path, *logs: list[str], name: str = "bench.json") -> dict[str, Any]:
    paths = [folder / f"{number}.log" for number in range(len(logs))]
    for path, lines in zip(paths, logs, strict=True):
        path.write_text("".join(lines))
    assert main(["bench", "read", *map(str, paths), *ON, "-o", str(folder / name)]) == 0
    found: dict[str, Any] = json.loads((folder / name).read_text())
    return found


def test_training_counts_and_neither_evaluation_nor_the_first_epoch(tmp_path: Path) -> None:
    found = read(tmp_path, by_throughput(1000.0))
    assert found["rate"] == pytest.approx(1002.0, rel=1e-3) and found["warmUpSeconds"] == pytest.approx(15.0)
    assert (found["name"], found["unit"], found["chips"], found["model"]["batch"]) == ("resnet", "Samples", 8, 256)
    assert found["shares"] == {} and found["memoryBytes"] is None


def test_counts_go_before_rates(tmp_path: Path) -> None:
    found = read(tmp_path, by_counts(400.0))
    assert found["rate"] == pytest.approx(400.0, rel=1e-3) and found["name"] == "llama31_8b"
    assert read(tmp_path, by_counts(400.0) + by_throughput(9.0))["rate"] == pytest.approx(400.0, rel=1e-3)


def test_logs_of_several_runs_are_compared(tmp_path: Path) -> None:
    read(tmp_path, *[by_throughput(1000.0 + run) for run in range(4)], name="before.json")
    read(tmp_path, *[by_throughput(700.0 + run) for run in range(4)], name="after.json")
    files = str(tmp_path / "before.json"), str(tmp_path / "after.json")
    assert main(["bench", "compare", *files]) == 1
    assert main(["bench", "compare", files[0], files[0]]) == 0


def test_what_is_malformed_is_left_out() -> None:
    log = MlperfLog()
    log.read([":::MLLOG {", ":::MLLOG []", ':::MLLOG {"time_ms": "now"}', ":::MLLOG " + "[" * 100_000, "MLLOG"])
    log.read([line(0.0, "tracked_stats", {"throughput": 5.0}), line(1.0, "tracked_stats", {"throughput": True})])
    log.read([line(2.0, "tracked_stats", [5.0]), line(3.0, "block_stop", samples_count=-1)])
    assert log.stretches == []


@pytest.mark.parametrize(
    ("lines", "words", "status", "says"),
    [
        ([], ON, 3, "MLPerf's lines tell 0 of the 3 rates"),
        (by_throughput(1.0, 2), ON, 3, "MLPerf's lines tell 1 of the 3 rates"),
        (by_throughput(1.0), ("--accelerator", "H100-SXM5", "--chips", "8"), 2, "did you mean H100-SXM5-80GB"),
        (None, ON, 2, "No such file"),
    ],
)
def test_a_log_that_says_too_little(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lines: list[str] | None,
    words: tuple[str, ...],
    status: int,
    says: str,
) -> None:
    log, output = tmp_path / "run.log", tmp_path / "bench.json"
    if lines is not None:
        log.write_text("".join(lines))
    assert main(["bench", "read", str(log), *words, "-o", str(output)]) == status
    assert says in capsys.readouterr().err and not output.exists()


def test_what_a_program_leaves_behind_is_not_waited_for(capfd: pytest.CaptureFixture[str]) -> None:
    """It keeps the pipe open that the program's lines come by."""
    leaves = "import subprocess; print('on', flush=True); subprocess.Popen(['sleep', '120'])"
    assert main(["bench", "run", "--mllog", "--", sys.executable, "-c", leaves]) == 3
    assert capfd.readouterr().out == "on\n"
