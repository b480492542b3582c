"""A /metrics page, of a sidecar or of a server: the text exposition format, as far as it concerns the metrics wanted.

The page comes from an untrusted pod. prometheus_client's parser takes 1.6 s of CPU for a megabyte of other series, and
accepts lines that Prometheus refuses; here lines of other metrics cost next to nothing, and a page with one wrong line
of ours is refused as a whole, as Prometheus does.
"""

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from rightpool.profiles.sample import LARGEST
from rightpool.telemetry.sources.sidecar import METRICS

_PREFIX: Final = "rightpool_"
_MOST_SERIES: Final = 5_000
_LONGEST_LINE: Final = 4_096

_LINE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(.*)\})?[ \t]*([^ \t{}]+)(?:[ \t]+-?[0-9]+)?[ \t]*")
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "\\": "\\", '"': '"'}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|nan)")


class BadPage(Exception):
    """The page is not an exposition of what was asked for."""


@dataclass(frozen=True, slots=True)
class Series:
    """One series and its value, which is finite and no larger than anything that is measured."""

    metric: str
    """Its name."""
    labels: Mapping[str, str]
    """Values by name."""
    value: float
    """In the unit that the metric's name ends with."""


def parse(page: str) -> list[Series]:
    """The contract's series of a sidecar's page. A page that was cut off, or that has a wrong line of ours, raises
    BadPage."""
    found, foreign, count = _series_of(page, lambda line: line.startswith(_PREFIX))
    if foreign and not count:
        raise BadPage("the page is not a profiler's")
    return [series for series in found if series.metric in METRICS]


def parse_metrics(page: str, metrics: AbstractSet[str]) -> list[Series]:
    """The series of these metrics on any page; raises BadPage as `parse`."""
    names = _NAME.match
    return _series_of(page, lambda line: (name := names(line)) is not None and name[0] in metrics)[0]


def _series_of(page: str, ours: Callable[[str], bool]) -> tuple[list[Series], bool, int]:
    """The series whose lines are ours, whether there are others, and how many lines are ours."""
    if page and not page.endswith("\n"):
        raise BadPage("the page was cut off: its last line has no end")
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Series] = {}
    foreign = False
    count = 0
    for line in page.split("\n"):
        if not ours(line):
            foreign = foreign or not (line.startswith("#") or line.isspace() or not line)
            continue
        count += 1
        if count > _MOST_SERIES:
            raise BadPage(f"the page has more than {_MOST_SERIES} series")
        series = _series(line)
        identity = (series.metric, tuple(sorted(series.labels.items())))
        if identity in found:
            raise BadPage(f"{series.metric} is there twice with the same labels")
        found[identity] = series
    return [series for series in found.values() if abs(series.value) <= LARGEST], foreign, count


def _series(line: str) -> Series:
    """The series of a line."""
    if len(line) > _LONGEST_LINE:
        raise BadPage(f"a line is longer than {_LONGEST_LINE} characters")
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadPage(f"not a series: {line[:80]!r}")
    metric, labels, value = match.groups()
    if _NUMBER.fullmatch(value) is None:
        raise BadPage(f"not a number: {value[:40]!r}")
    return Series(metric, _labels(labels or ""), float(value))


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None:
            if text[position:].strip(" \t") == "":
                break
            raise BadPage(f"not a label: {text[position : position + 40]!r}")
        name, value = match.groups()
        if name in labels:
            raise BadPage(f"the label {name} is there twice")
        labels[name] = _ESCAPE.sub(lambda escape: _ESCAPED.get(escape[1], escape[0]), value)
        position = match.end()
    return labels
