"""Calls hooks right after the program has imported a module that has some, however often and after whatever questions.

A finder at the front of `sys.meta_path` wraps the loader of exactly these modules each time it is asked: the one who
asks may only want to know whether the module exists. Polling `sys.modules` from a thread would see half-imported
modules, and importing anything of theirs from a thread breaks the program's own import.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` would cost each Python process of the container 9 ms
    from typing import Any

# module → (module of the agent, function to call with the module)
_TARGETS = {
    "torch": ("torch_steps", "install"),
    "torch._dynamo.eval_frame": ("torch_roots", "install_compiled"),
    "torch.distributed.pipelining.stage": ("torch_pipeline", "install"),
    "torch._dynamo.callback": ("compiling", "install_torch"),
    "jax": ("jax_steps", "install"),
    "jax.monitoring": ("compiling", "install_jax"),
    "safetensors.torch": ("saves", "install_safetensors"),
    "safetensors.numpy": ("saves", "install_safetensors"),
    "safetensors.flax": ("saves", "install_safetensors"),
    "orbax.checkpoint": ("saves", "install_orbax"),
    "orbax.checkpoint.experimental.v1": ("saves", "install_orbax_v1"),
}


def _install(module: Any) -> None:
    """Set the hooks of a module that has just been executed; those that are set already stay."""
    name, function = _TARGETS[module.__name__]
    package = __import__(f"{__package__}.{name}", fromlist=[name])
    getattr(package, function)(module)


class _Loader:
    """Stands for the framework's loader until the module has been executed."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._original)

    def create_module(self, spec: Any) -> Any:
        return self._original.create_module(spec)

    def exec_module(self, module: Any) -> None:
        spec = module.__spec__
        if spec.loader is self:
            spec.loader = self._original
        if module.__loader__ is self:
            module.__loader__ = self._original
        self._original.exec_module(module)
        try:
            _install(module)
        except Exception:
            pass


# A traceback of an import shows no frames of the import system. These two belong to it.
for _method in (_Loader.create_module, _Loader.exec_module):
    _method.__code__ = _method.__code__.replace(co_filename="<frozen importlib._bootstrap>")


class _Finder:
    """Finds what the others find."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _TARGETS:
            return None
        try:
            for finder in list(sys.meta_path):
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
    """Put the finder in front. What a `.pth` file has imported before is met at once."""
    sys.meta_path.insert(0, _Finder())
    for name in _TARGETS:
        module = sys.modules.get(name)
        if module is not None:
            try:
                _install(module)
            except Exception:
                pass
