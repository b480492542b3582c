"""Acts right after the program itself has imported torch or jax.

A finder at the front of `sys.meta_path` wraps the loader of exactly these modules. Polling `sys.modules` from a thread
would see half-imported modules, and importing anything of theirs from a thread breaks the program's own import.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself would cost every Python of the container 9 ms
    from typing import Any

_TARGETS = {"torch", "jax"}


def _install(name: str) -> None:
    if name == "torch":
        from . import torch_steps

        torch_steps.install()
    else:
        from . import jax_steps

        jax_steps.install()


class _Loader:
    """Stands in for the framework's loader during its import, and puts the original back."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def create_module(self, spec: Any) -> Any:
        return self._original.create_module(spec)

    def exec_module(self, module: Any) -> None:
        spec = module.__spec__
        spec.loader = module.__loader__ = self._original
        self._original.exec_module(module)
        try:
            _install(spec.name)
        except Exception:
            pass


# A traceback of an import shows no frames of the import system. These two belong to it.
for _method in (_Loader.create_module, _Loader.exec_module):
    _method.__code__ = _method.__code__.replace(co_filename="<frozen importlib._bootstrap>")


class _Finder:
    def __init__(self) -> None:
        self._waiting = set(_TARGETS)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._waiting:
            return None
        try:
            self._waiting.discard(name)
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec: Any = finder.find_spec(name, path, target)
                if spec is not None:
                    if hasattr(spec.loader, "exec_module"):
                        spec.loader = _Loader(spec.loader)
                    return spec
        except Exception:
            pass
        return None


def watch() -> None:
    """Put the finder in front."""
    sys.meta_path.insert(0, _Finder())
