"""Keeps PyTorch's C++ log quiet while its profiler records memory.

While it does, PyTorch warns on the program's stderr of memory that is freed and was there before. Nothing turns off
this warning alone, so that the level of the log is raised from warnings to errors. Python's warnings, and what PyTorch
turns into them, are no part of this log.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

_LEVEL = "FLAGS_caffe2_log_level"
_OWN_LOGGER = "_ZN3c1013MessageLoggerD1Ev"  # absent where PyTorch is built with glog, whose level is another one
_WARNING = 1
_ERROR = 2

_level: Any = None  # while it is raised


def silence() -> bool:
    """Whether nothing is said of memory from now on, until `restore`."""
    global _level
    try:
        library = ctypes.CDLL(_path(), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        level = ctypes.c_int.in_dll(library, _LEVEL)
        if not hasattr(library, _OWN_LOGGER) or level.value < _WARNING:
            return False  # a program that asks for more than warnings gets all of it
    except (OSError, ValueError, AttributeError, TypeError):
        return False  # this build of PyTorch has it elsewhere
    if level.value == _WARNING:
        level.value, _level = _ERROR, level
    return True


def restore() -> None:
    """As it was, unless the program has set it meanwhile."""
    global _level
    level, _level = _level, None
    if level is not None and level.value == _ERROR:
        level.value = _WARNING


def _path() -> str:
    return os.path.join(os.path.dirname(sys.modules["torch"].__file__ or ""), "lib", "libc10.so")
