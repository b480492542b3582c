"""Put the output of a run of the demo into the tutorial.

Run `make demo V=1 | tee LOG`, then `python -m tools.docs.tutorial LOG`.

A comment `<!-- demo: NAME -->` stands before each block of code that is replaced. Lines are selected, cut at their
first semicolon and folded.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "tutorial.md"

_BLOCK: Final = re.compile(
    r"(?P<head><!-- demo: (?P<name>[\w-]+) -->\n\n```\w+\n(?:\$ [^\n]*\n(?:\.\.\.\n)?)?).*?(?P<tail>^```$)", re.M | re.S
)
_LOGGED: Final = r"runs on|waits|is measured|moves|goes back|the |\$ per"
_ALL_TOLD: Final = re.compile(r"^(\d+) of \1 stories happened.*", re.M)
_LONG: Final = re.compile(r"; .*")
_WIDTH: Final = 118


class Incomplete(Exception):
    """The log does not show a complete run."""


def fill(page: str, log: str) -> str:
    """The page with every marked block replaced from the log."""
    if _ALL_TOLD.search(log) is None:
        raise Incomplete("the log does not end with all stories told")
    return _BLOCK.sub(lambda match: f"{match['head']}{BLOCKS[match['name']](log).rstrip()}\n{match['tail']}", page)


def _story(job: str, before: str = "(?!)") -> Callable[[str], str]:
    """The plain lines about a job: its placement, its moves and their results. What comes after a semicolon is cut."""
    wanted = re.compile(rf"\[ *\d+s\] (?:{job}: (?:{_LOGGED})|{before})")
    return lambda log: _folded([_LONG.sub(" …", line) for line in log.splitlines() if wanted.match(line)], " " * 8)


def _shown(command: str) -> Callable[[str], str]:
    """The output of a command at the end of the run."""

    def output(log: str) -> str:
        after = log.partition(f"\n$ {command}\n")[2]
        lines = re.split(r"^(?:\$ |=== |\d+ of \d+ stories)", after, maxsplit=1, flags=re.M)[0].strip("\n").splitlines()
        if not lines:
            raise Incomplete(f"the log does not show {command}")
        return _folded(lines, " " * 4)

    return output


def _columns(line: str) -> bool:
    return len(re.findall(r" {2,}\S", line.strip())) > 2


def _folded(lines: list[str], indent: str) -> str:
    return "\n".join(part for line in lines for part in _parts(line.rstrip(), indent))


def _parts(line: str, indent: str) -> list[str]:
    if _columns(line):
        return [line]
    return textwrap.wrap(line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


BLOCKS: Final[dict[str, Callable[[str], str]]] = {
    "pools": _shown("rightpool pools"),
    "scaling": _story("scaling", "ablation: (?:runs on|waits)"),
    "resnet50": _story("resnet50"),
    "language-model": _story("language-model"),
    "bert": _story("bert", r"bert: (?:a JobSet|\$ (?:kubectl (?:label|delete)|rightpool))"),
    "ranker": _story("ranker", r"ranker: (?:\d|it may)"),
    "rollback": _story("rollback", "the A10G pool"),
    "fleet": _story("(?:urgent|ranking|vision)", "fleet:"),
}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tools.docs.tutorial LOG", file=sys.stderr)
        return 2
    try:
        page = fill(PAGE.read_text(encoding="utf-8"), Path(arguments[0]).read_text(encoding="utf-8"))
    except Incomplete as error:
        print(f"tools.docs.tutorial: {error}", file=sys.stderr)
        return 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
