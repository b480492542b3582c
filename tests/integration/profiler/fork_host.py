"""Imports the modules of its arguments, and runs programs each in a child of its own.

    python fork_host.py FD MODULE…

FD is a listening socket. A connection brings a program's streams, its source and its environment, and gets two answers:
its pid, and its exit code when it has ended. Where the agent is not in this process, a program begins it by itself.
"""

import gc
import importlib
import json
import os
import signal
import site
import socket
import sys


def reap(*_: object) -> None:
    """Wait for the children that have ended, so that their processor time is counted as this process'."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def begin_agent() -> None:
    """As at the start of an interpreter with this PYTHONPATH where a `.pth` file has imported the framework before."""
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.modules.pop("sitecustomize", None)
    site.execsitecustomize()


def main() -> None:
    for module in sys.argv[2:]:
        importlib.import_module(module)
    gc.freeze()  # or each child would look through all that was imported, and take it apart at its end
    signal.signal(signal.SIGCHLD, reap)
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        while True:
            connection, _ = listening.accept()
            if os.fork() == 0:
                break
            connection.close()
    request, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    program = os.fork()
    if program:
        for stream in streams:
            os.close(stream)
        connection.send(str(program).encode())
        connection.send(str(os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    source, environment = json.loads(request)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:], sys.path[0] = ["-c"], ""
    if "rightpool_agent" not in sys.modules:
        begin_agent()
    exec(compile(source, "<string>", "exec"), sys.modules["__main__"].__dict__)


if __name__ == "__main__":
    main()
