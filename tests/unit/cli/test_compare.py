"""`rightpool compare`: rates and gates are planning's, costs are as the formulas say, and what would change the order
does."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rightpool.api.estimate import Estimate
from rightpool.cli.bench.profile import read_profile
from rightpool.cli.compare.question import of_job, of_runs
from rightpool.cli.compare.report import ComparisonReport, document
from rightpool.cli.compare.rows import ComparedRow, compared_rows
from rightpool.cli.compare.score import Weights, changes, first, named_weights, scores
from rightpool.cli.explain import asked_fleet, explain
from rightpool.cli.main import main
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.ownership import CostBook, Sourced, ownership
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import NOW, view_of
from tests.unit.cli.test_explain import with_job
from tests.unit.docs.pages import DOCS, ROOT, assert_shown

CATALOG = load_catalog()
BERT = ROOT / "examples/compare/bert-a100.json"
TCO = ROOT / "examples/compare/tco.yaml"
DEFAULTS = CostBook()
EVEN = Weights(0.0, 1.0, 0.0)
KEY = JobKey("vision", "resnet50")


def rows_of(*against: str, book: CostBook = DEFAULTS, path: Path = BERT) -> dict[str, ComparedRow]:
    asked = of_runs({path: read_profile(path)}, against, book, CATALOG, NOW)
    return {row.name: row for row in compared_rows(asked, book)}


def compared() -> dict[str, Any]:
    rows = tuple(rows_of("TPU-v5e", "L4-24GB", "TPU-v2").values())
    weights = Weights()
    found = ComparisonReport("bert", weights, rows, scores(rows, weights), tuple(changes(rows, weights)), ("a note",))
    return document(found)


def changed(folder: Path, **changes: Any) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps({**json.loads(BERT.read_text()), **changes}, indent=2))
    return path


# --- the worked example ----------------------------------------------------------------------------------------------

PAGE = (DOCS / "how-to/compare.md").read_text(encoding="utf-8")
_SHOWN = r"^\$ rightpool (compare [^`]*?)```\n\n<!-- output -->\n\n(.*?)\n<!-- end -->"
EXAMPLES = re.findall(_SHOWN, PAGE, re.M | re.S)


@pytest.mark.parametrize("number", range(2))
def test_the_page_shows_what_the_command_prints(
    number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    command, shown = EXAMPLES[number]
    assert main(command.replace("\\\n", "").split()) == 0
    assert_shown(shown, capsys.readouterr().out)


def test_the_page_shows_the_file_of_costs() -> None:
    shown = re.search(r"```yaml\n(.*?)```", PAGE, flags=re.S)
    assert shown is not None
    written = TCO.read_text()
    assert all(re.sub(r" *#.*", "", line) in written for line in shown[1].splitlines())


# --- rates and gates are planning's ----------------------------------------------------------------------------------


def test_a_job_is_compared_by_the_operators_own_rates_and_gates() -> None:
    client = with_job()
    view = view_of(client)
    stored, fleet, _ = asked_fleet(view, KEY, NOW)
    assert stored.job.key == KEY
    asked = of_job(fleet, fleet.jobs[KEY], ("a10g", "L4-24GB", "TPU-v5e"), CostBook(), CATALOG, ())
    rows = {row.name: row for row in compared_rows(asked, CostBook())}
    assert list(rows) == ["a100", "a10g", "L4-24GB", "TPU-v5e"]
    shown = {one.placement.pool: one for one in explain(view_of(client), KEY, NOW).assessment.candidates}
    rate, there = rows["a10g"].rate, shown["a10g"].throughput  # of four pools, and of two: summed in another order
    assert rate is not None and there is not None
    assert (rate.median, rate.sd) == (pytest.approx(there.median), pytest.approx(there.sd))
    assert rows["a10g"].origin == "predicted" and rows["a100"].origin == "measured"
    assert rows["a10g"].owned.rented == Sourced(1.006, "pool a10g")
    assert rows["L4-24GB"].passes and rows["L4-24GB"].rate is not None
    failed = [one for one in rows["TPU-v5e"].checks if one.passed is False]
    assert [one.gate for one in failed] == ["image"]
    assert rows["TPU-v5e"].rate is not None  # what it would do is known all the same


@pytest.mark.parametrize(
    ("kernel", "chip", "passed"),
    [
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "T4-16GB", False),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "L4-24GB", True),
        ("void pytorch_flash::flash_fwd_kernel<...>", "T4-16GB", None),
        ("device_kernel<flash::FlashAttnFwdSm90>", "L4-24GB", False),
        ("device_kernel<flash::FlashAttnFwdSm90>", "H100-SXM5-80GB", True),
        ("ampere_bf16_s16816gemm", "T4-16GB", None),
    ],
    ids=["two-turing", "two-ada", "pytorch-turing", "three-ada", "three-hopper", "none"],
)
def test_kernels_that_the_trace_saw(kernel: str, chip: str, passed: bool | None) -> None:
    _, fleet, _ = asked_fleet(view_of(with_job()), KEY, NOW)
    asked = of_job(fleet, fleet.jobs[KEY], (chip,), CostBook(), CATALOG, (kernel,))
    row = next(row for row in compared_rows(asked, CostBook()) if row.name == chip)
    assert [one.passed for one in row.checks if one.gate == "kernels"] == ([] if passed is None else [passed])


def test_what_rules_out_is_err_and_has_no_score(tmp_path: Path) -> None:
    rows = rows_of("TPU-v5e", "L4-24GB", path=changed(tmp_path, memoryBytes=20e9))
    assert not rows["TPU-v5e"].passes
    assert "needs 18.6 GiB a chip" in next(one.evidence for one in rows["TPU-v5e"].checks if one.gate == "memory")
    assert scores(list(rows.values()), Weights()).keys() == {"A100-SXM4-80GB", "L4-24GB"}


def test_a_precision_that_a_chip_lacks_rules_it_out(tmp_path: Path) -> None:
    rows = rows_of("L4-24GB", path=changed(tmp_path, model={"precision": "fp8"}))
    assert rows["L4-24GB"].passes
    rows = rows_of("V100-SXM2-32GB", path=changed(tmp_path, model={"precision": "bf16"}))
    assert [one.gate for one in rows["V100-SXM2-32GB"].checks if one.passed is False] == ["precision"]


def test_nothing_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--profile", str(BERT), "--against", "L4-24GB", "--latency", "0.1"]) == 3
    assert "no step was timed there" in capsys.readouterr().out


# --- costs -----------------------------------------------------------------------------------------------------------


def test_a_bought_chip_costs_its_capital_over_hours_at_work_and_its_power() -> None:
    book = CostBook.model_validate(
        {
            "tariff": 0.2,
            "pue": 1.5,
            "months": 40,
            "utilization": 0.5,
            "staffPerHour": 50,
            "millionSamples": 10,
            "accelerators": {"L4-24GB": {"capital": 7300, "watts": 100, "upkeep": 73, "portingHours": 2}},
        }
    )
    owned = ownership(CATALOG.get("L4-24GB"), book)
    hour = 7300 / 40 / 730 / 0.5 + 73 / 730 / 0.5 + 0.1 * 0.8 * 1.5 * 0.2
    assert owned.dollars_an_hour(0.8) == pytest.approx(hour)
    assert owned.dollars_a_million(100.0, 4, 0.8) == pytest.approx(hour * 4 / 360_000 * 1e6 + 100 / 10)
    assert owned.kwh_a_million(100.0, 4, 0.8) == pytest.approx(0.1 * 0.8 * 1.5 * 4 / 360_000 * 1e6)


def test_what_is_not_known_is_not_free() -> None:
    for key in ("GH200-144GB", "TPU-v7"):
        owned = ownership(CATALOG.get(key), CostBook())
        if owned.rented is None and owned.bought is None:
            assert owned.dollars_an_hour(1.0) is None
    tpu = ownership(CATALOG.get("TPU-v5e"), CostBook())
    assert tpu.kilowatts(1.0) is None and tpu.kwh_a_million(1.0, 1, 1.0) is None


# --- what would change the order -------------------------------------------------------------------------------------


def test_each_change_does_change_the_first() -> None:
    bought = {"A100-SXM4-80GB": {"capital": 9000, "watts": 1500}, "L4-24GB": {"capital": 9500}}
    book = CostBook.model_validate({"accelerators": {**bought, "TPU-v5e": {"perChipHour": 3}}, "tariff": 0.01})
    one, *others = rows_of("L4-24GB", "TPU-v5e", book=book).values()
    rows = [one, *(replace(row, rate=one.rate) for row in others)]
    found = changes(rows, EVEN)
    now = first(rows, EVEN)
    assert found and all(change.instead != now for change in found)
    distances = [max(change.at / change.now, change.now / change.at) for change in found]
    assert distances == sorted(distances)
    tariff = next(change for change in found if change.figure == "the tariff")
    for factor, leads in ((0.999, now), (1.001, tariff.instead)):
        value = tariff.at * (factor if tariff.at > tariff.now else 1.0 / factor)
        turned = [replace(row, owned=replace(row.owned, tariff=value)) for row in rows]
        assert first(turned, EVEN) == leads


def test_a_rate_counts_within_its_interval() -> None:
    row = rows_of()["A100-SXM4-80GB"]
    near = replace(row, name="near", rate=Estimate(140.0, 0.2))
    [change] = [one for one in changes([row, near], Weights(1.0, 0.0, 0.0)) if one.figure == "the rate of near"]
    assert change.at == pytest.approx(152.0, rel=0.001) and change.instead == "near"


@pytest.mark.parametrize("text", ["speed=1", "cost", "cost=-1", "cost=0", "cost=x", "cost=inf"])
def test_weights_that_are_none(text: str) -> None:
    with pytest.raises(ValueError):
        named_weights(text)


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tariff: 0.2\npue: 0.5\n", "line 2, is no file of costs: pue: "),
        (
            "accelerators:\n  L4-24GB: {capital: 1, perChipHour: 2}\n",
            "line 2, is no file of costs: accelerators.L4-24GB",
        ),
        ("accelerators:\n  L4-24GB:\n    capitol: 1\n", "line 3, is no file of costs: accelerators.L4-24GB.capitol"),
        ("tariff: [\n", "line 2 is no file of costs"),
        ("accelerators: {L5: {}}\n", "accelerators.L5: unknown accelerator"),
    ],
    ids=["range", "both", "unknown-field", "no-yaml", "unknown-chip"],
)
def test_a_file_of_costs_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    path = tmp_path / "tco.yaml"
    path.write_text(text)
    assert main(["compare", "--profile", str(BERT), "--tco", str(path)]) == 2
    assert f"{path}" in (err := capsys.readouterr().err) and says in err


def test_a_run_is_named_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = changed(tmp_path, rate=-1)
    line = path.read_text().splitlines().index('  "rate": -1,') + 1
    assert main(["compare", "--profile", str(path)]) == 2
    assert f"{path}, line {line}, is no profile of `bench run`: rate: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name a job, or a run"),
        (["job", "--profile", str(BERT)], "name a job, or a run"),
        (["--profile", str(BERT), "--against", "L5"], "--against: unknown accelerator"),
        (["--profile", str(BERT), "--weights", "x=1"], "--weights: "),
        (["--profile", "/no/such/file"], "/no/such/file: No such file"),
    ],
    ids=["nothing", "both", "unknown-chip", "weights", "no-file"],
)
def test_what_can_not_be_compared(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["compare", *words]) == 2
    assert says in capsys.readouterr().err
