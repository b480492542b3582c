"""A new source is a module and a line in the registry.

The queries' PromQL is tested with a real Prometheus, in tests/integration/telemetry/test_sources.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rightpool.profiles.sample import Field, RevisionKey, Sample
from rightpool.telemetry.prometheus import PrometheusReader
from rightpool.telemetry.reader import Target
from rightpool.telemetry.sources import registry
from rightpool.telemetry.sources.exporter import Exporter
from tests.patience import PATIENCE
from tests.unit.telemetry.pages import Page, serving
from tests.unit.telemetry.sources.acme import ACME, FIELDS
from tests.unit.telemetry.sources.recordings import RECORDED, VENDORS, recorded

KEY = RevisionKey("ml", "llm", 1)
TARGET = Target(KEY, (("llm-0", "10.0.0.1"),), 10.0)
SCRAPED = 1_700_000_000.0
OWN = {"namespace": "ml", "profiledjob": "llm", "revision": "1"}


def vector(rows: list[tuple[dict[str, str], float]]) -> str:
    result = [{"metric": labels, "value": [SCRAPED, str(value)]} for labels, value in rows]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def prometheus(*pages: str, sidecar: dict[str, float] | None = None) -> Callable[[str], str]:
    """One that scrapes exporters with these pages, and a sidecar with these averages of gauges."""
    samples = [sample for page in pages for family in text_string_to_metric_families(page) for sample in family.samples]

    def answer(path: str) -> str:
        [query] = parse_qs(urlsplit(path).query)["query"]
        rows: list[tuple[dict[str, str], float]] = []
        if "exported_pod" in query or "pod_name" in query:
            names, *_, timed_by = re.findall(r'__name__=~"([^"]+)"|timestamp\((\w+)', query)
            rows += [(s.labels | {"__name__": s.name}, s.value) for s in samples if re.fullmatch(names[0], s.name)]
            rows += [(s.labels | {"field": "at"}, SCRAPED) for s in samples if s.name == timed_by[1]]
        elif '"pods"' in query and sidecar is not None:
            rows = [(OWN | {"field": "pods"}, 1.0), (OWN | {"field": "at"}, SCRAPED + 1)]
        elif query.startswith("avg"):
            rows = [(OWN | {"__name__": metric}, value) for metric, value in (sidecar or {}).items()]
        return vector(rows)

    return answer


def read(answer: Callable[[str], str]) -> Sample | None:
    with serving(Page(answer)) as url:
        reader = PrometheusReader(url, timeout=PATIENCE, budget=PATIENCE)
        reading = reader.read([TARGET], SCRAPED)
        reader.close()
    assert reading.failures == ()
    return reading.samples.get(KEY)


@pytest.fixture
def plugged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "SOURCES", (*registry.SOURCES, ACME))


@pytest.mark.usefixtures("plugged_in")
def test_a_new_sources_fields_arrive_with_their_quality() -> None:
    sample = read(prometheus(recorded("acme")))
    assert sample is not None
    assert sample.values == pytest.approx(FIELDS)
    assert sample.derived == {Field.MEMORY_BANDWIDTH}
    assert sample.at == SCRAPED


def test_unregistered_series_are_not_read() -> None:
    assert read(prometheus(recorded("acme"))) is None


@pytest.mark.usefixtures("plugged_in")
def test_of_several_sources_the_first_counts() -> None:
    sidecar = {"rightpool_chip_busy_ratio": 0.9}
    sample = read(prometheus(recorded("dcgm"), recorded("acme"), sidecar=sidecar))
    assert sample is not None
    assert sample.values[Field.CHIP_BUSY] == 0.9, "the sidecar's"
    assert sample.values[Field.POWER] == 362.418, "DCGM's"
    assert sample.values[Field.PODS] == 1
    assert sample.derived == frozenset(), "a derived value that another source measures is not used"
    assert sample.at == SCRAPED + 1, "the sidecar's"


def test_a_value_that_can_not_be_is_the_next_sources() -> None:
    sample = read(prometheus(recorded("dcgm"), sidecar={"rightpool_chip_power_watts": -5.0}))
    assert sample is not None
    assert sample.values[Field.POWER] == 362.418


def test_counters_that_the_chip_does_not_have_are_missing() -> None:
    sample = read(prometheus(recorded("dcgm").replace("0.812345", "9223372036854775794")))
    assert sample is not None
    assert Field.COMPUTE_ACTIVE not in sample.values
    assert Field.MATRIX_ACTIVE in sample.values


def test_each_source_has_a_unique_name_and_a_recorded_page() -> None:
    names = [source.name for source in registry.SOURCES]
    assert len(set(names)) == len(names)
    assert {*names, ACME.name} == {page.stem for page in RECORDED.glob("*.prom")}


@pytest.mark.parametrize("name", VENDORS)
def test_what_a_nodes_exporter_says(name: str) -> None:
    sample = read(prometheus(recorded(name)))
    assert sample is not None
    assert sample.values == pytest.approx(VENDORS[name])
    utilization = {Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY}
    assert sample.derived == (utilization if name == "gaudi" else frozenset())


EXPORTERS = [source for source in registry.SOURCES if isinstance(source, Exporter)]
LONE = [
    (source.name, counter.field, metric)
    for source in EXPORTERS
    for counter in source.counters
    for metric, _ in counter.metrics
    if not counter.rate and metric != source.timed_by and f"\n{metric}{{" in recorded(source.name)
]


@pytest.mark.parametrize(("name", "field", "metric"), LONE)
def test_a_field_whose_series_is_not_there_is_missing(name: str, field: Field, metric: str) -> None:
    page = recorded(name)
    assert field in reading(page)
    without = "\n".join(line for line in page.splitlines() if not line.startswith(f"{metric}{{")) + "\n"
    assert field not in reading(without)


def reading(page: str) -> dict[Field, float]:
    sample = read(prometheus(page))
    assert sample is not None
    return dict(sample.values)


def test_relabelled_pods_of_an_exporter() -> None:
    """Prometheus renames the exporter's labels where it attaches its own."""
    page = recorded("dcgm").replace('namespace="ml"', 'exported_namespace="ml",namespace="gpu-operator"')
    page = page.replace('pod="llm-0"', 'exported_pod="llm-0",pod="dcgm-x"')
    assert reading(page) == pytest.approx(reading(recorded("dcgm")))


def test_dcgm_without_profiling_counters_knows_little_and_says_so() -> None:
    page = "\n".join(line for line in recorded("dcgm").splitlines() if "DCGM_FI_PROF" not in line) + "\n"
    sample = read(prometheus(page))
    assert sample is not None
    assert sample.values.keys() == {Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY, Field.POWER, Field.MEMORY_USED}
    assert sample.derived == {Field.CHIP_BUSY, Field.SLOWEST_CHIP_BUSY}, "utilization counts any kernel"


def test_the_engine_of_dcgm_goes_before_utilization() -> None:
    page = recorded("dcgm") + recorded("dcgm").replace("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE").replace(
        " 99\n", " 0.6\n"
    )
    lines = [line for line in page.splitlines() if not line.startswith("#")]
    sample = read(prometheus("\n".join(dict.fromkeys(lines)) + "\n"))
    assert sample is not None
    assert sample.values[Field.CHIP_BUSY] == 0.6 and Field.CHIP_BUSY not in sample.derived


def test_a_part_of_a_chip_has_no_power_of_its_own() -> None:
    page = recorded("dcgm").replace('UUID="', 'GPU_I_PROFILE="3g.40gb",GPU_I_ID="2",UUID="')
    found = reading(page)
    assert Field.MEMORY_USED in found and Field.COMPUTE_ACTIVE in found
    assert not {Field.POWER, Field.PCIE_SENT} & found.keys()


def dcgm_line(metric: str, value: int) -> str:
    return f'{metric}{{UUID="GPU-1",namespace="ml",pod="llm-0"}} {value}\n'


@pytest.mark.parametrize(("reasons", "fault", "heat", "cap"), [
    (0x0, 0.0, 0.0, 0.0), (0x4, 0.0, 0.0, 1.0), (0x20, 1.0, 1.0, 0.0), (0x88, 1.0, 0.0, 0.0), (0x1, 0.0, 0.0, 0.0),
])  # fmt: skip
def test_reasons_of_clocks(reasons: int, fault: float, heat: float, cap: float) -> None:
    found = reading(recorded("dcgm") + dcgm_line("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", reasons))
    assert (found[Field.THROTTLE], found[Field.THERMAL_THROTTLE], found[Field.POWER_CAPPED]) == (fault, heat, cap)


@pytest.mark.parametrize(("metric", "value", "field", "expected"), [
    ("DCGM_FI_DEV_XID_ERRORS", 79, Field.XID, 79.0),
    ("DCGM_FI_DEV_XID_ERRORS", 31, Field.XID, None),
    ("DCGM_FI_DEV_XID_ERRORS", 0, Field.XID, None),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", 1, Field.REPAIR, 2.0),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", 1, Field.REPAIR, 1.0),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", 0, Field.REPAIR, None),
])  # fmt: skip
def test_errors_of_chips(metric: str, value: int, field: Field, expected: float | None) -> None:
    assert reading(recorded("dcgm") + dcgm_line(metric, value)).get(field) == expected


def test_a_pod_of_the_same_name_in_another_namespace_is_another_pod() -> None:
    page = recorded("dcgm").replace('namespace="ml"', 'namespace="other"')
    assert read(prometheus(page)) is None
