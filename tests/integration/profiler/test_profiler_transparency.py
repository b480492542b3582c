"""The user's program cannot notice the agent: same output, same errors, same exit code.

Each case runs a real program twice, bare and with the agent, and compares all that can be seen from outside. What is
broken on purpose is in test_profiler_broken.py.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.profiler.comparison import STEPS, same
from tests.integration.profiler.conftest import Pod, clean_environment

pytestmark = pytest.mark.jax


@pytest.mark.parametrize("seconds", [0.2, 0.31, 0.6])
def test_an_exit_in_the_middle_of_a_trace(make_pod: Callable[..., Pod], seconds: float) -> None:
    pod = make_pod()
    pod.trace_all_the_time()
    program = STEPS.replace("range(25)", "range(10**6)").replace(
        "    time.sleep(0.01)", f"    if i == 1: t = time.time()\n    if i and time.time() - t > {seconds}: break"
    )
    assert same(pod, "-c", program.replace("print(float(p))", "print('done')"))[:2] == (0, "done\n")


@pytest.mark.parametrize("flag", ["-I", "-S", "-E"])
def test_interpreters_that_ignore_the_agent(make_pod: Callable[..., Pod], flag: str) -> None:
    program = "import sys; print([p for p in sys.path if 'rightpool' in p], sys.flags)"
    out = same(make_pod(), flag, "-c", program)[1] if flag != "-S" else "[] "
    assert out.startswith("[] ")


def test_the_agent_leaves_nothing_visible(make_pod: Callable[..., Pod]) -> None:
    """Path, threads, signal handlers and the shadowed module are as without the agent."""
    program = STEPS + (
        "import sys, threading, signal\n"
        "print(sys.path, [t.name for t in threading.enumerate()], threading.active_count())\n"
        "print([s for s in sorted(signal.valid_signals()) if signal.getsignal(s) not in (0, 1)])\n"
        "print('pynvml' in sys.modules, 'sitecustomize' in sys.modules)\n"
        "import sitecustomize\n"
    )
    # Some PYTHONPATH in both runs: without one, the working directory's entry in sys.path is computed differently.
    code, _, err = same(make_pod(), "-c", program, path="/nonexistent")
    # Debian's own Python has such a module.
    assert code == 0 or (code == 1 and "ModuleNotFoundError: No module named 'sitecustomize'" in err)


def test_a_sitecustomize_of_the_users_own(make_pod: Callable[..., Pod], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.flavour = 'mine'\nprint('mine', __name__, __file__)\n")
    code, out, _ = same(make_pod(), "-c", "import sys, sitecustomize; print(sys.flavour)", path=str(tmp_path))
    assert (code, out.splitlines()[-1]) == (0, "mine")


def test_a_sitecustomize_that_fails(make_pod: Callable[..., Pod], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine is broken')\n")
    _, out, err = same(make_pod(), "-c", "print('goes on')", path=str(tmp_path))
    assert out == "goes on\n" and "mine is broken" in err


@pytest.mark.parametrize(
    "ending",
    [
        "import sys; sys.exit(3)",
        "import sys; sys.exit('in words')",
        "raise ValueError('uncaught')",
        "import os; os._exit(5)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "import os; os.abort()",
        "raise KeyboardInterrupt",
        "import os, signal\nsignal.signal(signal.SIGTERM, lambda *_: exit(4))\nos.kill(os.getpid(), signal.SIGTERM)",
        "import threading; threading.Thread(target=lambda: (time.sleep(0.5), print('late'))).start()",
        "import atexit; atexit.register(print, 'at exit')",
        "import atexit; atexit.register(lambda: (time.sleep(0.5), print(float(step(p, p)))))",
    ],
)
def test_every_way_to_end(make_pod: Callable[..., Pod], ending: str) -> None:
    same(make_pod(), "-c", STEPS + ending)


@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize(
    "body", ["raise RuntimeError('no driver')", "import missing_dependency", "def (", "import sys; sys.exit(4)"]
)
def test_a_framework_whose_import_fails(make_pod: Callable[..., Pod], tmp_path: Path, name: str, body: str) -> None:
    """The traceback has no frame of the agent."""
    (tmp_path / f"{name}.py").write_text(body + "\n")
    code, _, err = same(make_pod(), "-c", f"import {name}", path=str(tmp_path))
    assert code != 0 and "rightpool" not in err


def test_a_framework_that_is_not_there(make_pod: Callable[..., Pod]) -> None:
    program = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\nimport torch"
    assert "No module named 'torch'" in same(make_pod(), "-c", program)[2]


def test_an_error_inside_a_step(make_pod: Callable[..., Pod]) -> None:
    program = (
        "import jax, jax.numpy as jnp\nfrom jax.experimental import io_callback\n"
        "jax.config.update('jax_traceback_filtering', 'off')\njax.config.update('jax_debug_nans', True)\n"
        "f = jax.jit(lambda x: jnp.log(x))\n"
        "for x in (1.0, 2.0, 3.0): print(f(x))\n"
        "try: f(-1.0)\nexcept FloatingPointError as e: import traceback; traceback.print_exc()\n"
        "jax.jit(lambda x: x.no_such_thing)(1.0)\n"
    )
    _, _, err = same(make_pod(), "-c", program)
    assert "no_such_thing" in err and "nan" in err


def test_a_program_that_steps_in_several_threads(make_pod: Callable[..., Pod]) -> None:
    program = STEPS + (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def loop(n):\n    q = p\n    for _ in range(300): q = step(q, jnp.ones((4,)))\n    return float(q) + n\n"
        "with ThreadPoolExecutor(4) as pool: print(list(pool.map(loop, range(4))))\n"
    )
    assert same(make_pod(), "-c", program)[0] == 0


def test_a_program_that_forks(make_pod: Callable[..., Pod]) -> None:
    program = (
        "import warnings; warnings.simplefilter('ignore')\n" + STEPS + "import os, sys\n"
        "sys.stdout.flush()\npid = os.fork()\n"
        "if pid == 0: print('child'); sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert same(make_pod(), "-c", program)[0] == 0


def test_a_program_that_spawns(make_pod: Callable[..., Pod], tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import multiprocessing, jax, jax.numpy as jnp\n"
        "def work(n):\n    f = jax.jit(lambda x: x + 1)\n    for _ in range(5): n = f(n)\n    return float(n)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool: print(pool.map(work, [1., 2.]))\n"
    )
    assert same(make_pod(), str(script))[1] == "[6.0, 7.0]\n"


def test_without_the_operators_environment_there_is_no_agent(make_pod: Callable[..., Pod]) -> None:
    agent = str(make_pod().shared / "agent")
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print([f for f in sys.meta_path if 'Finder' in type(f).__name__])"],
        env=clean_environment(PYTHONPATH=agent),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "rightpool" not in done.stdout


_ASKS = """
import importlib.machinery, importlib.util, sys
asked = importlib.util.find_spec({name!r})
print(asked.name, asked.origin == importlib.util.find_spec({name!r}).origin)
print(isinstance(asked.loader, importlib.machinery.SourceFileLoader), {name!r} in sys.modules)
{then}
import {name}
print({name}.__spec__.loader is {name}.__loader__, type({name}.__loader__).__name__, type({name}.__spec__.loader))
"""


@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize(
    "then",
    [
        "",
        "importlib.util.find_spec({name!r})",
        "import {name}.nested",
        "import {name}; importlib.reload({name})",
        "try: import {name}.missing\nexcept ImportError as e: print(e)",
    ],
    ids=["asks", "asks twice", "submodule first", "reloads", "fails first"],
)
def test_who_asks_before_the_import_does_not_blind_the_agent(
    make_pod: Callable[..., Pod], tmp_path: Path, name: str, then: str
) -> None:
    """As transformers, Accelerate and Lightning do. A stand-in for the framework says whether its hooks were set."""
    (tmp_path / name / "nested").mkdir(parents=True)
    (tmp_path / name / "__init__.py").write_text("")
    (tmp_path / name / "nested" / "__init__.py").write_text("")
    pod = make_pod()
    pod.alter("imports.py", {"    name, function = _TARGETS[module.__name__]\n": _NOTES})
    program = "import os\n" + _ASKS.format(name=name, then=then.format(name=name)).replace("{name!r}", repr(name))
    code, _, err = same(pod, "-c", program, path=str(tmp_path))
    assert (code, err) == (0, "")
    assert (pod.shared / "installed").read_text().split()[:1] == [name]


_NOTES = """    with open(__file__.rpartition('/agent/')[0] + '/installed', 'a') as file:
        file.write(module.__name__ + ' ')
    name, function = _TARGETS[module.__name__]
"""
