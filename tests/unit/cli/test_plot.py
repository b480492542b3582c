"""What `rightpool explain --plot` draws: numbers that are known, and a note for each that is not."""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rightpool.api.placement import CapacityType
from rightpool.api.trace import Trace
from rightpool.cli.connection import CliError
from rightpool.cli.explain import explain
from rightpool.cli.explained import Explanation
from rightpool.cli.main import main
from rightpool.cli.plot import file as module
from rightpool.cli.plot.data import Plot, offers_of, plot_of
from rightpool.cli.plot.file import form_of, plot_file, require_library, save_plot
from rightpool.cluster.resources import ACCELERATOR_POOLS, PODS, PROFILED_JOBS
from rightpool.hardware.calibration import USUAL_FLOPS
from rightpool.hardware.catalog import load_catalog
from rightpool.planning.jobs.job import JobKey
from tests.unit.cli.cluster import NOW, FakeClient, job, pod, profile, running_status, two_pools, view_of
from tests.unit.runtime.test_pool_publisher import CALIBRATION

A100 = load_catalog().get("A100-SXM4-80GB")


def explained(client: FakeClient | None = None, **changes: Any) -> Explanation:
    """A job on four A100, measured in bf16."""
    client = two_pools() if client is None else client
    model = {"model": {"precision": "bf16"}}
    status = running_status(profile=profile(**{**model, "exposedCommunication": "0.04", **changes}))
    elasticity = {"minChips": 2, "maxChips": 8, "batch": "PerChip", "state": "Replicated"}
    client.add(PROFILED_JOBS, job(status=status, elasticity=elasticity))
    client.add(PODS, pod("resnet50", "vision", "a100-0"))
    return explain(view_of(client), JobKey("vision", "resnet50"), NOW)


def plotted(**changes: Any) -> Plot:
    return plot_of(explained(**changes))


def test_the_job_stands_where_its_counters_say() -> None:
    shown = plotted().roofline
    point = shown.points[0]
    assert not point.predicted and point.low == point.flops == point.high
    assert point.flops == pytest.approx(0.14 * A100.peak_flops["bf16"])
    assert point.intensity == pytest.approx(point.flops / (0.45 * A100.memory_bandwidth))
    roofs = {roof.pool: roof for roof in shown.roofs}
    assert roofs["a100"].flops == A100.peak_flops["bf16"] and not roofs["a100"].measured
    assert shown.precision == "bf16" and shown.notes == ()


def test_elsewhere_it_is_predicted_at_the_same_size() -> None:
    found = explained()
    shown = plot_of(found)
    own, *others = shown.roofline.points
    (there,) = (point for point in others if point.pool == "a10g")
    (candidate,) = (
        each for each in found.assessment.candidates if (each.placement.pool, each.placement.chips) == ("a10g", 4)
    )
    assert found.assessment.current is not None and found.assessment.current.throughput is not None
    assert candidate.throughput is not None
    faster = candidate.throughput.median / found.assessment.current.throughput.median
    assert there.predicted and there.intensity == own.intensity
    assert there.flops == pytest.approx(own.flops * faster)
    assert there.low < there.flops < there.high


def test_a_place_on_spot_chips_is_named_once_as_such() -> None:
    found = explained()
    (there,) = (
        each for each in found.assessment.candidates if (each.placement.pool, each.placement.chips) == ("a10g", 4)
    )
    on_spot = replace(there, placement=replace(there.placement, capacity=CapacityType.SPOT))
    (offer,), _ = offers_of(None, [on_spot], None)
    assert offer.where == "4×a10g (spot)"


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"matrixActive": None}, "no counter of arithmetic units"),
        ({"memoryBandwidth": None}, "no counter of memory traffic"),
        ({"matrixActive": None, "memoryBandwidth": None}, "no counter of arithmetic units and memory traffic"),
        ({"matrixActive": "0.00"}, "a logarithmic axis has no place for it"),
        ({"model": None}, "precision is not known"),
    ],
)
def test_what_is_not_counted_is_a_note_and_never_zero(changes: dict[str, Any], note: str) -> None:
    shown = plotted(**changes)
    assert shown.roofline.points == ()
    assert note in " ".join(shown.roofline.notes)
    assert shown.roofline.roofs, "the chips are known nevertheless"
    assert all(rate.median > 0 for rates in shown.sizes.values() for rate in rates)


def test_a_step_without_busy_time_has_no_parts() -> None:
    assert plotted(chipBusy=None).parts == ()
    parts = plotted().parts
    assert sum(part.share for part in parts) == pytest.approx(1.0, abs=0.001)


def traced() -> Explanation:
    """A job with a trace of all its ranks."""
    found = explained()
    part = {"part": "Compute", "least": "0.7", "leastRank": 2, "median": "0.8", "most": "0.95", "mostRank": 3}
    wait = {"part": "Input", "least": "0.01", "leastRank": 3, "median": "0.1", "most": "0.2", "mostRank": 2}
    ranks = {"captured": 4, "failed": 0, "pods": 1, "parts": [wait, part]}
    body = {"id": "t", "state": "Captured", "since": "2026-11-21T12:00:00Z", "ranks": ranks}
    memory = {"peakBytes": 2**35, "at": "0.5", "timeline": [2**34, 2**35], "device": "cuda:0", "capacityBytes": 2**36}
    summary = {"on": "Device", "seconds": "0.5", "memory": {**memory, "reservedBytes": 3 * 2**34}}
    trace = Trace.from_dict({**body, "summary": summary})
    return replace(found, job=found.job.with_state(replace(found.job.state, trace=trace)))


def test_ranks_are_those_of_the_newest_trace_of_all() -> None:
    assert plotted().spread == ()
    shown = plot_of(traced()).spread
    assert [(each.part, each.least_rank, each.most_rank) for each in shown] == [("Compute", 2, 3), ("Input", 3, 2)]


def test_memory_is_that_of_the_newest_trace() -> None:
    assert plotted().memory is None
    shown = plot_of(traced()).memory
    assert shown is not None and (shown.device, shown.peak_bytes, shown.timeline) == ("cuda:0", 2**35, (2**34, 2**35))


def test_throughput_so_far_ends_with_what_is_measured_now() -> None:
    shown = plotted()
    assert shown.stretches[-1].end == shown.now and shown.stretches[-1].rate == 6070
    assert all(one.end <= two.start for one, two in pairwise(shown.stretches))
    nothing = explained()
    nothing = replace(nothing, job=replace(nothing.job, observed=nothing.job.observed._replace(profile=None)))
    assert all(stretch.what != "revision 1, now" for stretch in plot_of(nothing).stretches)


def test_sizes_have_intervals_and_say_what_was_observed() -> None:
    sizes = plotted().sizes
    rates = {rate.chips: rate for rate in sizes["a100"]}
    assert list(rates) == sorted(rates) and {2, 4, 8} <= rates.keys()
    assert rates[4].observed and rates[4].median == 6070
    assert not rates[8].observed and rates[8].low < rates[8].median < rates[8].high


def test_nothing_is_both_faster_and_cheaper_than_the_frontier() -> None:
    offers = plotted().offers
    assert any(offer.kind == "now" for offer in offers)
    for offer in offers:
        better = [one for one in offers if one.hours <= offer.hours and one.dollars < offer.dollars]
        assert offer.frontier is not bool(better), offer


def test_without_a_price_an_offer_is_counted_and_not_drawn() -> None:
    assessment = explained().assessment
    unpriced = [replace(each, cost_per_million=None) for each in assessment.candidates]
    offers, lacking = offers_of(assessment.current, unpriced, None)
    assert [offer.kind for offer in offers] == ["now"]
    assert lacking == len(unpriced) > 0


def test_a_calibrated_pool_has_its_own_roof() -> None:
    client = two_pools()
    for body in client.objects[ACCELERATOR_POOLS]:
        if body["metadata"]["name"] == "a100":
            body["status"]["calibration"] = CALIBRATION
    (roof,) = (roof for roof in plot_of(explained(client)).roofline.roofs if roof.pool == "a100")
    assert roof.measured and roof.flops == pytest.approx(260e12 / USUAL_FLOPS)


def test_a_job_that_was_never_measured_has_an_empty_picture() -> None:
    found = explained()
    nothing = replace(
        found,
        job=replace(found.job, observed=found.job.observed._replace(profile=None)),
        assessment=replace(found.assessment, evaluated=None),
    )
    shown = plot_of(nothing)
    assert (shown.sizes, shown.offers, shown.parts, shown.roofline.points) == ({}, (), (), ())
    assert shown.roofline.notes == ("the job was not measured: its point is left out",)


# --- the file --------------------------------------------------------------------------------------------------------


def _draw(found: Explanation, path: Path) -> None:
    from rightpool.cli.plot.draw import draw  # needs matplotlib

    save_plot(draw(plot_of(found), form_of(path)), path)


def test_a_picture_is_svg_or_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = traced()
    svg, png, again = tmp_path / "job.svg", tmp_path / "job.PNG", tmp_path / "again.svg"
    for path in (svg, png, again):
        _draw(found, path)
    texts = " ".join(ElementTree.parse(svg).getroot().itertext())
    for text in (
        "One chip, bf16",
        "Throughput by size",
        "cost against time",
        "Where the time of a step goes",
        "a10g",
        " 3 ",
        "so far",
        "most: 32.0 GiB",
        "of the device: 64.0 GiB",
        "held by the framework's allocator: 48.0 GiB",
    ):
        assert text in texts
    assert png.read_bytes().startswith(b"\x89PNG")
    assert svg.read_bytes() == again.read_bytes(), "the same picture gives the same file"


def test_chips_that_cost_nothing_are_drawn_and_what_is_not_known_is_said(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    client, path = two_pools(), tmp_path / "job.svg"
    for body in client.objects[ACCELERATOR_POOLS]:
        body["spec"]["price"] = {"perChipHour": "0"}
    found = explained(client, matrixActive=None, chipBusy=None)
    assert any(offer.dollars == 0.0 for offer in plot_of(found).offers)
    _draw(found, path)
    texts = " ".join(ElementTree.parse(path).getroot().itertext())
    assert "no counter of arithmetic units" in texts and "no counter tells how long the chip works" in texts
    assert "no trace of all ranks" in texts and "no trace says it" in texts


def test_a_path_that_cannot_be_written_leaves_a_message(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"--plot: .*there/job\.svg can't be written: No such file or directory"):
        save_plot(b"", tmp_path / "there" / "job.svg")


def test_another_ending_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["explain", "job", "--plot", "job.pdf"])
    assert caught.value.code == 2
    assert "job.pdf: the name must end in .svg or .png" in capsys.readouterr().err
    for wrong in ("job", "svg", ".svg", "job.svg.txt"):
        with pytest.raises(argparse.ArgumentTypeError):
            plot_file(wrong)


def test_without_the_library_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(CliError, match=r"pip install 'rightpool\[plot\]'"):
        require_library()
