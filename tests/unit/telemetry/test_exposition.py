"""Parsing a sidecar's page, which a tenant may have written."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from rightpool.profiles.sample import LARGEST
from rightpool.telemetry.exposition import BadPage, parse
from tests.yardstick import work_of

# Time limits would measure the machine, which other tests share.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

PAGE = """\
# HELP rightpool_chip_busy_ratio Share of time.
# TYPE rightpool_chip_busy_ratio gauge
rightpool_chip_busy_ratio{chip="0"} 0.5
rightpool_chip_busy_ratio{chip="1",} 1e-1 1700000000000
rightpool_step_seconds_bucket{le="+Inf"} 4
rightpool_step_seconds_sum 2.5
process_cpu_seconds_total 12
rightpool_samples_total	+3
rightpool_unheard_of{a="b"} 1
"""


def test_the_contracts_series_and_no_others() -> None:
    found = [(series.metric, dict(series.labels), series.value) for series in parse(PAGE)]
    assert found == [
        ("rightpool_chip_busy_ratio", {"chip": "0"}, 0.5),
        ("rightpool_chip_busy_ratio", {"chip": "1"}, 0.1),
        ("rightpool_step_seconds_sum", {}, 2.5),
        ("rightpool_samples_total", {}, 3.0),
    ]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "1e999", "1.7e308", "-1e19"])
def test_impossible_values_are_missing(value: str) -> None:
    assert parse(f"rightpool_samples_total {value}\n") == []


@pytest.mark.parametrize("page", ["", "\n", "# nothing yet\n"])
def test_a_page_with_nothing_on_it_is_a_page(page: str) -> None:
    assert parse(page) == []


@pytest.mark.parametrize(
    "page",
    [
        "<html><body>404</body></html>\n",
        "rightpool_samples_total 12",
        "rightpool_samples_total\n",
        "rightpool_samples_total twelve\n",
        "rightpool_samples_total 1_000\n",
        "rightpool_samples_total 0x10\n",
        "rightpool_samples_total 1 2 3\n",
        'rightpool_chip_busy_ratio{chip="0" 1\n',
        "rightpool_chip_busy_ratio{chip=0} 1\n",
        'rightpool_chip_busy_ratio{chip="0",chip="1"} 1\n',
        "rightpool_chip_busy_ratio{,} 1\n",
        "rightpool_samples_total 1\nrightpool_samples_total 2\n",
        "rightpool_samples_total " + "1" * 5000 + "\n",
        "".join(f'rightpool_chip_busy_ratio{{chip="{chip}"}} 1\n' for chip in range(5001)),
        "rightpool_samples_total ٣\n",
    ],
)
def test_a_page_with_a_wrong_line_is_refused_whole(page: str) -> None:
    with pytest.raises(BadPage):
        parse(page)


def test_escapes() -> None:
    [series] = parse('rightpool_chip_busy_ratio{chip="a\\"b\\\\c\\nd}e,f"} 1\n')
    assert series.labels == {"chip": 'a"b\\c\nd}e,f'}


labels = st.dictionaries(
    st.sampled_from(["chip", "part", "reason"]), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@unhurried
@given(labels, st.floats(-LARGEST, LARGEST))
def test_agrees_with_the_reference_parser(given_labels: dict[str, str], value: float) -> None:
    inner = ",".join(f'{name}="{escape(text)}"' for name, text in given_labels.items())
    page = f"rightpool_chip_busy_ratio{{{inner}}} {value!r}\n"
    [series] = parse(page)
    [family] = text_string_to_metric_families(page)
    [reference] = family.samples
    assert (dict(series.labels), series.value) == (reference.labels, reference.value)


@unhurried
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for page in (text, f"rightpool_samples_total{text}\n", f"rightpool_chip_busy_ratio{{{text}}} 1\n"):
        try:
            parse(page)
        except BadPage as refusal:
            assert str(refusal)


@pytest.mark.parametrize(
    "line",
    [
        "a 1\n",
        "rightpool_x{" + 'a="' * 1000 + "\n",
        "rightpool_x" + " " * 4000 + "\n",
        'rightpool_x{a="' + "\\" * 4000 + "\n",
        "rightpool_x{" + "{" * 4000 + "} 1\n",
    ],
)
def test_any_megabyte_is_parsed_fast(line: str) -> None:
    page = line * (2**20 // len(line))

    def refused() -> None:
        with pytest.raises(BadPage):
            parse(page)

    assert work_of(refused) < 100, "a second and a half where nothing else runs"
