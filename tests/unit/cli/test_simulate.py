"""`rightpool simulate` on files: what it prints, and what it says of files and options that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.fleet.made_month import POOLS, made_month
from rightpool.cli.main import main


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "pools.yaml").write_text(POOLS)
    lines = [record.line for record in made_month(12, days=1.0)]
    (tmp_path / "month.jsonl").write_text("\n".join(["{", *lines, '{"job": "a/b"}']))
    return tmp_path


def arguments(files: Path, *more: str) -> list[str]:
    return ["simulate", "--history", str(files / "month.jsonl"), "--pools", str(files / "pools.yaml"), *more]


def test_a_document_has_the_check_and_what_the_changes_make(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(files, "--price", "a100=0", "--seeds", "2", "-o", "json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == 12
    assert abs(found["check"]["completion"]) < 0.1
    assert found["asItWas"]["dollars"] > 0
    assert found["whatIf"]["dollars"]["mean"] < found["planned"]["dollars"]["mean"]
    assert found["difference"]["dollars"]["mean"] < 0
    assert found["difference"]["dollars"]["low"] <= found["difference"]["dollars"]["high"]
    notes = "\n".join(found["notes"])
    assert "line 1 is left out: no JSON" in notes
    assert "line 14 is left out: arrived" in notes


def test_a_table_begins_with_the_check(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(files, "--seeds", "1")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("12 jobs in ")
    assert any(line.startswith("check: 12 jobs") for line in lines[1:3])
    assert any(line.startswith("dollars ") for line in lines)


def test_a_picture_shows_what_the_changes_make(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    path = files / "what-if.svg"
    assert main(arguments(files, "--price", "a100=0", "--seeds", "2", "--plot", str(path))) == 0
    texts = " ".join(ElementTree.parse(path).getroot().itertext())
    for text in ("12 jobs played again", "completion, mean hours", "as it was", "what if", "a10g"):
        assert text in texts
    assert main(arguments(files, "--seeds", "1", "--plot", str(files / "no" / "x.svg"))) == 1
    assert "can't be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--pool", "b200=8"), "there is no pool b200; there are a100, a10g, l4"),
        (("--pool", "a100=-64"), "it has 32 chips, and can't have fewer than 0"),
        (("--pool", "a100=many"), "write chips as 48, +16 or -16"),
        (("--pool", "a100"), "write a pool's name, = and a number"),
        (("--price", "a100=-1"), "write dollars for a chip-hour"),
        (("--policy", "Fastest"), "objectives are MinimizeCost, MinimizeTime, Balanced"),
        (("--on", "b200"), "there is no such pool"),
        (("--format", "helios"), "there is no job to play"),
    ],
    ids=["no such pool", "too few", "no number", "no value", "price", "objective", "on", "format"],
)
def test_wrong_options_are_said(
    files: Path, more: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(files, *more)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_changes_are_read_from_a_file_and_its_mistakes_are_named(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = files / "changes.yaml"
    path.write_text("prices: {a100: dear}\n")
    assert main(arguments(files, "--what-if", str(path))) == 2
    assert "prices.a100" in capsys.readouterr().err
    path.write_text('pools: {a100: -16, l4: "+64"}\nobjective: MinimizeTime\npolicy: {defaultAdaptationMode: Auto}\n')
    assert main(arguments(files, "--what-if", str(path), "--seeds", "1", "-o", "json")) == 0
    assert json.loads(capsys.readouterr().out)["whatIf"]["chipHours"].keys() == {"a100", "a10g", "l4"}
