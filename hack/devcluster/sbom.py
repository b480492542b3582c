"""The content of an image as a CycloneDX document.

It is made from the inputs of the image: the lock that its Python packages were installed from, and the base's record of
its Debian packages. The lock's hashes are those that an installation accepts, so a listed package can be verified
offline. The same image gives the same document, byte for byte.
"""

import io
import json
import re
import tarfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

SPEC_VERSION: Final = "1.6"
DPKG_STATUS: Final = "var/lib/dpkg/status"
_NAMES: Final = uuid.UUID("7c3d1f0e-52a7-4a55-9a55-5b1f6f3f8a10")  # namespace of the documents' serial numbers
_PINNED: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Package:
    """One component. hashes: SHA-256 of each of its files that an installation accepts."""

    name: str
    version: str
    purl: str
    hashes: tuple[str, ...] = ()


class BadLock(ValueError):
    """A lock with a package that is not pinned by version and hash. The message names the line."""


def locked(text: str) -> Iterator[Package]:
    """The packages of a requirements file. Raises BadLock if one has no version or no hash."""
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match, hashes = _PINNED.match(line), tuple(_HASH.findall(line))
        if match is None or not hashes:
            raise BadLock(f"no version or no hash: {line[:80]}")
        name, version = re.sub(r"[-_.]+", "-", match[1]).lower(), match[2]
        yield Package(name, version, f"pkg:pypi/{name}@{quote(version)}", hashes)


def installed(layer: bytes, suite: str) -> list[Package]:
    """The Debian packages of a base layer. suite: of Debian, such as bookworm."""
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        entry = next(member for member in archive if member.name.removeprefix("./") == DPKG_STATUS)
        content = archive.extractfile(entry)
        assert content is not None, "a regular file"
        return list(_recorded(content.read().decode(), suite))


def _recorded(status: str, suite: str) -> Iterator[Package]:
    for paragraph in status.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if re.match(r"[A-Z][\w-]*: ", line))
        if fields.get("Status") == "install ok installed":
            name, version = fields["Package"], fields["Version"]
            where = f"arch={fields['Architecture']}&distro=debian-{suite}"
            yield Package(name, version, f"pkg:deb/debian/{quote(name)}@{quote(version)}?{where}")


def document(image: str, version: str, digest: str, packages: Iterable[Package]) -> dict[str, Any]:
    """The bill of materials of an image."""
    components = [_component(package) for package in sorted(packages, key=lambda package: package.purl)]
    return {
        "$schema": f"http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMES, digest)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "container",
                "bom-ref": f"{image}@{digest}",
                "name": image,
                "version": version,
                "hashes": [{"alg": "SHA-256", "content": digest.removeprefix("sha256:")}],
            }
        },
        "components": components,
        "dependencies": [{"ref": f"{image}@{digest}", "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _component(package: Package) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
    }
    if package.hashes:
        files = [{"alg": "SHA-256", "content": content} for content in sorted(package.hashes)]
        component["externalReferences"] = [{"type": "distribution", "url": package.purl, "hashes": files}]
    return component


def write(path: Path, content: dict[str, Any]) -> None:
    """Sorted and indented, for people and for comparisons."""
    path.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")
