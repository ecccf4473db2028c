"""Run Python programs written by a language model, each in its own bubblewrap sandbox.

A program is one process with one thread. It sees a read-only copy of this interpreter and an empty
working folder in memory, but no other files, network, processes or environment variables, and
neither `/proc` nor `/etc`. If there is no sandbox, nothing is run.
"""

import asyncio
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Literal

from stepcraft.errors import BadInput, StepcraftError
from stepcraft_papers._interpreter import PYTHON, interpreter_root

OPEN_FILES = 64
FILE_MB = 32
"""The size limit in megabytes for a file, and for the working folder."""
OUTPUT_KB = 256
"""The size limit in kilobytes for the standard output, and for the standard error."""
CLOCK = 3
"""The ratio of the wall-clock limit to the CPU limit, as other programs may share the CPU."""
_OUTPUT = OUTPUT_KB << 10
_NOBODY = 65534

_START = """
def _start():
    import os, resource, sys
    size, *limits = map(int, sys.argv[1:])
    for name, most in zip(("CPU", "AS", "NPROC", "NOFILE", "FSIZE", "CORE"), limits):
        for process in (0, 1):
            resource.prlimit(process, getattr(resource, "RLIMIT_" + name), (most, most))
    os.write(1, b"\\0")
    text = sys.stdin.buffer.read(size)
    sys.argv[:] = ["program.py"]
    return compile(text, "program.py", "exec")
exec(globals().pop("_start")())
"""
"""Sets the limits, reads the program from the start of the input, and runs it as `__main__`.

A process limit set outside the sandbox would count all of the user's processes. The first process
in the sandbox gets the limits too, because a program could take it over as a debugger does. The
byte that is written shows that the sandbox has started, so anything that fails afterwards is the
program's fault.
"""

_WAYS_OUT = (
    "generated code is not run: install bubblewrap 0.8 or newer (apt-get install bubblewrap) on a "
    "Linux that permits user namespaces, or use a container that does (docker run --security-opt "
    "seccomp=unconfined)"
)


class SandboxFailure(StepcraftError, RuntimeError):
    """There is no sandbox to run generated code in, or it failed. The program did not run."""


@dataclass(frozen=True)
class Outcome:
    """The result of running a program."""

    stdout: str
    """The standard output, at most OUTPUT_KB, with invalid UTF-8 replaced."""
    stderr: str
    ended: Literal["done", "error", "time", "output"]
    """How it ended: with status 0, with another status, or at the time or output limit."""


async def run_program(
    program: str, stdin: str = "", *, seconds: float = 5, megabytes: int = 512
) -> Outcome:
    """Run a program until it ends or reaches a limit; it leaves nothing behind.

    Args:
        program: The source code, run as `__main__` with only the standard library.
        stdin: Its standard input.
        seconds: The limit on its CPU time, rounded up to whole seconds; the wall-clock limit is
            CLOCK times `seconds`.
        megabytes: The limit on its memory, not including files in its working folder.

    Raises:
        BadInput: A limit is too low to start Python.
        SandboxFailure: There is no sandbox, or it failed.
    """
    if not 0 < seconds < math.inf:
        raise BadInput(f"a program cannot run for {seconds} seconds: give a number above 0")
    if megabytes < 64:
        raise BadInput(f"Python does not start in {megabytes} MB: give at least 64")
    text = program.encode("utf-8", "surrogatepass")
    limits = (math.ceil(seconds), megabytes << 20, 0, OPEN_FILES, FILE_MB << 20, 0)
    info, written = os.pipe()
    with os.fdopen(info, "rb") as report:
        try:
            process = await asyncio.create_subprocess_exec(
                *_command(written),
                *("-I", "-S", "-B", "-c", _START),
                *map(str, (len(text), *limits)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                # `--clearenv` would leave the environment readable in `/proc/1/environ`.
                env={},
                pass_fds=[written],
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxFailure(f"the sandbox does not start ({error}); {_WAYS_OUT}") from error
        finally:
            os.close(written)
        process_report = report.read()
    # Killing bubblewrap itself might leave a program that guards itself against its end. With the
    # first process in the sandbox the kernel ends all others.
    with _killer(
        json.loads(process_report)["child-pid"] if process_report else process.pid
    ) as kill:
        stdin_bytes = text + stdin.encode("utf-8", "surrogatepass")
        return await _watch(process, kill, stdin_bytes, CLOCK * seconds)


@contextmanager
def _killer(process: int) -> Generator[Callable[[], None]]:
    """Yield a function that kills the process, unless its PID has been reused."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        yield lambda: None
        return

    def kill() -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    try:
        yield kill
    finally:
        os.close(descriptor)


async def _watch(
    process: asyncio.subprocess.Process, kill: Callable[[], None], stdin: bytes, seconds: float
) -> Outcome:
    """Feed a process and read what it writes until it ends or reaches a limit."""
    stdout, stderr = bytearray(), bytearray()

    async def work() -> None:
        await asyncio.gather(
            _feed(process.stdin, stdin),
            _collect(process.stdout, stdout, kill),
            _collect(process.stderr, stderr, kill),
        )
        await process.wait()

    working = asyncio.ensure_future(work())
    limit: Literal["time", "output", ""] = ""
    try:
        async with asyncio.timeout(seconds):
            await asyncio.shield(working)
    except TimeoutError:
        limit = "time"
    finally:
        if not working.done():
            kill()
            await working
    reason = stderr[:_OUTPUT].decode("utf-8", "replace")
    if not stdout and not limit:
        raise SandboxFailure(
            f"the sandbox does not start: {reason.strip() or process.returncode}; {_WAYS_OUT}"
        )
    if max(len(stdout), len(stderr)) > _OUTPUT:
        limit = "output"
    elif process.returncode == 128 + signal.SIGKILL:  # at the limit of processor time
        limit = "time"
    return Outcome(
        stdout=stdout[1 : _OUTPUT + 1].decode("utf-8", "replace"),
        stderr=reason,
        ended=limit or ("error" if process.returncode else "done"),
    )


async def _collect(
    stream: asyncio.StreamReader | None, into: bytearray, kill: Callable[[], None]
) -> None:
    """Read a stream to its end; kill the process if there is too much output."""
    while stream and (part := await stream.read(1 << 16)):
        if len(into) <= _OUTPUT:
            into += part
        if len(into) > _OUTPUT:
            kill()


async def _feed(stream: asyncio.StreamWriter | None, text: bytes) -> None:
    if stream:
        with suppress(ConnectionError):  # a program need not read its input
            stream.write(text)
            await stream.drain()
        stream.close()


def _command(info: int) -> list[str]:
    """Return the command that starts Python in a sandbox."""
    bwrap = shutil.which("bwrap")
    if sys.platform != "linux" or not bwrap:
        raise SandboxFailure(f"bubblewrap is not installed (no `bwrap` on the PATH); {_WAYS_OUT}")
    # For root the kernel counts no processes and guards no settings. `user=` of subprocess would
    # fork, and what gRPC does in a forked process would end up in the output of the program.
    switch = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--"]
    return [
        *(switch if os.geteuid() == 0 else ()),
        *(bwrap, "--unshare-all", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--hostname", "sandbox", "--info-fd", str(info)),
        *("--ro-bind", str(_root()), "/"),
        *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
        *("--size", str(FILE_MB << 20), "--tmpfs", "/work", "--chdir", "/work", "--", PYTHON),
    ]


@cache
def _root() -> str:
    try:
        return str(interpreter_root())
    except (OSError, subprocess.SubprocessError) as error:
        raise SandboxFailure(
            f"Python cannot be copied for the sandbox ({error}); {_WAYS_OUT}"
        ) from error


def need_sandbox() -> None:
    """Try the sandbox with an empty program, so that no evaluation starts without it.

    Raises:
        SandboxFailure: It is not installed or not permitted; the message says what to do.
    """
    with ThreadPoolExecutor(1) as thread:  # the caller's may have an event loop
        outcome = thread.submit(asyncio.run, run_program("", seconds=30)).result()
    if outcome.ended != "done":
        raise SandboxFailure(
            f"an empty program does not end well in the sandbox ({outcome.stderr.strip()}); "
            f"{_WAYS_OUT}"
        )
