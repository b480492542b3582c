"""The official client without what it loads and no request here needs: half of the time in which a command starts.

`import kubernetes` loads a client with models of its own, informers, and a library for OpenID Connect with another HTTP
client. The first ones are loaded on first use; the library when a kubeconfig's user has to refresh an OpenID token.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType
from typing import Any, Final

_ON_USE: Final = frozenset(
    f"kubernetes.{name}" for name in ("dynamic", "informer", "leaderelection", "stream", "watch")
) | {"oauthlib.oauth2"}
_OPENID: Final = "requests_oauthlib"


class _OnUse(MetaPathFinder):
    """Finds the modules that are loaded at the first look at one of their names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _ON_USE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, Loader):
            spec.loader = LazyLoader(spec.loader)
        return spec


def _openid_session(*arguments: Any, **options: Any) -> Any:
    """In place of the class, which the client calls and nothing more."""
    return import_module(_OPENID).OAuth2Session(*arguments, **options)


def _load() -> tuple[ModuleType, ModuleType]:
    finder, known = _OnUse(), _OPENID in sys.modules
    sys.meta_path.insert(0, finder)
    if not known:
        stand_in: Any = ModuleType(_OPENID)
        stand_in.OAuth2Session = _openid_session
        sys.modules[_OPENID] = stand_in
    try:
        from kubernetes import client, config
    finally:
        sys.meta_path.remove(finder)
        if not known:
            del sys.modules[_OPENID]
    return client, config


kubernetes_client, kubernetes_config = _load()
