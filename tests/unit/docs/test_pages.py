"""The written pages: their manifests are valid, and they name no local paths.

Links, anchors and the navigation are checked when the site is built by `make docs`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rightpool.api.resources import RESOURCES
from tools.chartdocs import values

from .pages import DOCS, ROOT, WRITTEN, blocks

MODELS = {resource.kind: resource.spec for resource in RESOURCES}
GENERATED = {"reference/api.md", "reference/values.md", "reference/alerts.md"}


def _manifests(path: Path) -> list[dict[str, Any]]:
    return [document for block in blocks(path, "yaml") for document in yaml.safe_load_all(block) if document]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_manifests_are_of_this_version(path: Path) -> None:
    for document in _manifests(path):
        model = MODELS.get(document.get("kind", ""))
        if model is not None:
            assert document["apiVersion"] == "rightpool.dev/v1alpha1"
            model.model_validate(document["spec"])
            _assert_known(model, document["spec"], "spec")


def _assert_known(model: Any, given: dict[str, Any], where: str) -> None:
    """Every field exists. Models ignore unknown ones, the API server does not."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    for name, value in given.items():
        assert name in fields, f"{where}.{name}"
        inner = fields[name].annotation
        if isinstance(value, dict) and hasattr(inner, "model_fields"):
            _assert_known(inner, value, f"{where}.{name}")


def test_values_are_of_the_chart() -> None:
    known = set(re.findall(r"^\| `([\w.]+)` \|", values.table(), flags=re.M))
    page = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("how-to/*.md"))
    for name in re.findall(
        r"`((?:image|sidecar|crds|planner|prometheus|sidecarKey|podMonitor|serviceMonitor)\.[\w.]+)`", page
    ):
        assert name in known, name


def test_the_navigation_has_every_page() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = set(re.findall(r"'([\w/-]+\.md)'", str(config["nav"])))
    assert listed >= {str(path.relative_to(DOCS)) for path in WRITTEN} | GENERATED


@pytest.mark.parametrize("path", [*WRITTEN, *DOCS.glob("images/*.svg")], ids=lambda path: path.name)
def test_nothing_of_the_machine_that_it_was_written_on(path: Path) -> None:
    assert re.findall(r"(?<!\w)/(?:root|home|work)/\S*", path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_no_commit_is_named(path: Path) -> None:
    """Readers have a date and a command; a commit is not to be had from a release."""
    named = re.findall(r"`(?=[0-9a-f]*[0-9])[0-9a-f]{7,40}`", path.read_text(encoding="utf-8"))
    assert named == []


def test_benchmarks_are_one_page_of_tables() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 150
    # What was tried is beside the navigation.
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert "lab/" in config["not_in_nav"] and "lab/" not in str(config["nav"])


def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in (*DOCS.glob("images/*.svg"), *DOCS.glob("css/*.css")):
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"https?://|@import|url\((?!#)", text) == [], path.name
