"""Reads kubeconfig files for their contexts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rightpool.cluster.official_client import kubernetes_config


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """One or more files, merged: of two entries with the same name the first has precedence."""

    files: tuple[Path, ...]
    """Those that exist, in the order of precedence."""
    namespaces: Mapping[str, str]
    """The namespace of each context by its name; empty if it has none."""
    current: str | None
    """The current context of the first file that has one, as for kubectl; the client library takes the last one's."""

    @property
    def path(self) -> str:
        """The files in the format of $KUBECONFIG."""
        return os.pathsep.join(str(file) for file in self.files)


def read_kubeconfig(files: Sequence[Path]) -> Kubeconfig:
    """Read the files. Raises ValueError if they can't be read."""
    namespaces: dict[str, str] = {}
    try:
        merger = kubernetes_config.kube_config.KubeConfigMerger(os.pathsep.join(str(file) for file in files))
        for node in merger.config.value["contexts"]:
            namespaces[str(node.value["name"])] = str((node.value.get("context") or {}).get("namespace") or "")
        contexts = [merger.config_files[path].get("current-context") for path in merger.paths]
    except Exception as error:  # the library does not document its exceptions for invalid files
        raise ValueError(f"{os.pathsep.join(map(str, files))} is not a kubeconfig: {error}") from error
    return Kubeconfig(tuple(files), namespaces, next((str(name) for name in contexts if name), None))
