"""The user's program cannot notice the agent: same output, same errors, same exit code, whatever is broken.

Each case runs a real program twice, bare and with the agent, and compares all that can be seen from outside.
"""

import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import ROOT, clean_environment

pytest.importorskip("jax")
pytestmark = pytest.mark.jax

STEPS = """
import jax, jax.numpy as jnp, time
step = jax.jit(lambda p, x: p + x.sum())
p = jnp.zeros(())
for i in range(25):
    p = step(p, jnp.ones((4,)))
    time.sleep(0.05)
print(float(p))
"""

Outcome = tuple[int, str, str]


@functools.cache
def _bare(arguments: tuple[str, ...], path: str) -> Outcome:
    environment = clean_environment(**({"PYTHONPATH": path} if path else {}))
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd="/", timeout=300
    )
    return done.returncode, done.stdout, done.stderr


def _same(pod: Any, *arguments: str, path: str = "", **environment: str) -> Outcome:
    program = pod.start(*arguments, **({"PYTHONPATH": path} if path else {}), **environment)
    out, err = program.communicate(timeout=300)
    outcome = (program.returncode, out, err)
    assert outcome == _bare(arguments, path)
    return outcome


def _break_shared_missing(pod: Any) -> dict[str, str]:
    return {contract.ENV_SHARED_DIR: "/nonexistent/rightpool"}


def _break_shared_is_file(pod: Any) -> dict[str, str]:
    (pod.shared / "file").write_text("")
    return {contract.ENV_SHARED_DIR: str(pod.shared / "file")}


def _break_socket_is_file(pod: Any) -> dict[str, str]:
    (pod.shared / "profiler.sock").write_text("not a socket")
    return {}


def _break_command(content: bytes) -> Callable[[Any], dict[str, str]]:
    def apply(pod: Any) -> dict[str, str]:
        (pod.shared / "commands" / "checkpoint.json").write_bytes(content)
        return {}

    return apply


def _break_command_is_directory(pod: Any) -> dict[str, str]:
    (pod.shared / "commands" / "checkpoint.json").mkdir()
    return {}


def _break_checkpoint_path(pod: Any) -> dict[str, str]:
    return {contract.ENV_CHECKPOINT_PATH: "/proc"}


BREAKAGES: dict[str, Callable[[Any], dict[str, str]]] = {
    "no sidecar": lambda pod: {},
    "no shared directory": _break_shared_missing,
    "a file for a directory": _break_shared_is_file,
    "a file for a socket": _break_socket_is_file,
    "empty command": _break_command(b""),
    "binary command": _break_command(bytes(range(256))),
    "nested command": _break_command(b"[" * 4000),
    "wrong types": _break_command(b'{"id": [1], "signal": 9, "at": "now"}'),
    "a signal that kills": _break_command(b'{"id": "x", "signal": "SIGKILL", "at": 9e9}'),
    "not a signal": _break_command(b'{"id": "x", "signal": "raise_signal", "at": 9e9}'),
    "infinite time": _break_command(b'{"id": "x", "signal": "SIGUSR1", "at": Infinity}'),
    "a directory for a command": _break_command_is_directory,
    "an endless checkpoint directory": _break_checkpoint_path,
}


@pytest.mark.parametrize("breakage", list(BREAKAGES))
def test_whatever_the_shared_directory_is_like(make_pod: Callable[..., Any], breakage: str) -> None:
    pod = make_pod()
    assert _same(pod, "-c", STEPS, **BREAKAGES[breakage](pod))[0] == 0


MODULES = sorted(path.name for path in (ROOT / "profiler_sidecar/agent/rightpool_agent").glob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_whatever_module_of_the_agent_is_broken(make_pod: Callable[..., Any], module: str) -> None:
    pod = make_pod()
    (pod.shared / "agent" / "rightpool_agent" / module).write_text("raise RuntimeError('broken')\n")
    assert _same(pod, "-c", STEPS)[0] == 0


def test_an_agent_that_is_half_installed(make_pod: Callable[..., Any]) -> None:
    pod = make_pod()
    for module in (pod.shared / "agent" / "rightpool_agent").glob("*.py"):
        module.write_text("def (")
    assert _same(pod, "-c", STEPS)[0] == 0


def test_a_full_disk(make_pod: Callable[..., Any], tmp_path: Path) -> None:
    pod = make_pod()
    traces = pod.shared / "traces"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(traces)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting needs privileges")
    try:
        _eager(pod)
        assert _same(pod, "-c", STEPS)[0] == 0
    finally:
        subprocess.run(["umount", str(traces)], check=True)


def _eager(pod: Any) -> None:
    """Let the agent trace all the time from the start."""
    module = pod.shared / "agent" / "rightpool_agent" / "trace_schedule.py"
    text = (
        module.read_text()
        .replace("_WARM_UP_SECONDS = 5.0", "_WARM_UP_SECONDS = 0.0")
        .replace("_EVERY = 120.0", "_EVERY = 0.0")
    )
    assert "_EVERY = 0.0" in text
    module.write_text(text)


@pytest.mark.parametrize("seconds", [1.55, 2.0, 2.12, 2.2, 2.35])
def test_an_exit_in_the_middle_of_a_trace(make_pod: Callable[..., Any], seconds: float) -> None:
    pod = make_pod()
    _eager(pod)
    program = STEPS.replace("range(25)", "range(10**6)").replace(
        "    time.sleep(0.05)", f"    if i == 1: t = time.time()\n    if i and time.time() - t > {seconds}: break"
    )
    assert _same(pod, "-c", program.replace("print(float(p))", "print('done')"))[:2] == (0, "done\n")


@pytest.mark.parametrize("flag", ["-I", "-S", "-E"])
def test_interpreters_that_ignore_the_agent(make_pod: Callable[..., Any], flag: str) -> None:
    program = "import sys; print([p for p in sys.path if 'rightpool' in p], sys.flags)"
    out = _same(make_pod(), flag, "-c", program)[1] if flag != "-S" else "[] "
    assert out.startswith("[] ")


def test_nothing_is_left_to_see(make_pod: Callable[..., Any]) -> None:
    """Path, threads, signal handlers and the shadowed module are what they would be."""
    program = STEPS + (
        "import sys, threading, signal\n"
        "print(sys.path, [t.name for t in threading.enumerate()], threading.active_count())\n"
        "print([s for s in sorted(signal.valid_signals()) if signal.getsignal(s) not in (0, 1)])\n"
        "print('pynvml' in sys.modules, 'sitecustomize' in sys.modules)\n"
        "import sitecustomize\n"
    )
    # Some PYTHONPATH in both runs: without one, the working directory's entry in sys.path is computed differently.
    code, _, err = _same(make_pod(), "-c", program, path="/nonexistent")
    assert code == 1 and "ModuleNotFoundError: No module named 'sitecustomize'" in err


def test_a_sitecustomize_of_the_users_own(make_pod: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.flavour = 'mine'\nprint('mine', __name__, __file__)\n")
    code, out, _ = _same(make_pod(), "-c", "import sys, sitecustomize; print(sys.flavour)", path=str(tmp_path))
    assert (code, out.splitlines()[-1]) == (0, "mine")


def test_a_sitecustomize_that_fails(make_pod: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('mine is broken')\n")
    _, out, err = _same(make_pod(), "-c", "print('goes on')", path=str(tmp_path))
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
        "import threading; threading.Thread(target=lambda: (time.sleep(0.5), print('late'))).start()",
        "import atexit; atexit.register(print, 'at exit')",
    ],
)
def test_every_way_to_end(make_pod: Callable[..., Any], ending: str) -> None:
    _same(make_pod(), "-c", STEPS + ending)


@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize(
    "body", ["raise RuntimeError('no driver')", "import missing_dependency", "def (", "import sys; sys.exit(4)"]
)
def test_a_framework_whose_import_fails(make_pod: Callable[..., Any], tmp_path: Path, name: str, body: str) -> None:
    """The traceback has no frame of the agent."""
    (tmp_path / f"{name}.py").write_text(body + "\n")
    code, _, err = _same(make_pod(), "-c", f"import {name}", path=str(tmp_path))
    assert code != 0 and "rightpool" not in err


def test_a_framework_that_is_not_there(make_pod: Callable[..., Any]) -> None:
    program = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p]\nimport torch"
    assert "No module named 'torch'" in _same(make_pod(), "-c", program)[2]


def test_an_error_inside_a_step(make_pod: Callable[..., Any]) -> None:
    program = (
        "import jax, jax.numpy as jnp\nfrom jax.experimental import io_callback\n"
        "jax.config.update('jax_traceback_filtering', 'off')\njax.config.update('jax_debug_nans', True)\n"
        "f = jax.jit(lambda x: jnp.log(x))\n"
        "for x in (1.0, 2.0, 3.0): print(f(x))\n"
        "try: f(-1.0)\nexcept FloatingPointError as e: import traceback; traceback.print_exc()\n"
        "jax.jit(lambda x: x.no_such_thing)(1.0)\n"
    )
    _, _, err = _same(make_pod(), "-c", program)
    assert "no_such_thing" in err and "nan" in err


def test_a_program_that_forks(make_pod: Callable[..., Any]) -> None:
    program = (
        "import warnings; warnings.simplefilter('ignore')\n" + STEPS + "import os, sys\n"
        "sys.stdout.flush()\npid = os.fork()\n"
        "if pid == 0: print('child'); sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert _same(make_pod(), "-c", program)[0] == 0


def test_a_program_that_spawns(make_pod: Callable[..., Any], tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import multiprocessing, jax, jax.numpy as jnp\n"
        "def work(n):\n    f = jax.jit(lambda x: x + 1)\n    for _ in range(5): n = f(n)\n    return float(n)\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool: print(pool.map(work, [1., 2.]))\n"
    )
    assert _same(make_pod(), str(script))[1] == "[6.0, 7.0]\n"


def test_a_program_that_waits_for_the_signal(pod: Any) -> None:
    """It blocks the signal and fetches it by sigwait; the agent's thread must not be the one that gets it."""
    program = pod.start(
        "-c",
        "import signal, threading\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})\n"
        + STEPS.replace("print(float(p))", "print('ready', flush=True)\nprint(signal.sigwait({signal.SIGUSR1}))"),
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(1.2)
    program.send_signal(signal.SIGUSR1)
    out, err = program.communicate(timeout=300)
    # The framework's own threads take the signal where they were started before; bare and with the agent alike.
    assert (program.returncode, out.strip(), err) == (0, str(int(signal.SIGUSR1)), "")


def steps_until(file: Path) -> str:
    """Steps until this file is there."""
    program = STEPS.replace("for i in range(25):", f"import os\nwhile not os.path.exists({str(file)!r}):")
    return program.replace("print(float(p))", "print('done')")


def test_the_programs_own_handler_is_called_once_and_stays(pod: Any, tmp_path: Path) -> None:
    program = pod.start(
        "-c",
        "import signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('saving', flush=True))\n"
        + steps_until(tmp_path / "end"),
    )
    pod.until(pod_steps(pod, 5))
    assert pod.post({"id": "d-1"})[0] == 202
    pod.until(lambda: pod.post({"id": "d-1"})[1]["state"] == "signalled")
    (tmp_path / "end").touch()
    out, err = program.communicate(timeout=300)
    assert (program.returncode, out, err) == (0, "saving\ndone\n", "")


@pytest.mark.parametrize(
    ("before", "state"),
    [
        ("", "no handler installed for SIGUSR1"),
        ("signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "the program ignores SIGUSR1"),
    ],
)
def test_no_handler_no_signal(pod: Any, tmp_path: Path, before: str, state: str) -> None:
    """The default action would be the end of the program."""
    program = pod.start("-c", f"import signal\n{before}\n" + steps_until(tmp_path / "end"))
    pod.until(pod_steps(pod, 5))
    assert pod.post({"id": "d-1"})[0] == 202
    pod.until(lambda: pod.post({"id": "d-1"})[1]["state"] == state)
    (tmp_path / "end").touch()
    assert program.communicate(timeout=300)[0] == "done\n"
    assert program.returncode == 0


def pod_steps(pod: Any, least: int) -> Callable[[], bool]:
    return lambda: pod.metrics().get(contract.STEPS, 0) >= least


def test_no_environment_of_the_operator_no_agent(make_pod: Callable[..., Any]) -> None:
    agent = str(make_pod().shared / "agent")
    done = subprocess.run(
        [sys.executable, "-c", "import sys; print([f for f in sys.meta_path if 'Finder' in type(f).__name__])"],
        env=clean_environment(PYTHONPATH=agent),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "rightpool" not in done.stdout


def test_what_a_step_costs(pod: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """The worst case, calls of almost nothing, and an ordinary short step. CPU time, since others use the machine."""
    program = (
        "import jax, jax.numpy as jnp, time\nimport numpy as np\n"
        "tiny = jax.jit(lambda p: p + 1)\nwork = jax.jit(lambda p, x: p + (x @ x.T).sum())\n"
        "x = np.ones((384, 384), np.float32)\n"
        "def best(call, n):\n    t = []\n    for _ in range(12):\n        s = time.process_time()\n"
        "        for _ in range(n): call()\n        t.append((time.process_time() - s) / n)\n    return min(t)\n"
        "p = jnp.zeros(())\nprint(best(lambda: tiny(p), 20000), best(lambda: work(p, x).block_until_ready(), 150))\n"
    )
    bare, with_agent = [], []
    for _ in range(2):
        bare.append([float(word) for word in _run_bare(program).split()])
        run = pod.start("-c", program)
        with_agent.append([float(word) for word in run.communicate(timeout=300)[0].split()])
    tiny = min(a[0] for a in with_agent), min(b[0] for b in bare)
    work = min(a[1] for a in with_agent), min(b[1] for b in bare)
    with capsys.disabled():
        print(
            f"\n  overhead: empty call {tiny[0] / tiny[1]:.2f}× (+{(tiny[0] - tiny[1]) * 1e6:.2f} µs), "
            f"{work[1] * 1e3:.1f} ms step {work[0] / work[1]:.3f}×"
        )
    assert tiny[0] - tiny[1] < 20e-6
    assert work[0] / work[1] < 2, "a wide limit: other work on the machine weighs more than the agent"


def _run_bare(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=clean_environment(), cwd=os.sep, check=True
    )
    return done.stdout
