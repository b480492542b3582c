"""Flags of XLA with which JAX programs of tests start sooner: most of their time is the compiler's."""

from __future__ import annotations

from typing import Final

ANY_VERSION: Final = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
"""How fast the code of a program is does not matter for a few steps."""

QUICKLY_COMPILED: Final = f"{ANY_VERSION} --xla_cpu_use_fusion_emitters=false"
"""For the locked version: another one may end at a flag that it does not know. MLIR would take half of the rest."""
