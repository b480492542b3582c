"""The same program, bare and with the agent: all that can be seen of it from outside must be equal."""

import functools
import subprocess
import sys

from tests.integration.profiler.conftest import PATIENCE, Pod, clean_environment
from tests.integration.profiler.forking import ForkHost

# Long enough for several reports of an agent in a hurry.
STEPS = """
import jax, jax.numpy as jnp, time
step = jax.jit(lambda p, x: p + x.sum())
p = jnp.zeros(())
for i in range(25):
    p = step(p, jnp.ones((4, 1)))
    time.sleep(0.01)
print(float(p))
"""

# Until there is a file named by UNTIL, which is there at once for the bare program.
STEPS_UNTIL = STEPS.replace(
    "for i in range(25):", "import os\nwhile not os.path.exists(os.environ.get('UNTIL', '/')):"
).replace("print(float(p))", "print('done')")

Outcome = tuple[int, str, str]  # exit code, output, errors


@functools.cache
def bare(arguments: tuple[str, ...], path: str = "") -> Outcome:
    """Of the program without the agent."""
    done = subprocess.run(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=clean_environment(**({"PYTHONPATH": path} if path else {})),
        cwd="/",
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout, done.stderr


def same(pod: Pod, *arguments: str, path: str = "", **environment: str) -> Outcome:
    """Run the program with the agent and compare it with the bare one."""
    program = pod.start(*arguments, **({"PYTHONPATH": path} if path else {}), **environment)
    out, err = program.communicate(timeout=PATIENCE)
    outcome = (program.returncode, out, err)
    assert outcome == bare(arguments, path)
    return outcome


@functools.cache
def _bare_forked(host: ForkHost, program: str, path: str) -> Outcome:
    forked = host.fork(program, clean_environment(**({"PYTHONPATH": path} if path else {})))
    out, err = forked.communicate(PATIENCE)
    return forked.wait(PATIENCE), out, err


def same_forked(host: ForkHost, pod: Pod, program: str, path: str = "", **environment: str) -> Outcome:
    """The same of programs that begin after the import of their framework. host: a bare one."""
    forked = host.start(pod, program, **({"PYTHONPATH": path} if path else {}), **environment)
    out, err = forked.communicate(PATIENCE)
    outcome = (forked.wait(PATIENCE), out, err)
    assert outcome == _bare_forked(host, program, path)
    return outcome
