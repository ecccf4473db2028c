"""Commands in a process that has imported the package already, so that each starts at once.

A server imports the package and forks for each command. A script on the PATH stands for each: it
hands its arguments, folder, environment and files over, and ends with the status of the command.
"""

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import stepcraft
from stepcraft.models.embeddings import _wordllama_model  # its parallel tokenizer is not started

COMMANDS = {"stepcraft": "stepcraft.cli", "run-page": "website.blocks"}
"""The modules that the commands run."""
_LATE = (
    "langchain_openai",
    "scipy.stats",
    "stepcraft.cli.run",
    "stepcraft.evals.benchmark",
    "stepcraft.evals.reports",
    "stepcraft.memory.local",
)
"""Modules that commands import when they need them."""
_SCRIPT = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    request = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [request], [0, 1, 2])
    status = server.recv(8)
sys.exit(int(status or 1))
"""


@contextmanager
def warm(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Write the scripts of the commands into a folder, which work until the context ends."""
    address = str(folder / "socket")
    for name in COMMANDS:
        script = folder / name
        script.write_text(_SCRIPT.format(python=sys.executable, address=address), "utf-8")
        script.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-m", "website.warm", address],
        cwd=Path(__file__).parents[1],
        env=environment,
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout
        server.stdout.readline()  # it listens
        yield
    finally:
        server.terminate()
        server.communicate()


def _serve(address: str) -> None:
    """Fork for each command; return in the process that is to run it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
        while True:
            connection, _ = listener.accept()
            if not os.fork():
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    if command := os.fork():
        has_ended = threading.Event()

        def kill_with_its_script() -> None:
            connection.recv(1)
            if not has_ended.is_set():
                os.kill(command, signal.SIGKILL)

        threading.Thread(target=kill_with_its_script, daemon=True).start()
        status = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        has_ended.set()
        connection.sendall(str(status).encode())
        os._exit(0)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.argv, folder, environment = json.loads(request)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)


def main() -> None:
    """Serve until this process is ended; in each fork, run its command."""
    for module in (*COMMANDS.values(), *_LATE):
        import_module(module)
    for name in dir(stepcraft):
        getattr(stepcraft, name)  # loads what defines it
    if find_spec("wordllama"):
        _wordllama_model()
    gc.freeze()  # the end of a fork does not go through all that is loaded
    _serve(sys.argv[1])
    sys.path[0] = ""  # modules that a page writes are found, as they are by `python`
    import_module(COMMANDS[Path(sys.argv[0]).name]).main()


if __name__ == "__main__":
    main()
