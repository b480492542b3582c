"""The table: properties of the committed one, and interpolation between rows."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devcluster.replay.table import TABLE, BadTable, Kind, NoRow, Table
from tests.unit.devcluster.replay_world import row, table

A100, A10G, V5E = "A100-SXM4-80GB", "A10G-24GB", "TPU-v5e"


@pytest.fixture(scope="module")
def committed() -> Table:
    return Table.read()


@pytest.mark.parametrize(
    ("workload", "accelerator", "chips", "samples_per_second"),
    [
        ("resnet50", A100, 1, 1582),
        ("resnet50", A100, 2, 3038),
        ("resnet50", A100, 4, 6070),
        ("resnet50", A100, 8, 11439),
        ("resnet50", A10G, 1, 638),
        ("mpt-1b", A100, 8, 142457 / 4096),
        ("bert", A100, 1, 443),
        ("bert", A10G, 1, 135),
    ],
)
def test_published_figures(
    committed: Table, workload: str, accelerator: str, chips: int, samples_per_second: float
) -> None:
    found = committed.at(workload, accelerator, chips)
    assert found.kind is Kind.PUBLISHED
    assert found.samples_per_second == pytest.approx(samples_per_second, rel=1e-4)


def test_every_row_has_a_source(committed: Table) -> None:
    for entry in committed.rows:
        assert entry.source and entry.note and len(entry.read) == len("2026-11-21")


def test_tpu_rows_follow_from_the_published_rate_per_chip(committed: Table) -> None:
    """120 TFLOP/s over the FLOP of a token, which the A100's published MFU gives."""
    flop_per_token = 0.59 * 8 * 312e12 / 142457
    for entry in committed.rows:
        if entry.accelerator == V5E:
            tokens = entry.samples_per_second * 4096 / entry.chips
            assert tokens * flop_per_token == pytest.approx(120e12, rel=1e-3)


def test_more_chips_are_faster_and_about_in_proportion_at_best(committed: Table) -> None:
    for first in committed.rows:
        for second in committed.rows:
            same = (first.workload, first.accelerator) == (second.workload, second.accelerator)
            if same and first.chips < second.chips:
                gain = second.samples_per_second / first.samples_per_second
                assert 1 < gain <= second.chips / first.chips * 1.02  # tolerance of published figures


def test_memory_fits_the_chip_and_shares_fit_the_step(committed: Table) -> None:
    for entry in committed.rows:
        assert entry.memory_used_gib is not None and entry.memory_used_gib < entry.memory_total_gib
        assert entry.exposed_communication + entry.input_wait < 0.5


@given(st.integers(min_value=4, max_value=8))
def test_between_rows_is_a_straight_line_in_logarithms(chips: int) -> None:
    assert table().at("toy", A10G, chips).samples_per_second == pytest.approx(100 * chips)


def test_between_rows_a_missing_value_stays_missing() -> None:
    found = Table([row(4, power_watts=None), row(8)]).at("toy", A10G, 6)
    assert found.power_watts is None
    assert found.kind is Kind.DERIVED


@pytest.mark.parametrize("chips", [1, 3, 9, 64])
def test_there_is_no_extrapolation(chips: int) -> None:
    with pytest.raises(NoRow, match="there are rows from 4 to 8"):
        table().at("toy", A10G, chips)


def test_an_unknown_pair_lists_the_known_ones() -> None:
    with pytest.raises(NoRow, match="no row for toy on TPU-v5e; there are: toy on A10G-24GB"):
        table().at("toy", V5E, 8)


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("chips", "0", "must be above 0"),
        ("samples_per_second", "-1", "must be above 0"),
        ("samples_per_second", "", "line 2"),
        ("chip_busy", "1.2", "not a share"),
        ("kind", "guessed", "guessed"),
        ("source", " ", "source is empty"),
        ("read", "", "read is empty"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path: Path, column: str, value: str, complaint: str) -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file))
    broken = tmp_path / "broken.csv"
    with broken.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(first))
        writer.writeheader()
        writer.writerow(first | {column: value})
    with pytest.raises(BadTable, match=complaint):
        Table.read(broken)


def test_a_row_twice_is_refused() -> None:
    with pytest.raises(BadTable, match="two rows for toy on 4 chips"):
        Table([row(4), row(4)])


def test_two_batches_in_one_series_are_refused() -> None:
    with pytest.raises(BadTable, match="two batches"):
        Table([row(4), row(8, batch_per_chip=20)])
