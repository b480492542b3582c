"""Stages of a pipeline: the samples that a step consumes go through all of them, and the first one counts them."""

from __future__ import annotations

import sys
from typing import Any

from .methods import call_after

_has_first: bool | None = None  # of the stages here; None while there is none


def install(module: Any) -> None:
    """`module` is torch.distributed.pipelining.stage."""
    call_after(module._PipelineStageBase, "__init__", _meet)


def _meet(stage: Any, _: Any) -> None:
    global _has_first
    _has_first = bool(_has_first) or stage.stage_index == 0


def takes_over() -> bool:
    """Whether this process gets from another one what it computes with."""
    megatron: Any = sys.modules.get("megatron.core.parallel_state")
    try:
        if megatron is not None and megatron.get_pipeline_model_parallel_rank() > 0:
            return True
    except Exception:
        pass  # its groups are not there yet
    return _has_first is False
