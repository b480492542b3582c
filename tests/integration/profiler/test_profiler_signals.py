"""A signal asks the program for a checkpoint. It gets there only where the program waits for it, and there once."""

import signal

import pytest

from rightpool import contract
from tests.integration.profiler.conftest import PATIENCE, Pod

pytestmark = pytest.mark.jax

# Steps until there is a line on its standard input, does as it says, and goes on.
_OBEYS = """
import select, signal, sys, time
import jax, jax.numpy as jnp
step = jax.jit(lambda p, x: p + x.sum())
p = jnp.zeros(())
for line in iter(sys.stdin.readline, ""):
    exec(line)
    print("done", flush=True)
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        p = step(p, jnp.ones((4,)))
print(float(p) > 0)
"""


def test_a_signal_is_sent_only_to_a_program_with_a_handler(pod: Pod) -> None:
    """The default action would be the end of the program."""
    program = pod.start("-u", "-c", _OBEYS)
    assert program.stdin is not None and program.stdout is not None
    for number, (line, state) in enumerate(
        (
            ("pass", "no handler installed for SIGUSR1"),
            ("signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "the program ignores SIGUSR1"),
            ("signal.signal(signal.SIGUSR1, lambda *_: print('saving'))", "signalled"),
        )
    ):
        program.stdin.write(line + "\n")
        program.stdin.flush()
        assert program.stdout.readline() == "done\n"
        pod.page(lambda page: page.get(contract.STEPS, 0) > 5)
        ask = {"id": f"d-{number}"}
        assert pod.post(ask)[0] == 202
        pod.until(lambda ask=ask, state=state: pod.post(ask)[1]["state"] == state)
    assert program.stdout.readline() == "saving\n"
    pod.caught_up()  # the request is still there, and is not served again
    out, err = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out, err) == (0, "True\n", "")


def test_a_program_that_waits_for_the_signal(pod: Pod) -> None:
    """It blocks the signal and fetches it by sigwait; the agent's thread must not be the one that gets it."""
    program = pod.start(
        "-c",
        """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
import jax, jax.numpy as jnp
step = jax.jit(lambda p, x: p + x.sum())
p = jnp.zeros(())
for i in range(25):
    p = step(p, jnp.ones((4,)))
print(signal.sigwait({signal.SIGUSR1}).value)
""",
    )
    pod.page(lambda page: page.get(contract.STEPS))  # the thread runs
    program.send_signal(signal.SIGUSR1)
    out, err = program.communicate(timeout=PATIENCE)
    # The framework's own threads take the signal where they were started before; bare and with the agent alike.
    assert (program.returncode, out.strip(), err) == (0, str(int(signal.SIGUSR1)), "")
