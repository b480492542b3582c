"""The command line as a whole: its version, its commands, and what starting it loads."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rightpool.cli.commands import COMMANDS
from rightpool.cli.main import main
from tests.patience import PATIENCE

HEAVY = (
    "kopf",
    "numpy",
    "prometheus_client",
    "pydantic_settings",
    "rich",
    "rightpool.runtime",
    "rightpool.hardware.catalog",
)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("rightpool ")


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert COMMANDS[command][1][:20].lower() in capsys.readouterr().out.lower()


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_and_options(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)

    def completed(*words: str) -> list[str]:
        typed = " ".join(f"'{word}'" for word in ("rightpool", *words))
        ask = f"source {script}; COMP_WORDS=({typed}); COMP_CWORD={len(words)}; COMP_LINE='rightpool'; "
        ask += (
            "$(complete -p rightpool | sed -E 's/.* -F ([^ ]+) .*/\\1/') rightpool; printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=PATIENCE, check=True)
        return done.stdout.split()

    assert set(completed("")) >= set(COMMANDS)
    assert completed("rec") == ["recommend"]
    assert "--all-namespaces" in completed("top", "--")


def test_a_command_loads_nothing_of_the_operator() -> None:
    program = (
        "import sys; from rightpool.cli import commands, main, top\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.strip() == "[]"


def test_explain_loads_no_more_than_it_needs() -> None:
    """It makes no status and carries no move out. A frozen dataclass takes three times as long to define as
    `value_object`, and there are hundreds. The reader of a model is made at its first use: those of all models are a
    tenth of the command's time."""
    program = (
        "import sys, rightpool.cli.explain, rightpool.api.pool as pool\n"
        "made = {v for m in list(sys.modules.values()) for v in list(vars(m).values()) if isinstance(v, type)}\n"
        "ours = [v for v in made if str(v.__module__).startswith('rightpool') and '__dataclass_params__' in vars(v)]\n"
        "print(len(ours), sum(v.__dataclass_params__.frozen for v in ours))\n"
        "print(pool.AcceleratorPoolSpec.__pydantic_complete__)\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    counted, complete, loaded = done.stdout.splitlines()
    rooms = ("rightpool.reporting.status", "rightpool.reporting.conditions", "rightpool.planning.moves")
    assert [name for name in loaded.split() if name.startswith(rooms)] == []
    every, frozen = map(int, counted.split())
    assert frozen < every / 3, f"{frozen} of {every} are frozen dataclasses: make them by @value_object"
    assert complete == "False"


def loaded_by(*words: str) -> set[str]:
    """The modules that a process has loaded after this command."""
    program = (
        "import contextlib, io, sys\n"
        "from rightpool.cli.main import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        f"    main({list(words)!r})\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize("words", [("--version",), ("--help",)], ids=" ".join)
def test_who_asks_for_no_cluster_loads_the_standard_library_alone(words: tuple[str, ...]) -> None:
    loaded = loaded_by(*words)
    ours = {name for name in loaded if name.partition(".")[0] == "rightpool"}
    assert ours == {"rightpool", "rightpool.cli", "rightpool.cli.main", "rightpool.cli.commands", "rightpool.contract"}
    assert not loaded & {"pydantic", "kubernetes", "yaml", "urllib3"}


@pytest.mark.parametrize("arguments", [("completion", "bash"), ("pools", "--accelerators")])
def test_a_reader_that_stops_reading_is_no_error(arguments: tuple[str, ...]) -> None:
    command = subprocess.Popen(
        [sys.executable, "-m", "rightpool.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert command.stdout is not None and command.stderr is not None
    command.stdout.close()
    assert (command.stderr.read(), command.wait()) == (b"", 0)
    command.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is full, as Linux has it")
def test_a_disk_that_is_full_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        command = subprocess.run(
            [sys.executable, "-m", "rightpool.cli.main", "completion", "bash"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    message = "rightpool: not all is written: No space left on device\n"
    assert (command.returncode, command.stderr) == (1, message)


def ended(folder: Path, command: str, at_exit: str = "") -> tuple[int, str]:
    """Exit status and output of the command of this module. at_exit: arguments of atexit.register, none: nothing."""
    (folder / "sleeper.py").write_text(f"{command}\ndef add_arguments(parser):\n    pass\n")
    (folder / "start.py").write_text(
        "import atexit, os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # pytest may run in the background of a shell
        + (f"atexit.register({at_exit})\n" if at_exit else "")
        + "from rightpool.cli import commands, main\n"
        "commands.COMMANDS['sleep'] = ('sleeper', 'nothing')\n"
        "main.entry_point()"
    )
    done = subprocess.run(
        [sys.executable, "-m", "start", "sleep"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [*sys.path, str(folder)]))},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout + done.stderr


def test_an_interrupt_prints_nothing(tmp_path: Path) -> None:
    """The first two come while a text is executed, as dataclasses are made: `python -m` then ends by the signal."""
    interrupt = "import os, signal; exec('os.kill(os.getpid(), signal.SIGINT)')"
    assert ended(tmp_path, f"{interrupt}\ndef run(arguments):\n    return 0") == (130, ""), "while it loads"
    assert ended(tmp_path, f"def run(arguments):\n    {interrupt}\n    return 0") == (130, ""), "while it runs"
    late = ended(tmp_path, "def run(arguments):\n    return 0", "os.kill, os.getpid(), signal.SIGINT")
    assert late == (-signal.SIGINT, ""), "after it"


def test_an_interrupt_that_python_would_ignore_ends_a_command(tmp_path: Path) -> None:
    """Within the callback of a weak reference it is printed, and the command would go on."""
    command = """
import os, signal, time, weakref

class Referred:
    pass

def interrupt(_):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

def run(arguments):
    one = Referred()
    reference = weakref.ref(one, interrupt)
    del one
    time.sleep(60)
"""
    assert ended(tmp_path, command) == (130, "")


def test_a_connection_that_breaks_is_not_taken_for_such_a_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise BrokenPipeError("of a socket")

    monkeypatch.setattr("rightpool.cli.completion.run", broken)
    with pytest.raises(BrokenPipeError, match="of a socket"):
        main(["completion", "bash"])
