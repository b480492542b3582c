"""`rightpool advise`: the partitions that Slurm has become pools, and the line is one that sbatch takes.

examples/compare/sinfo.json was printed by a slurmctld of Slurm 22.05.8, with one node drained and one down.
"""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from rightpool.cli.advise.inventory import Partition, read_inventory
from rightpool.cli.main import main
from rightpool.cli.typed_file import FileProblem
from rightpool.hardware.catalog import load_catalog
from tests.unit.cli.test_compare import BERT, changed
from tests.unit.docs.pages import DOCS, ROOT, assert_shown

CATALOG = load_catalog()
SINFO = ROOT / "examples/compare/sinfo.json"
A100 = "a100=A100-SXM4-80GB"
PAGE = (DOCS / "how-to/slurm.md").read_text(encoding="utf-8")
CHEAP = ("--weights", "cost=1")


def read(path: Path, **chips: str) -> tuple[Partition, ...]:
    found, notes = read_inventory(path, chips, CATALOG)
    assert notes == ()
    return found


def written(folder: Path, content: object) -> Path:
    path = folder / "inventory"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def advice(*words: str) -> dict[str, Any]:
    """What the command prints for programs."""
    with redirect_stdout(StringIO()) as printed:
        main(["advise", "--profile", str(BERT), "--inventory", str(SINFO), "--chip", A100, "-o", "json", *words])
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


# --- inventories -----------------------------------------------------------------------------------------------------


def test_nodes_that_can_have_jobs_count_and_partitions_that_share_them_are_one() -> None:
    found = read(SINFO, a100="A100-SXM4-80GB")
    assert [(one.partition, one.gres, one.chip.key, one.chips_per_node, one.nodes) for one in found] == [
        ("a100,any", "gpu:a100", "A100-SXM4-80GB", 8, 3),
        ("a10g,any", "gpu:a10g", "A10G-24GB", 4, 7),
    ]


def test_groups_as_newer_versions_print_them(tmp_path: Path) -> None:
    def group(state: list[str], nodes: int, gres: str) -> dict[str, Any]:
        return {
            "partition": {"name": "gpu"},
            "node": {"state": state},
            "nodes": {"total": nodes},
            "gres": {"total": gres, "used": ""},
        }

    groups = [
        group(["MIXED"], 5, "gpu:nvidia_a100-sxm4-80gb:8(S:0-1)"),
        group(["IDLE", "DRAIN"], 1, "gpu:nvidia_a100-sxm4-80gb:8(S:0-1)"),
        group(["IDLE"], 2, "gpu:nvidia_l40s:4(S:0,1),shard:16"),
        group(["IDLE"], 9, ""),
    ]
    found = read(written(tmp_path, {"meta": {}, "sinfo": groups}))
    assert [(one.name, one.partition, one.chip.key, one.nodes) for one in found] == [
        ("gpu gpu:nvidia_a100-sxm4-80gb", "gpu", "A100-SXM4-80GB", 5),
        ("gpu gpu:nvidia_l40s", "gpu", "L40S-48GB", 2),
    ]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("a10g", "A10G-24GB"),
        ("tesla_t4", "T4-16GB"),
        ("nvidia_h100_80gb_hbm3", "H100-SXM5-80GB"),
        ("nvidia_a100_80gb_pcie", "A100-PCIE-80GB"),
        ("rtx_a6000", "RTXA6000-48GB"),
    ],
)
def test_what_sites_call_chips(tmp_path: Path, name: str, key: str) -> None:
    nodes = [{"partitions": ["gpu"], "gres": f"gpu:{name}:4", "state": ["IDLE"]}]
    assert [one.chip.key for one in read(written(tmp_path, {"nodes": nodes}))] == [key]


def test_a_chip_that_the_catalog_lacks_is_left_out_with_a_note(tmp_path: Path) -> None:
    nodes = [{"partitions": ["new"], "gres": "gpu:q1:4"}, {"partitions": ["old"], "gres": "gpu:t4:4"}]
    found, notes = read_inventory(written(tmp_path, {"nodes": nodes}), {}, CATALOG)
    assert [one.name for one in found] == ["old"]
    assert "the catalog has no gpu:q1" in notes[0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"nodes": [{"gres": "gpu:4"}, {"gres": 4}]}, "nodes.1.gres: "),
        ({"nodes": [{"partitions": ["x"], "gres": "gpu:a100:8"}]}, "is gpu:a100 A100-PCIE-40GB or "),
        (
            {"nodes": [{"partitions": ["x"], "gres": "gpu:t4:8", "state": "down"}]},
            "no node with GPUs that can have jobs",
        ),
        ({"partitions": [{"name": "x"}]}, "give what `sinfo --json` prints"),
        ("PARTITION AVAIL\ngpu up\n", "line 1, is no inventory of Slurm: Input should be an object"),
        (
            "partitions:\n  gpu:\n    chip: L4-24GB\n    nodes: 0\n    chipsPerNode: 1\n",
            "line 4, is no inventory of Slurm: partitions.gpu.nodes",
        ),
        ("partitions:\n  gpu: {chip: L5, nodes: 1, chipsPerNode: 1}\n", "partitions.gpu.chip: unknown accelerator"),
    ],
    ids=["type", "ambiguous", "down", "scontrol", "no-json", "range", "unknown"],
)
def test_an_inventory_that_is_none_is_named_with_its_field(tmp_path: Path, content: object, says: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(FileProblem) as raised:
        read_inventory(path, {}, CATALOG)
    assert str(path) in str(raised.value) and says in str(raised.value)


# --- advice ----------------------------------------------------------------------------------------------------------


def test_rates_are_those_of_compare() -> None:
    found = advice()
    rows = {row["name"]: row for row in found["comparison"]["rows"]}
    assert rows["a100,any"]["origin"] == "measured" and rows["a100,any"]["rate"]["median"] == 152.0
    assert rows["a10g,any"]["origin"] == "predicted"


def test_it_stays_where_nothing_is_better(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", "--profile", str(BERT), "--inventory", str(SINFO), "--chip", A100, "-o", "sbatch"]
    assert main(words) == 3
    assert capsys.readouterr().out == "--partition=a100,any --nodes=1 --gres=gpu:a100:1\n"
    assert main([*words, *CHEAP]) == 0
    assert capsys.readouterr().out == "--partition=a10g,any --nodes=1 --gres=gpu:a10g:1\n"


def test_what_is_better_by_less_than_the_threshold_is_not_better(tmp_path: Path) -> None:
    for dollars, better in ((1.085, False), (1.0, True)):
        costs = tmp_path / "tco.yaml"
        prices = {"A100-SXM4-80GB": {"perChipHour": 3.43}, "A10G-24GB": {"perChipHour": dollars}}
        costs.write_text(json.dumps({"accelerators": prices}))
        found = advice(*CHEAP, "--tco", str(costs))
        dear = {row["name"]: row["dollarsPerMillion"] for row in found["comparison"]["rows"]}
        assert dear["a10g,any"] < dear["a100,any"]
        assert found["better"] is better, dear


def test_a_partition_with_its_chips_is_not_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "partitions:\n  small: {chip: L4-24GB, nodes: 8, chipsPerNode: 2}\n"
    words = ["advise", "--profile", str(BERT), "--inventory", str(written(tmp_path, text)), "-o", "sbatch"]
    assert main(words) == 0
    assert capsys.readouterr().out == "--partition=small --nodes=1 --gres=gpu:1\n"


def test_a_size_beyond_one_node_is_asked_for_by_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "partitions:\n  small: {chip: A100-SXM4-80GB, nodes: 8, chipsPerNode: 1}\n"
    run = changed(tmp_path, chips=4, rate=600.0, windows=[600.0] * 10, runs=[600.0])
    words = ["advise", "--profile", str(run), "--inventory", str(written(tmp_path, text)), "-o", "json"]
    main(words)
    found = json.loads(capsys.readouterr().out)
    chips = next(row["chips"] for row in found["comparison"]["rows"] if row["name"] == "small")
    assert found["sbatch"] == f"--partition=small --nodes={chips} --gres=gpu:1"


def test_nothing_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "partitions:\n  small: {chip: L4-24GB, nodes: 8, chipsPerNode: 2}\n"
    run = changed(tmp_path, memoryBytes=40e9)
    assert main(["advise", "--profile", str(run), "--inventory", str(written(tmp_path, text))]) == 3
    assert capsys.readouterr().out.endswith("No partition passes the gates\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--chip", "a100"], "--chip: 'a100' is not NAME=KEY"),
        (["--chip", "a100=A100"], "--chip: unknown accelerator 'A100'"),
        (["--weights", "x=1"], "--weights: "),
        ([], "say it by --chip a100=KEY"),
    ],
)
def test_wrong_input(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["advise", "--profile", str(BERT), "--inventory", str(SINFO), *words]) == 2
    assert says in capsys.readouterr().err


def test_the_page_shows_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.search(r"^\$ rightpool (advise [^`]*?)```\n\n<!-- output -->\n\n(.*?)\n<!-- end -->", PAGE, re.M | re.S)
    assert shown is not None
    main(shown[1].replace("\\\n", "").split())
    assert_shown(shown[2], capsys.readouterr().out)
