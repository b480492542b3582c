"""Commands on the pages exist."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from rightpool.cli.commands import COMMANDS

from .pages import ROOT, WRITTEN

PAGES = sorted([*WRITTEN, *ROOT.glob("*.md"), ROOT / "charts/rightpool/README.md", ROOT / "hack/devcluster/README.md"])
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))


def typed(path: Path) -> str:
    """Code in blocks and in lines."""
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, flags=re.M | re.S)
    outside = re.sub(r"^```\w*\n.*?^```$", "", text, flags=re.M | re.S)
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", outside)])


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_is_there(path: Path) -> None:
    code = typed(path)
    targets = set(re.findall(r"^(?:[\w=]+ |\$ |sudo |eval \"\$\()*make ([a-z-]+)", code, flags=re.M))
    assert targets <= TARGETS, targets - TARGETS
    modules = set(re.findall(r"python3? -m ([a-z_.]+[a-z_])", code))
    assert [name for name in modules if not _runs(name)] == []
    commands = set(re.findall(r"^(?:\$ )?(?:kubectl )?rightpool ([a-z]+)", code, flags=re.M))
    assert commands <= COMMANDS.keys(), commands - COMMANDS.keys()
    scripts = set(re.findall(r"\bhack/[a-z-]+(?=[\s`]|$)", code))
    assert [name for name in scripts if not (ROOT / name).exists()] == []


def _runs(name: str) -> bool:
    """Whether `python -m` can run it: a module, or a package with a __main__."""
    spec = find_spec(name)
    return spec is not None and (spec.submodule_search_locations is None or find_spec(f"{name}.__main__") is not None)


def test_the_pages_do_name_commands() -> None:
    assert sum("make " in typed(path) for path in PAGES) > 5
