"""Images are valid OCI layouts, and the same inputs give the same bytes."""

import gzip
import hashlib
import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from devcluster import images, oci
from devcluster.spec import DevclusterError

NAME = "docker.io/library/thing:dev"
CONFIG = oci.ImageConfig(
    user="1000:1000",
    environment={"B": "2", "A": "1"},
    entrypoint=["/bin/thing"],
    labels={"org.opencontainers.image.title": "thing"},
)


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {name: content.read() for name in archive.getnames() if (content := archive.extractfile(name))}


def entries(layer: oci.Layer) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.blob))) as archive:
        return archive.getmembers()


def follow(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    """The blob a descriptor points to, with its size and digest checked."""
    algorithm, digest = descriptor["digest"].split(":")
    assert algorithm == "sha256"
    blob = files[f"blobs/sha256/{digest}"]
    assert len(blob) == descriptor["size"]
    assert hashlib.sha256(blob).hexdigest() == digest
    return blob


def test_every_digest_and_size_holds(tmp_path: Path) -> None:
    layers = [
        oci.layer_from_files({"/a": b"one"}),
        oci.layer_from_files({"/bin/thing": b"two"}, executable=["/bin/thing"]),
    ]
    digest = oci.write_image(tmp_path / "thing.tar", NAME, layers, CONFIG)
    files = contents(tmp_path / "thing.tar")
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["digest"] == digest
    assert entry["annotations"]["io.containerd.image.name"] == NAME
    manifest = json.loads(follow(files, entry))
    config = json.loads(follow(files, manifest["config"]))
    assert config["config"] == {
        "User": "1000:1000",
        "Env": ["A=1", "B=2"],
        "Entrypoint": ["/bin/thing"],
        "WorkingDir": "/",
        "Labels": {"org.opencontainers.image.title": "thing"},
    }
    unpacked = [gzip.decompress(follow(files, layer)) for layer in manifest["layers"]]
    assert ["sha256:" + hashlib.sha256(data).hexdigest() for data in unpacked] == config["rootfs"]["diff_ids"]


def test_the_same_inputs_give_the_same_bytes(tmp_path: Path) -> None:
    """Later, in another order, and from files with other times."""
    results = []
    for number in (1, 2):
        source = tmp_path / f"source{number}"
        source.mkdir()
        for name in ("b", "a") if number == 1 else ("a", "b"):
            (source / name).write_text(name)
        (source / "__pycache__").mkdir()
        (source / "__pycache__" / "a.pyc").write_text(str(time.time_ns()))
        layer = oci.layer_from_files({"/app": source, "/x": b"x"})
        target = tmp_path / f"{number}.tar"
        oci.write_image(target, NAME, [layer], CONFIG)
        results.append(target.read_bytes())
        time.sleep(1.1)
    assert results[0] == results[1]


def test_entries_are_sorted_timeless_and_roots(tmp_path: Path) -> None:
    script = tmp_path / "run"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    (tmp_path / "link").symlink_to("run")
    found = entries(oci.layer_from_files({"/opt/app": tmp_path, "/etc/conf": b"x"}))
    assert [entry.name for entry in found] == ["etc", "etc/conf", "opt", "opt/app", "opt/app/link", "opt/app/run"]
    assert {(entry.uid, entry.gid, entry.mtime) for entry in found} == {(0, 0, 0)}
    modes = {entry.name: entry.mode for entry in found}
    assert modes["opt/app/run"] == 0o755
    assert modes["etc/conf"] == 0o644
    assert modes["opt"] == 0o755
    assert next(entry for entry in found if entry.issym()).linkname == "run"


def test_a_foreign_tar_is_normalised_and_keeps_its_hard_links() -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, content in (("z/data", b"data"), ("skip", b"no")):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.uname = len(content), 12345, "somebody"
            archive.addfile(entry, io.BytesIO(content))
        link = tarfile.TarInfo("a-link")
        link.type, link.linkname = tarfile.LNKTYPE, "z/data"
        archive.addfile(link)
    raw.seek(0)
    found = entries(oci.layer_from_tar(raw, keep=lambda entry: entry.name != "skip"))
    assert [entry.name for entry in found] == ["z/data", "a-link"]
    assert all(entry.mtime == 0 and entry.uname == "" for entry in found)


def test_names_are_read_back(tmp_path: Path) -> None:
    digest = oci.write_image(tmp_path / "thing.tar", NAME, [oci.layer_from_files({"/a": b""})], CONFIG)
    assert oci.names_in(tmp_path / "thing.tar") == [NAME]
    assert oci.pinned_names_in(tmp_path / "thing.tar") == {NAME: f"docker.io/library/thing@{digest}"}


@pytest.mark.parametrize("content", [b"", b"not a tar at all"])
def test_an_invalid_image_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "thing.tar").write_bytes(content)
    with pytest.raises(DevclusterError, match="not an image tar"):
        oci.names_in(tmp_path / "thing.tar")
    with pytest.raises(DevclusterError, match="not an image tar"):
        oci.names_in(tmp_path / "absent.tar")


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("./usr/bin/python3.11", True),
        ("./usr/lib/x86_64-linux-gnu/libstdc++.so.6", True),
        ("./etc/ssl/certs/ca-certificates.crt", True),
        ("./usr/share/doc/python3/copyright", False),
        ("./usr/share/documentation", True),
        ("./usr/bin/perl", False),
        ("./usr/bin/apt-get", False),
        ("./var/lib/dpkg/status", True),
        ("./var/lib/dpkg/info/bash.list", False),
    ],
)
def test_the_base_keeps_what_programs_need(name: str, kept: bool) -> None:
    assert images._wanted(tarfile.TarInfo(name)) is kept
