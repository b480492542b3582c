"""The text format, byte for byte where scrapers are strict."""

from rightpool import contract
from rightpool_profiler.exposition import Histogram, Sample, render


def test_a_family_is_named_once_and_values_are_exact() -> None:
    page = render([Sample(contract.SAMPLES, {}, 12345678901234567), Sample(contract.CHIP_BUSY, {"chip": "a"}, 0.25)])
    assert page == (
        "# HELP rightpool_chip_busy_ratio Share of time in which any work was resident on the chip.\n"
        "# TYPE rightpool_chip_busy_ratio gauge\n"
        'rightpool_chip_busy_ratio{chip="a"} 0.25\n'
        "# HELP rightpool_samples_total Samples that this pod has consumed.\n"
        "# TYPE rightpool_samples_total counter\n"
        "rightpool_samples_total 12345678901234567\n"
    )


def test_label_values_are_escaped() -> None:
    assert r'{chip="a\\b\"c\nd"}' in render([Sample(contract.CHIP_BUSY, {"chip": 'a\\b"c\nd'}, 1)])


def test_histogram_buckets_are_cumulative() -> None:
    page = render([], [Histogram(contract.STEP_SECONDS, (0.5, 1.0), (2, 0, 1), 4.5)])
    assert page.splitlines()[2:] == [
        'rightpool_step_seconds_bucket{le="0.5"} 2',
        'rightpool_step_seconds_bucket{le="1"} 2',
        'rightpool_step_seconds_bucket{le="+Inf"} 3',
        "rightpool_step_seconds_sum 4.5",
        "rightpool_step_seconds_count 3",
    ]


def test_invalid_numbers_are_omitted() -> None:
    assert render([Sample(contract.CHIP_BUSY, {}, float("nan")), Sample(contract.CHIP_POWER, {}, float("inf"))]) == ""
