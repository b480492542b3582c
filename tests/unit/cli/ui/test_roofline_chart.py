"""The roofline of the page: whatever is known lies inside the drawing, and points lie under their roofs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool.cli.roofline import Roof, RooflinePlot, RooflinePoint
from rightpool.cli.ui.roofline_chart import BOTTOM, LEFT, WIDTH, roofline_chart
from rightpool.cluster.resources import PODS, PROFILED_JOBS

from ..cluster import job, pod, profile, running_status, two_pools
from .pages import browser_of

ROOF = Roof("a100", "A100-SXM4-80GB", 312e12, 2.0e12, measured=False)
POINT = RooflinePoint("a100", "4×a100", 50.0, 50e12, 50e12, 50e12, predicted=False)
PLOT = RooflinePlot("bf16", (ROOF,), (POINT,), ())

positive = st.floats(1e-6, 1e18)
roofs = st.builds(Roof, st.sampled_from("abc"), st.just("chip"), positive, positive, st.booleans())


@st.composite
def points(draw: st.DrawFn) -> RooflinePoint:
    low, middle, high = sorted(draw(st.tuples(positive | st.just(0.0), positive, positive)))
    return RooflinePoint(draw(st.sampled_from("abcd")), "place", draw(positive), middle, low, high, predicted=True)


def test_a_point_is_drawn_where_it_is() -> None:
    chart = roofline_chart(PLOT)
    assert chart is not None
    (mark,), (line,) = chart.marks, chart.lines
    assert (mark.intensity, mark.rate, mark.of_roof) == ("50", "50 TFLOP/s", "50%")
    assert mark.top == mark.y == mark.bottom, "it was measured"
    assert line.own and line.text == "a100: A100-SXM4-80GB, at most 312 TFLOP/s and 2 TB/s, by the catalog"
    _, (ridge_x, ridge_y), (_, end_y) = (map(float, corner.split(",")) for corner in line.points.split())
    assert mark.x < ridge_x and mark.y > ridge_y == end_y, "under the slope, left of the ridge"
    assert [tick.text for tick in chart.across] == ["10 ", "100 ", "1 k"]


def test_without_a_point_the_roofs_are_drawn_and_the_note_says_why() -> None:
    chart = roofline_chart(replace(PLOT, points=(), notes=("no counter of memory traffic",)))
    assert chart is not None and chart.marks == () and not chart.lines[0].own
    assert chart.notes == ("no counter of memory traffic",)


def test_without_figures_there_is_no_drawing() -> None:
    assert roofline_chart(RooflinePlot("bf16", (), (), ())) is None


@given(st.lists(roofs, min_size=1, max_size=4), st.lists(points(), max_size=4))
def test_everything_lies_inside(drawn: list[Roof], marks: list[RooflinePoint]) -> None:
    chart = roofline_chart(RooflinePlot("bf16", tuple(drawn), tuple(marks), ()))
    assert chart is not None and len(chart.lines) == len(drawn) and len(chart.marks) == len(marks)
    for line in chart.lines:
        for corner in line.points.split():
            x, y = map(float, corner.split(","))
            assert LEFT <= x <= WIDTH and 0.0 <= y <= BOTTOM
    for labels in ([line.label for line in chart.lines], [mark.label for mark in chart.marks]):
        heights = sorted(label.y for label in labels)
        assert all(0.0 <= height <= BOTTOM for height in heights)
        assert all(below - above >= 16.9 for above, below in pairwise(heights)), "none lies on another one"
    for mark in chart.marks:
        assert LEFT <= mark.x <= WIDTH and 0.0 <= mark.top <= mark.y <= mark.bottom <= BOTTOM


@pytest.mark.parametrize(("model", "dots"), [({"precision": "bf16"}, 2), (None, 0)])
def test_the_page_has_it(model: dict[str, str] | None, dots: int) -> None:
    client = two_pools()
    status = running_status(profile=profile(model=model, exposedCommunication="0.04"))
    elasticity = {"minChips": 2, "maxChips": 8, "batch": "PerChip", "state": "Replicated"}
    client.add(PROFILED_JOBS, job(status=status, elasticity=elasticity))
    client.add(PODS, pod("resnet50", "vision", "a100-0"))
    text = browser_of(client).get("/jobs/vision/resnet50").text
    assert text.count("<circle") == dots and "<polyline" in text
    assert ("precision is not known: its point is left out" in text) == (dots == 0)
    assert ("thick line" in text) == (dots > 0)
