"""With any defect in or around the agent, the program runs, prints and ends as without the agent."""

import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from rightpool import contract
from tests.integration.profiler.comparison import STEPS, STEPS_UNTIL, same, same_forked
from tests.integration.profiler.conftest import PATIENCE, ROOT, Pod
from tests.integration.profiler.forking import ForkHost

pytestmark = pytest.mark.jax

Environment = dict[str, str]


def _nothing(pod: Pod) -> Environment:
    return {}


def _shared_missing(pod: Pod) -> Environment:
    return {contract.ENV_SHARED_DIR: "/nonexistent/rightpool"}


def _shared_is_file(pod: Pod) -> Environment:
    (pod.shared / "file").write_text("")
    return {contract.ENV_SHARED_DIR: str(pod.shared / "file")}


def _socket_is_file(pod: Pod) -> Environment:
    (pod.shared / "profiler.sock").write_text("not a socket")
    return {}


def _unused_socket(pod: Pod) -> Environment:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as gone:
        gone.bind(str(pod.shared / "profiler.sock"))
    return {}


def _socket_full(pod: Pod) -> Environment:
    path = str(pod.shared / "profiler.sock")
    hangs = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    pod.sockets.append(hangs)
    hangs.bind(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender, pytest.raises(OSError):
        for _ in range(1 << 20):
            sender.sendto(b"unread", path)
    return {}


def _command(content: bytes) -> Callable[[Pod], Environment]:
    def leave(pod: Pod) -> Environment:
        (pod.shared / "commands" / "checkpoint.json").write_bytes(content)
        return {}

    return leave


def _command_is_directory(pod: Pod) -> Environment:
    (pod.shared / "commands" / "checkpoint.json").mkdir()
    return {}


def _endless_checkpoints(pod: Pod) -> Environment:
    return {contract.ENV_CHECKPOINT_PATH: "/proc"}


BREAKAGES: Final[dict[str, Callable[[Pod], Environment]]] = {
    "no sidecar": _nothing,
    "no shared directory": _shared_missing,
    "a file for a directory": _shared_is_file,
    "a file for a socket": _socket_is_file,
    "a socket without a process": _unused_socket,
    "a socket that is not read": _socket_full,
    "empty command": _command(b""),
    "binary command": _command(bytes(range(256))),
    "nested command": _command(b"[" * 4000),
    "wrong types": _command(b'{"id": [1], "signal": 9, "at": "now"}'),
    "a signal that kills": _command(b'{"id": "x", "signal": "SIGKILL", "at": 9e9}'),
    "not a signal": _command(b'{"id": "x", "signal": "raise_signal", "at": 9e9}'),
    "infinite time": _command(b'{"id": "x", "signal": "SIGUSR1", "at": Infinity}'),
    "a directory for a command": _command_is_directory,
    "an endless checkpoint directory": _endless_checkpoints,
}


def test_the_agent_that_a_forked_program_begins_is_at_work(bare_jax_host: ForkHost, pod: Pod) -> None:
    assert same_forked(bare_jax_host, pod, STEPS)[0] == 0
    pod.page(lambda page: page.get(contract.STEPS) == 25)


@pytest.mark.parametrize("breakage", list(BREAKAGES))
def test_any_state_of_the_shared_directory(
    bare_jax_host: ForkHost, make_pod: Callable[..., Pod], breakage: str
) -> None:
    pod = make_pod()
    assert same_forked(bare_jax_host, pod, STEPS, **BREAKAGES[breakage](pod))[0] == 0


MODULES: Final = sorted(path.name for path in (ROOT / "profiler_sidecar/agent/rightpool_agent").glob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_any_broken_module_of_the_agent(bare_jax_host: ForkHost, make_pod: Callable[..., Pod], module: str) -> None:
    pod = make_pod()
    (pod.agent / module).write_text("raise RuntimeError('broken')\n")
    assert same_forked(bare_jax_host, pod, STEPS)[0] == 0


def test_an_agent_that_is_half_installed(make_pod: Callable[..., Pod]) -> None:
    pod = make_pod()
    for module in pod.agent.glob("*.py"):
        module.write_text("def (")
    assert same(pod, "-c", STEPS)[0] == 0


def fail(pod: Pod, module: str, *functions: str) -> None:
    """Let functions of the installed agent raise, and leave a mark that they did."""
    path = pod.agent / module
    text = path.read_text()
    for function in functions:
        head = rf"^(?P<indent> *)def {function}\((?:[^()]|\([^()]*\))*\)(?: -> [^\n]+)?:\n"
        body = (
            f"\\g<0>\\g<indent>    open({str(pod.shared / 'failed')!r}, 'a').close()\n"
            f"\\g<indent>    raise RuntimeError('broken')\n"
        )
        text, found = re.subn(head, body, text, flags=re.MULTILINE)
        assert found, function
    path.write_text(text)


@pytest.mark.parametrize(
    "where",
    [
        "batch.py study",
        "batch.py read",
        "jax_steps.py _meet",
        "jax_steps.py rearm",
        "reporter.py start",
        "steps.py drain",
        "checkpoint.py look",
        "trace_schedule.py turn",
        "jax_trace.py begin",
        "jax_trace.py finish",
    ],
)
def test_any_failing_function_of_the_agent(bare_jax_host: ForkHost, make_pod: Callable[..., Pod], where: str) -> None:
    pod = make_pod()
    pod.trace_all_the_time()
    module, *functions = where.split()
    fail(pod, module, *functions)
    assert same_forked(bare_jax_host, pod, STEPS_UNTIL, UNTIL=str(pod.shared / "failed"))[0] == 0


_SAVERS: Final = {
    "safetensors/__init__.py": "",
    "safetensors/numpy.py": """
def save_file(tensors, filename, metadata=None):
    open(filename, "w").close()
def save_model(model, filename):
    save_file(model, filename)
""",
    "orbax/checkpoint/__init__.py": """
import pathlib
class Checkpointer:
    def save(self, directory, *args, force=False):
        pathlib.Path(directory).mkdir(exist_ok=force)
class AsyncCheckpointer(Checkpointer):
    def save(self, directory, *args, force=False):
        self.wait_until_finished()
        pathlib.Path(directory).mkdir(exist_ok=force)
    def wait_until_finished(self):
        pass
""",
    "orbax/checkpoint/experimental/__init__.py": "",
    "orbax/checkpoint/experimental/v1.py": """
class Response:
    def on_complete(self, callback):
        callback(None)
def save(path, state):
    dict(state)
    open(path, "w").close()
def save_async(path, state):
    save(path, state)
    return Response()
""",
}
_SAVES: Final = """
import tempfile, traceback
import orbax.checkpoint
from safetensors.numpy import save_file, save_model
save_file({}, there + "/model.safetensors")
save_model({}, filename=there + "/model.safetensors")
for kind in (orbax.checkpoint.Checkpointer, orbax.checkpoint.AsyncCheckpointer):
    kind().save(there + "/1", force=True)
    try: kind().save(there + "/1")
    except FileExistsError: traceback.print_exc(limit=1)
orbax.checkpoint.AsyncCheckpointer().wait_until_finished()
import orbax.checkpoint.experimental.v1 as ocp
ocp.save_async(there + "/2", {}).on_complete(print)
try: ocp.save(there + "/2", 1)
except TypeError: traceback.print_exc(limit=1)
try: save_file(1)
except TypeError as error: print(error)
print(orbax.checkpoint.Checkpointer.save.__name__, save_file.__module__)
"""


@pytest.fixture(scope="module")
def savers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all, so that what the bare program prints is found once."""
    folder = tmp_path_factory.mktemp("savers")
    for name, text in _SAVERS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    "where",
    [
        "",
        "saves.py install_safetensors",
        "saves.py install_orbax",
        "saves.py install_orbax_v1",
        "saves.py _promised",
        "saves.py _wrap",
        "saves.py _argument",
        "saves.py _saved",
        "saves.py _began",
        "saves.py _finished",
        "checkpoint.py _noted",
        "checkpoint_files.py from_environment",
        "checkpoint_files.py newest",
    ],
)
def test_saves_are_the_programs_own(
    bare_jax_host: ForkHost, make_pod: Callable[..., Pod], savers: Path, where: str
) -> None:
    pod = make_pod()
    there = savers / "saved"
    shutil.rmtree(there, ignore_errors=True)
    there.mkdir()
    program = f"there = {str(there)!r}\n{_SAVES}\n{STEPS}".replace("time.sleep(0.01)", "time.sleep(0.03)")
    if where:
        module, *functions = where.split()
        fail(pod, module, *functions)
    environment = {contract.ENV_CHECKPOINT_PATH: str(there)} if "newest" in where else {}
    assert same_forked(bare_jax_host, pod, program, path=str(savers), **environment)[0] == 0
    assert (pod.shared / "failed").exists() is bool(where)


def test_an_agent_that_hangs(make_pod: Callable[..., Pod]) -> None:
    """Such as on a dead network file system. The program's end waits for a limited time only."""
    pod = make_pod()
    pod.alter("reporter.py", {"_LAST_WORD = 60.0": "_LAST_WORD = 0.1"})
    pod.alter("checkpoint.py", {"        self._serve(rank)\n": "        time.sleep(1e6)\n"})
    assert same(pod, "-c", STEPS)[0] == 0


def test_a_full_disk(make_pod: Callable[..., Pod]) -> None:
    pod = make_pod()
    pod.trace_all_the_time()
    traces = pod.shared / "traces"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4k", "none", str(traces)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("mounting needs privileges")
    try:
        full = pod.shared / "full"
        lost = '                os.unlink(path + ".tmp")\n'
        pod.alter("trace_schedule.py", {lost: f"{lost}                open({str(full)!r}, 'w').close()\n"})
        assert same(pod, "-c", STEPS_UNTIL, UNTIL=str(full))[0] == 0
        assert not list(traces.iterdir())
    finally:
        subprocess.run(["umount", str(traces)], check=True)


def test_a_sidecar_that_dies_and_one_that_comes_back(pod: Pod) -> None:
    """The program is not affected and nothing is lost, because a report has all counters since the start."""
    pause = "    if i in (10, 20): print('paused', flush=True); input()\n"
    program = pod.start("-c", STEPS.replace("    time.sleep(0.01)\n", "    time.sleep(0.01)\n" + pause))
    assert program.stdin is not None and program.stdout is not None and pod.sidecar is not None
    assert program.stdout.readline() == "paused\n"
    pod.caught_up()
    pod.sidecar.kill()
    pod.sidecar.wait()
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "paused\n"
    pod.start_sidecar()
    out, err = program.communicate("\n", timeout=PATIENCE)
    assert (program.returncode, out, err) == (0, "100.0\n", "")
    pod.page(lambda page: page.get(contract.STEPS) == 25)
