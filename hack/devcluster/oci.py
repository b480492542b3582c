"""OCI images as plain tar files, without a registry, a daemon or a Dockerfile.

The same inputs give the same bytes: sorted entries, zero times, numeric owners, gzip without a timestamp. An image has
the same digest on every machine, so a second import costs nothing and a test can compare digests.
"""

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from devcluster import bytecode
from devcluster.spec import DevclusterError

_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_TABLES: Final = ("index.json", "manifest.json")
_NAME: Final = "io.containerd.image.name"
_EPOCH: Final = "1970-01-01T00:00:00Z"


@dataclass(frozen=True)
class Layer:
    """One compressed layer with the digests of the stored blob and of the tar in it, which the config contains."""

    blob: bytes
    diff_id: str

    @property
    def digest(self) -> str:
        return _sha256(self.blob)


@dataclass(frozen=True)
class ImageConfig:
    """The configuration of an image: what a Dockerfile sets besides files."""

    user: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    working_dir: str = "/"
    labels: Mapping[str, str] = field(default_factory=dict)
    architecture: str = "amd64"


def _sha256(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _gzip(data: bytes) -> bytes:
    target = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=target, compresslevel=9, mtime=0) as stream:
        stream.write(data)
    return target.getvalue()


def layer_from_tar(source: Path | IO[bytes], keep: Callable[[tarfile.TarInfo], bool] = lambda entry: True) -> Layer:
    """A reproducible layer from a tar, such as mmdebstrap's. keep: which entries to include."""
    with tarfile.open(source) if isinstance(source, Path) else tarfile.open(fileobj=source) as archive:
        return _layer(
            (entry, archive.extractfile(entry) if entry.isreg() else None)
            for entry in archive.getmembers()
            if keep(entry)
        )


def layer_from_files(files: Mapping[str, bytes | Path], *, executable: Iterable[str] = ()) -> Layer:
    """A layer from contents, or from files and folders on disk, by path in the image.

    Files from disk keep their permission to execute, and all belong to root. Python's byte code is left out where it
    contains the time of its source.
    """
    runnable = set(executable)
    entries: dict[str, tuple[tarfile.TarInfo, IO[bytes] | None]] = {}
    for target, source in files.items():
        if isinstance(source, bytes):
            _add(entries, _regular(target, len(source), target in runnable), io.BytesIO(source))
        elif source.is_dir():
            for path in sorted(source.rglob("*")):
                if "__pycache__" not in path.parts or (path.is_file() and bytecode.lasting(path)):
                    _add_path(entries, f"{target}/{path.relative_to(source).as_posix()}", path)
        else:
            _add_path(entries, target, source, force_executable=target in runnable)
    return _layer(entries.values())


def _add_path(
    entries: dict[str, tuple[tarfile.TarInfo, IO[bytes] | None]],
    target: str,
    path: Path,
    *,
    force_executable: bool = False,
) -> None:
    if path.is_symlink():
        link = _entry(target, tarfile.SYMTYPE, 0o777)
        link.linkname = str(path.readlink())
        _add(entries, link, None)
    elif path.is_dir():
        _add(entries, _entry(target, tarfile.DIRTYPE, 0o755), None)
    elif path.is_file():
        content = path.read_bytes()
        executable = force_executable or bool(path.stat().st_mode & 0o100)
        _add(entries, _regular(target, len(content), executable), io.BytesIO(content))


def _add(
    entries: dict[str, tuple[tarfile.TarInfo, IO[bytes] | None]], entry: tarfile.TarInfo, content: IO[bytes] | None
) -> None:
    """Add an entry and its parent folders, so that their modes do not depend on the umask when unpacked."""
    for parent in reversed(PurePosixPath(entry.name).parents):
        name = str(parent)
        if name != "." and name not in entries:
            entries[name] = (_entry(name, tarfile.DIRTYPE, 0o755), None)
    entries[entry.name] = (entry, content)


def _entry(target: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(str(PurePosixPath(target)).lstrip("/"))
    entry.type, entry.mode = kind, mode
    return entry


def _regular(target: str, size: int, executable: bool) -> tarfile.TarInfo:
    entry = _entry(target, tarfile.REGTYPE, 0o755 if executable else 0o644)
    entry.size = size
    return entry


def _layer(entries: Iterable[tuple[tarfile.TarInfo, IO[bytes] | None]]) -> Layer:
    """Write entries sorted by name; hard links last, because their targets must come first.

    Byte code is valid for sources of that time, and is made so.
    """
    raw = io.BytesIO()
    ordered = sorted(entries, key=lambda pair: (pair[0].islnk(), pair[0].name))
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in ordered:
            entry.mtime, entry.uname, entry.gname, entry.pax_headers = 0, "", "", {}
            if content is not None and entry.name.endswith(".pyc"):
                content = io.BytesIO(bytecode.timeless(content.read()))
            archive.addfile(entry, content)
    data = raw.getvalue()
    return Layer(_gzip(data), _sha256(data))


def write_image(target: Path, name: str, layers: Sequence[Layer], config: ImageConfig) -> str:
    """Write an OCI layout as a tar for `ctr images import`; returns the manifest's digest.

    `name` is the full reference that pods use in `image:`: docker.io/library/pause:dev for `pause:dev`.
    """
    document = _json(
        {
            "architecture": config.architecture,
            "config": _runtime_config(config),
            "created": _EPOCH,
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in layers]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, document),
            "layers": [_descriptor(_LAYER, layer.blob) for layer in layers],
        }
    )
    annotations = {_NAME: name, "org.opencontainers.image.ref.name": name.rpartition(":")[2]}
    index = _json(
        {
            "schemaVersion": 2,
            "mediaType": _INDEX,
            "manifests": [{**_descriptor(_MANIFEST, manifest), "annotations": annotations}],
        }
    )
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    for blob in (document, manifest, *(layer.blob for layer in layers)):
        files[f"blobs/sha256/{hashlib.sha256(blob).hexdigest()}"] = blob
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as archive:
        for path, content in sorted(files.items()):
            archive.addfile(_regular(path, len(content), False), io.BytesIO(content))
    temporary.replace(target)
    return _sha256(manifest)


def names_in(archive: Path) -> list[str]:
    """The names of the images in a tar, in the OCI or Docker layout."""
    tables = _tables(archive)
    named = [name for name, _ in _manifests(tables)]
    if named:
        return named
    return [str(tag) for image in tables.get("manifest.json", []) for tag in image.get("RepoTags") or []]


def pinned_names_in(archive: Path) -> dict[str, str]:
    """Name → the same image by its digest, as REPOSITORY@sha256:…; nothing for Docker's own tars, which have none."""
    return {name: f"{name.rpartition(':')[0]}@{digest}" for name, digest in _manifests(_tables(archive))}


def _tables(archive: Path) -> dict[str, Any]:
    try:
        with tarfile.open(archive) as opened:
            found = {name: opened.extractfile(name) for name in opened.getnames() if name in _TABLES}
            return {name: json.load(content) for name, content in found.items() if content is not None}
    except (OSError, tarfile.TarError, ValueError) as error:
        raise DevclusterError(f"{archive} is not an image tar: {error}") from None


def _manifests(tables: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, digest) of each image of an OCI layout that has a name."""
    return [
        (str(entry["annotations"][_NAME]), str(entry["digest"]))
        for entry in tables.get("index.json", {}).get("manifests", [])
        if _NAME in entry.get("annotations", {})
    ]


def _runtime_config(config: ImageConfig) -> dict[str, Any]:
    entries: dict[str, Any] = {
        "User": config.user,
        "Env": [f"{key}={value}" for key, value in sorted(config.environment.items())],
        "Entrypoint": list(config.entrypoint),
        "Cmd": list(config.command),
        "WorkingDir": config.working_dir,
        "Labels": dict(config.labels),
    }
    return {key: value for key, value in entries.items() if value}


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _sha256(blob), "size": len(blob)}


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
