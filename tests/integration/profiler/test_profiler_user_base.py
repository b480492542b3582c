"""The agent through PYTHONUSERBASE: it is loaded, and the image's own packages are still found.

The base interpreter runs the programs: a virtual environment has no user base.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from rightpool import contract
from rightpool_profiler.install import install
from tests.integration.profiler.conftest import ROOT, clean_environment
from tests.patience import PATIENCE

SEEN = "import sys; print('rightpool_agent' in sys.modules)"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    install(folder, ROOT / "profiler_sidecar" / "agent")
    return folder


def run(
    shared: Path | None, program: str, *flags: str, python: str | None = None, **environment: str
) -> tuple[int, str, str]:
    if shared is not None:
        environment["PYTHONUSERBASE"] = str(shared / Path(contract.USER_BASE_DIR).name)
        environment[contract.ENV_SHARED_DIR] = str(shared)
    done = subprocess.run(
        [python or sys._base_executable, *flags, "-c", program],  # type: ignore[attr-defined]
        capture_output=True,
        text=True,
        env=clean_environment(**environment),
        cwd="/",
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


def site_packages(base: Path) -> Path:
    folder = base / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    folder.mkdir(parents=True)
    return folder


def test_the_agent_is_loaded(shared: Path) -> None:
    assert run(shared, SEEN) == (0, "True\n", "")
    assert run(None, SEEN) == (0, "False\n", "")


def test_the_images_python_path_is_untouched(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "users_module.py").write_text("value = 7")
    program = "import users_module, sys; print(users_module.value, 'rightpool_agent' in sys.modules)"
    assert run(shared, program, PYTHONPATH=str(tmp_path / "app")) == (0, "7 True\n", "")


def test_packages_of_the_images_user_are_found_in_their_place(shared: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    packages = site_packages(home / ".local")
    (packages / "users_package.py").write_text("value = 8")
    (packages / "extra.pth").write_text(str(tmp_path / "linked") + "\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "linked_module.py").write_text("value = 9")
    program = (
        "import sys, site, users_package, linked_module; print(sys.path, site.USER_BASE, site.getusersitepackages())"
    )
    assert run(shared, program, HOME=str(home)) == run(None, program, HOME=str(home))


def test_a_usercustomize_of_the_users_runs_and_its_errors_show(shared: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    hook = site_packages(home / ".local") / "usercustomize.py"
    hook.write_text("print('mine', __name__)")
    assert run(shared, "pass", HOME=str(home)) == run(None, "pass", HOME=str(home)) == (0, "mine usercustomize\n", "")
    hook.write_text("raise RuntimeError('broken')")
    assert "RuntimeError: broken" in run(shared, "pass", HOME=str(home))[2]


@pytest.mark.parametrize("flag", ["-I", "-S", "-s"])
def test_flags_that_disable_it_are_respected(shared: Path, flag: str) -> None:
    assert run(shared, SEEN, flag) == (0, "False\n", "")


def test_a_virtual_environment_is_unchanged(shared: Path) -> None:
    if sys.prefix == sys.base_prefix:
        pytest.skip("the tests do not run in a virtual environment")
    assert run(shared, SEEN, python=sys.executable) == (0, "False\n", "")


def test_children_get_the_agent_too(shared: Path) -> None:
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SEEN!r}])"
    assert run(shared, program) == (0, "True\n", "")
