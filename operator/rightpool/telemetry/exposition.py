"""A sidecar's /metrics page: the text exposition format, as far as it concerns the contract's metrics.

The page comes from an untrusted pod. prometheus_client's parser takes 1.6 s of CPU for a megabyte of other series, and
accepts lines that Prometheus refuses; here lines of other metrics cost next to nothing, and a page with one wrong line
of ours is refused as a whole, as Prometheus does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rightpool.profiles.sample import LARGEST
from rightpool.telemetry.sources.sidecar import METRICS

_PREFIX: Final = "rightpool_"
_MOST_SERIES: Final = 5_000
_LONGEST_LINE: Final = 4_096

_LINE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*(?:\{(.*)\})?[ \t]*([^ \t{}]+)(?:[ \t]+-?[0-9]+)?[ \t]*")
_LABEL: Final = re.compile(r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"[ \t]*(?:,|$)')
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPED: Final = {"n": "\n", "\\": "\\", '"': '"'}
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?i:inf|nan)")


class BadPage(Exception):
    """The page is not an exposition of a sidecar."""


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
    """The contract's series of a page. A page that was cut off, or that has a wrong line of ours, raises BadPage."""
    if page and not page.endswith("\n"):
        raise BadPage("the page was cut off: its last line has no end")
    found: dict[tuple[str, tuple[tuple[str, str], ...]], Series] = {}
    foreign = False
    count = 0
    for line in page.split("\n"):
        if not line.startswith(_PREFIX):
            foreign = foreign or not (line.startswith("#") or line.isspace() or not line)
            continue
        count += 1
        if count > _MOST_SERIES:
            raise BadPage(f"the page has more than {_MOST_SERIES} series")
        series = _series(line)
        if series is not None:
            identity = (series.metric, tuple(sorted(series.labels.items())))
            if identity in found:
                raise BadPage(f"{series.metric} is there twice with the same labels")
            found[identity] = series
    if foreign and not count:
        raise BadPage("the page is not a profiler's")
    return [series for series in found.values() if abs(series.value) <= LARGEST]


def _series(line: str) -> Series | None:
    """The series of a line, None where its metric is not read."""
    if len(line) > _LONGEST_LINE:
        raise BadPage(f"a line is longer than {_LONGEST_LINE} characters")
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadPage(f"not a series: {line[:80]!r}")
    metric, labels, value = match.groups()
    if _NUMBER.fullmatch(value) is None:
        raise BadPage(f"not a number: {value[:40]!r}")
    parsed = _labels(labels or "")
    return Series(metric, parsed, float(value)) if metric in METRICS else None


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
