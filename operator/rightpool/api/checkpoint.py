"""How a program saves its state before it is moved: spec.checkpoint."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from rightpool.api.choices import CheckpointMode, CheckpointSignal
from rightpool.api.model import ATOMIC, ApiModel
from rightpool.api.quantities import Duration, a_second_or_more
from rightpool.api.rules import Rule, validations

MAX_FILE_PATTERNS: Final = 16
MAX_FILE_PATTERN: Final = 256  # characters

FilePattern = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_FILE_PATTERN,
        json_schema_extra=validations(
            Rule(
                "!self.startsWith('/') && !self.matches(r'(^|/)\\.\\.(/|$)')",
                "must be relative to path and stay below it: write checkpoint-*, without a leading / and without ..",
            ),
            Rule(
                "!self.matches(r'[\\x00-\\x1f\\x7f\\\\\\[\\]{}$]')",
                "must have no wildcards but *, ? and **, and none of \\ [ ] { } $: write * for any text",
            ),
        ),
    ),
]


class Checkpoint(ApiModel):
    """How the program saves its state before it is moved."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.files) || size(self.files) == 0 || has(self.path)",
                "needs checkpoint.path, to which the patterns are relative: add it, or remove files",
                field=".files",
            )
        )
    )

    mode: CheckpointMode = CheckpointMode.SIGNAL
    """Signal: the signal is raised in the program, which saves and goes on. Periodic: nothing is asked, the program's
    next save is awaited. None: the program cannot save, so it is never moved while it runs."""

    signal: CheckpointSignal = CheckpointSignal.SIGUSR1
    """The signal raised in mode Signal. The program must have a handler for it."""

    timeout: Annotated[Duration, a_second_or_more("120s", longest="6h")] = Field(default="120s", validate_default=True)
    """How long a save is awaited, 6h at most. Without one the job is not moved and runs on. For Periodic it should be
    longer than the program's own interval between saves."""

    path: str | None = Field(
        default=None,
        max_length=1024,
        json_schema_extra=validations(
            Rule("self.startsWith('/')", "must be an absolute path in the chip container: write /ckpt")
        ),
    )
    """Directory in the chip container that holds the checkpoints. A newer file there that `files` name is the proof of
    a save. Without it, only saves that the profiler sees in the program count."""

    files: tuple[FilePattern, ...] = Field(default=(), max_length=MAX_FILE_PATTERNS, json_schema_extra=ATOMIC)
    """Which files prove a save: patterns relative to `path`, such as `step_*/model.pt`, `**/*.state`, or `*/DONE` where
    the program writes a marker last. `*` and `?` stay within a name, `**` is any number of directories; of a directory,
    all that is in it counts. Default: the names that PyTorch, Lightning, Accelerate, Hugging Face, DeepSpeed, Megatron,
    safetensors, orbax, Flax and Keras write."""
