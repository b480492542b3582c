"""The file that a picture goes to."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import Final

from rightpool.cli.connection import CliError

FORMS: Final = ("svg", "png")


def plot_file(text: str) -> Path:
    """The path that an option names. Raises ArgumentTypeError where its ending is no known one."""
    path = Path(text)
    if path.suffix.lower().removeprefix(".") not in FORMS:
        raise argparse.ArgumentTypeError(f"{text}: the name must end in .svg or .png")
    return path


def require_library() -> None:
    """Raise CliError where pictures can't be drawn."""
    if importlib.util.find_spec("matplotlib") is None:
        raise CliError(
            "matplotlib is not installed, which --plot needs: pip install 'rightpool[plot]', or '.[operator,plot]' in "
            "a checkout"
        )


def form_of(path: Path) -> str:
    """svg or png."""
    return path.suffix.lower().removeprefix(".")


def save_plot(content: bytes, path: Path) -> None:
    """Raises CliError where the file can't be written; then what was there is as it was."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise CliError(f"--plot: {path} can't be written: {error.strerror or error}") from error
