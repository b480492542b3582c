"""The API reference has every field of the definitions."""

from __future__ import annotations

import re

import pytest

from rightpool.api.resources import PROFILED_JOB, RESOURCES, CustomResource
from tools.docs import api_reference


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_every_field_is_in_a_table(resource: CustomResource) -> None:
    section = api_reference.page().partition(f"\n## {resource.kind}\n")[2].partition("\n## ")[0]
    tables: dict[str, set[str]] = {}
    for part in re.split(r"^### ", section, flags=re.M)[1:]:
        path = part.partition(" {")[0]
        tables[path] = set(re.findall(r"^\| `(\w+)` \|", part, flags=re.M))
    for path in api_reference.field_paths(resource):
        parent, _, name = path.rpartition(".")
        if parent:
            assert name in tables[parent], path


def test_links_lead_to_headings() -> None:
    page = api_reference.page()
    anchors = re.findall(r"\{ #([\w-]+) \}$", page, flags=re.M)
    assert len(anchors) == len(set(anchors))
    assert set(re.findall(r"\]\(#([\w-]+)\)", page)) <= set(anchors)


def test_no_cell_breaks_its_table() -> None:
    for line in api_reference.page().splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in (3, 5), line


def test_refusals_have_the_servers_message() -> None:
    page = api_reference.page()
    assert "`minChips` must not exceed maxChips: lower minChips or raise maxChips" in page
    assert "`deadline` needs spec.progress.totalSamples" in page or "`targets.deadline` needs" in page


def test_fields_are_described() -> None:
    bare = re.findall(r"^\| `(\w+)` \| [^|]* \| [^|]* \| +\|$", api_reference.page(), flags=re.M)
    assert bare == []
    assert "spec.workload.job" in api_reference.field_paths(PROFILED_JOB)
