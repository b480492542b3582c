"""Reads kubeconfig files for their contexts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from rightpool.api.value_object import value_object
from rightpool.cluster.official_client import kubernetes_config


@value_object
class Program:
    """A program that gives out credentials."""

    command: str
    """As the kubeconfig has it."""
    hint: str
    """How to install it, in words of the kubeconfig; empty where it has none."""
    path: str | None
    """The PATH that the kubeconfig runs it with; None for that of this process."""

    @property
    def missing(self) -> bool:
        """Whether it is not on the path. One that is named by a relative path counts as there: it is relative to its
        kubeconfig."""
        named = os.sep in self.command and not Path(self.command).is_absolute()
        return not named and shutil.which(self.command, path=self.path) is None


@value_object
class Kubeconfig:
    """One or more files, merged: of two entries with the same name the first has precedence."""

    files: tuple[Path, ...]
    """Those that exist, in the order of precedence."""
    namespaces: Mapping[str, str]
    """The namespace of each context by its name; empty if it has none."""
    current: str | None
    """The current context of the first file that has one, as for kubectl; the client library takes the last one's."""
    programs: Mapping[str, Program]
    """What the user of a context gets credentials from, by the name of the context; only of those that have one."""

    @property
    def path(self) -> str:
        """The files in the format of $KUBECONFIG."""
        return os.pathsep.join(str(file) for file in self.files)


def read_kubeconfig(files: Sequence[Path]) -> Kubeconfig:
    """Read the files. Raises ValueError if they can't be read."""
    namespaces: dict[str, str] = {}
    programs: dict[str, Program] = {}
    try:
        merger = kubernetes_config.kube_config.KubeConfigMerger(os.pathsep.join(str(file) for file in files))
        users = {node.value["name"]: node.value.get("user") or {} for node in merger.config.value.get("users") or ()}
        for node in merger.config.value["contexts"]:
            name, context = str(node.value["name"]), node.value.get("context") or {}
            namespaces[name] = str(context.get("namespace") or "")
            user = users.get(context.get("user")) or {}
            asked = None if user.get("token") or user.get("tokenFile") else user.get("exec")
            if asked and asked.get("command"):
                path = next((str(one["value"]) for one in asked.get("env") or () if one["name"] == "PATH"), None)
                programs[name] = Program(str(asked["command"]), str(asked.get("installHint") or "").strip(), path)
        contexts = [merger.config_files[path].get("current-context") for path in merger.paths]
    except (AttributeError, KeyError, TypeError) as error:  # it takes any YAML for one, and says what Python says
        raise ValueError(f"{os.pathsep.join(map(str, files))} is not a kubeconfig: it has other fields") from error
    except Exception as error:  # the library does not document its exceptions for invalid files
        raise ValueError(f"{os.pathsep.join(map(str, files))} is not a kubeconfig: {error}") from error
    return Kubeconfig(tuple(files), namespaces, next((str(name) for name in contexts if name), None), programs)
