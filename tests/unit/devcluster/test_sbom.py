"""Bills of materials: complete, of the shape that CycloneDX asks for, and the same for the same image."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from devcluster import oci, recipes, sbom

HASH = {"type": "object", "required": ["alg", "content"], "properties": {"content": {"pattern": "^[0-9a-f]{64}$"}}}
# Requirements of CycloneDX 1.6 for the parts that are used here; other top-level fields are not allowed.
SHAPE: dict[str, Any] = {
    "type": "object",
    "required": ["bomFormat", "specVersion", "serialNumber", "version", "metadata", "components"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"const": "http://cyclonedx.org/schema/bom-1.6.schema.json"},
        "bomFormat": {"const": "CycloneDX"},
        "specVersion": {"const": "1.6"},
        "serialNumber": {"pattern": "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"},
        "version": {"type": "integer", "minimum": 1},
        "metadata": {"required": ["component"], "properties": {"component": {"$ref": "#/$defs/component"}}},
        "components": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/component"}},
        "dependencies": {
            "type": "array",
            "items": {"required": ["ref"], "properties": {"dependsOn": {"type": "array", "uniqueItems": True}}},
        },
    },
    "$defs": {
        "component": {
            "type": "object",
            "required": ["type", "name"],
            "additionalProperties": False,
            "properties": {
                "type": {"enum": ["library", "container"]},
                "bom-ref": {"type": "string", "minLength": 1},
                "name": {"type": "string", "minLength": 1},
                "version": {"type": "string"},
                "purl": {"pattern": "^pkg:(pypi/|deb/debian/)[a-z0-9%.+-]+@[A-Za-z0-9%.+~_:-]+([?].+)?$"},
                "hashes": {"type": "array", "items": HASH},
                "externalReferences": {
                    "type": "array",
                    "items": {"required": ["type", "url"], "properties": {"hashes": {"type": "array", "items": HASH}}},
                },
            },
        }
    },
}
STATUS = b"""Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u13
Description: GNU C Library
 Version: not this one

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: tzdata
Status: install ok installed
Architecture: all
Version: 1:2026a
"""
DIGEST = "sha256:" + "ab" * 32


def base() -> bytes:
    return oci.layer_from_files({f"/{sbom.DPKG_STATUS}": STATUS}).blob


def operators() -> dict[str, Any]:
    (recipe,) = (recipe for recipe in recipes.RECIPES if recipe.short == "operator")
    return sbom.document(recipe.name, "0.1.0", DIGEST, recipes.contents(recipe, base()))


def test_the_shape_is_cyclonedx() -> None:
    bill = operators()
    jsonschema.validate(bill, SHAPE)
    references = {component["bom-ref"] for component in bill["components"]}
    assert set(bill["dependencies"][0]["dependsOn"]) == references


@pytest.mark.parametrize("recipe", recipes.RECIPES, ids=lambda recipe: recipe.short)
def test_whatever_is_installed_is_listed_with_its_hashes(recipe: recipes.Recipe) -> None:
    """Counted independently of the document's code."""
    files = {c.name: c for c in recipes.contents(recipe, base()) if c.purl.startswith("pkg:pypi/")}
    text = recipe.lock.read_text()
    assert len(files) == len(re.findall(r"^\S+==", text, re.MULTILINE))
    assert sum(len(component.hashes) for component in files.values()) == text.count("--hash=sha256:")


def test_debian_packages_are_those_that_are_installed() -> None:
    assert [(package.name, package.version, package.purl) for package in sbom.installed(base(), "bookworm")] == [
        ("libc6", "2.36-9+deb12u13", "pkg:deb/debian/libc6@2.36-9%2Bdeb12u13?arch=amd64&distro=debian-bookworm"),
        ("tzdata", "1:2026a", "pkg:deb/debian/tzdata@1%3A2026a?arch=all&distro=debian-bookworm"),
    ]


def test_the_same_image_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        sbom.write(tmp_path / name, operators())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("line", ["requests>=2", "requests==2.0", "-e .", "requests @ https://example.com/x.whl"])
def test_a_lock_that_pins_nothing_is_refused(line: str) -> None:
    with pytest.raises(sbom.BadLock, match=re.escape(line[:8])):
        list(sbom.locked(f"# a comment\n{line}\n"))


@pytest.mark.parametrize("path", sorted(recipes.ROOT.glob("**/requirements.lock")), ids=str)
def test_every_lock_can_be_audited_without_a_network(path: Path) -> None:
    if ".venv" not in path.parts:
        assert list(sbom.locked(path.read_text()))
