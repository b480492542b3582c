"""What the commands of the README install has all that the command line's pictures and page need."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def locked(lock: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text(), re.MULTILINE))


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("hack/requirements.lock", ("ui", "plot")), ("operator/requirements.lock", ("operator",))],
)
def test_a_lock_has_what_its_extras_name(lock: str, extras: tuple[str, ...]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]
    names = {re.split(r"[\[<>=~! ]", one)[0].lower().replace("_", "-") for one in wanted}
    assert names and names <= locked(lock)


def test_make_demo_installs_what_pictures_need() -> None:
    made = (ROOT / "Makefile").read_text()
    assert re.search(r"setup-venv .* operator/requirements\.lock hack/requirements\.lock$", made, re.MULTILINE)
    assert re.search(r"^demo:.*\$\(VENV\)/\.runtime", made, re.MULTILINE)
