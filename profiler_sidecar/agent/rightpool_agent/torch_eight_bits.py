"""Whether a PyTorch program multiplies in eight bits, which none of its dtypes shows.

torchao and Transformer Engine do so in modules of their own, or with weights of their own kind, and programs by layers
that are named after it. A library that is merely imported, as torchao's float8 is by its quantization, says nothing:
there has to be a module of such a class. Modules are searched for at the first step of each optimizer, in the
program's own thread, and only where there is such a class at all.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable
from typing import Any

from . import torch_roots

_WORDS = ("torchao.", "transformer_engine.", "float8", "fp8")
_MAX_SEARCHES = 8

_searches = 0
_possible = False  # is there such a module, or can't that be told?


def look() -> None:
    """Called at the first step of an optimizer, when its model is what it will be."""
    global _searches, _possible
    if _possible or not any(_is_of_eight_bits(kind) for kind in _kinds()):
        return
    _searches += 1
    if _searches > _MAX_SEARCHES or gc.get_freeze_count():  # what the program has frozen isn't found
        _possible = True
        return
    _possible = any(_is_of_eight_bits(kind) for kind in {type(one) for one in torch_roots.all_modules()})


def possible(parameters: Iterable[Any]) -> bool:
    """Whether a module of the program's, or one of these parameters, may be of eight bits."""
    return _possible or any(_is_of_eight_bits(kind) for kind in {type(_local(one)) for one in parameters})


def forget() -> None:
    """In a forked child, and in tests."""
    global _searches, _possible
    _searches, _possible = 0, False


def _is_of_eight_bits(kind: type) -> bool:
    """Its bases count: FSDP 2 derives a class from that of each module that it is given, and Megatron its layers."""
    names = (f"{base.__module__}.{base.__qualname__}".lower() for base in kind.__mro__)
    return any(word in name for name in names for word in _WORDS)


def _kinds() -> set[type]:
    """All classes of modules that there are."""
    left: list[type] = [sys.modules["torch.nn.modules.module"].Module]
    found: set[type] = set()
    while left:
        kind = left.pop()
        if kind not in found:
            found.add(kind)
            left += type.__subclasses__(kind)
    return found


def _local(parameter: Any) -> Any:
    """What this process holds of a parameter, which may be a DTensor."""
    return getattr(parameter, "_local_tensor", parameter)
