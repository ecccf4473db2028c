"""Running Python programs that a language model wrote.

| kind | what it keeps a program from |
|---|---|
| `bubblewrap` | everything outside: other files, the network, other processes, the environment. Linux only. |
| `docker` | the same, in a container of an image that is there already (`docker pull python:3.x-slim`); slower to start. |
| `none` | nothing but using the machine up: it runs as the user, with limits of time, memory, files and output. |

Under bubblewrap a program sees a copy of this interpreter, read-only, and an empty working folder in memory; `/proc`
and `/etc` do not exist. A harness that runs as root starts it as the user `nobody`: for root, the kernel counts no
processes and guards no settings. There is no silent way from one kind to another.
"""

import asyncio
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from stepcraft.concurrency import in_thread
from stepcraft.errors import BadInput, SandboxFailure
from stepcraft.evals._interpreter import PYTHON, interpreter_root
from stepcraft.evals._watch import Watched, end_namespace, first_process, watch

Kind = Literal["bubblewrap", "docker", "none"]
Ending = Literal["done", "error", "time", "memory", "output"]

PROCESSES = 16
"""Processes and threads of a program."""
OPEN_FILES = 64
FILE_MB = 32
"""The most that a file may hold, and the working folder and the shared memory each."""
OUTPUT_KB = 256
"""The most that is read of the standard output, and of the standard error."""
CLOCK = 3
"""How much longer than its processor time a program may take, for it may share the processor with others."""
_NOBODY = 65534
_Started = tuple["subprocess.Popen[bytes]", Callable[[], None]]
"""A process, and what kills it with all that it started."""

_START = """
def _start():
    import posix, resource, sys
    size, seconds, memory, processes, files, file_size = map(int, sys.argv[1:])
    limits = {"CPU": (seconds, seconds + 1), "AS": (memory,) * 2, "NOFILE": (files,) * 2, "CORE": (0, 0)}
    limits["FSIZE"] = (file_size,) * 2
    if processes:
        limits["NPROC"] = (processes,) * 2
    for name, wanted in limits.items():
        kind = getattr(resource, "RLIMIT_" + name)
        highest = resource.getrlimit(kind)[1]
        if highest != resource.RLIM_INFINITY:
            wanted = tuple(min(value, highest) for value in wanted)
        try:
            resource.setrlimit(kind, wanted)
            if processes:
                resource.prlimit(1, kind, wanted)
        except ValueError:
            if sys.platform != "darwin":
                raise
    text = b""
    while len(text) < size:
        part = posix.read(0, size - len(text))
        if not part:
            posix._exit(1)
        text += part
    posix.write(1, b"\\0")
    with open("program.py", "wb") as file:
        file.write(text)
    def report(kind, error, trace):
        while trace and trace.tb_frame.f_code.co_filename == "<string>":
            trace = trace.tb_next
        sys.__excepthook__(kind, error.with_traceback(trace), trace)
    sys.excepthook = report
    sys.argv[:] = ["program.py"]
    globals()["__file__"] = "program.py"
    return compile(text, "program.py", "exec")
exec(globals().pop("_start")())
"""
"""What the interpreter runs first: it sets the limits, reads the program from the head of its input, and runs it.

Limits are set here because a limit of processes that is set outside counts all processes of the user. The first process
of the sandbox gets them too: a program has the rights to take it over as a debugger does. The byte that is written tells
that it was the program that failed, not the sandbox.
"""


@dataclass(frozen=True)
class Outcome:
    """What became of a program."""

    stdout: str
    """What it wrote, at most OUTPUT_KB; bytes that are no UTF-8 are replaced."""
    stderr: str
    """As `stdout`; the traceback of an exception is its end."""
    status: int | None
    """The exit status, 128 and the signal's number for a signal; None where the sandbox ended it."""
    ended: Ending
    """Why it ended: by itself ("done" or, with a status other than 0, "error"), or at a limit of time, memory or output."""
    seconds: float
    """How long it took, with the sandbox."""


class Sandbox:
    """Runs Python programs, each in a sandbox of its own that is gone afterwards. Thread-safe.

    Args:
        kind: How programs are kept in, see the module.
        i_understand: For "none": that programs may read, change and send whatever this user can.
        image: For "docker": an image with `python`; by default Docker's own of this version. It is not downloaded.

    Raises:
        BadInput: There is no such kind, or it is "none" without `i_understand`.
    """

    def __init__(
        self, kind: Kind = "bubblewrap", *, i_understand: bool = False, image: str = ""
    ) -> None:
        if kind not in get_args(Kind):
            raise BadInput(f"{kind!r} is no sandbox: choose one of {', '.join(get_args(Kind))}")
        if kind == "none" and not i_understand:
            raise BadInput(
                "without a sandbox, generated code can read, change and send all that you can: "
                "say that you understand this with i_understand=True (--i-understand), or choose another sandbox"
            )
        self.kind: Kind = kind
        self._image = image or f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
        self._probing = threading.Lock()
        self._found = ""
        self._root = Path()

    def probe(self) -> str:
        """Try the sandbox with an empty program, once; return in words what programs run in.

        Raises:
            SandboxFailure: It is not installed or not permitted; the message says what to do.
        """
        with self._probing:
            if not self._found:
                self._found = self._executable()
                try:
                    self._try()
                except SandboxFailure:
                    self._found = ""
                    raise
        version = ".".join(map(str, sys.version_info[:3]))
        return {
            "bubblewrap": f"bubblewrap, Python {version}",
            "docker": f"Docker, image {self._image}",
            "none": f"no sandbox, Python {version}",
        }[self.kind]

    def run(
        self, program: str, stdin: str = "", *, seconds: float = 5, megabytes: int = 512
    ) -> Outcome:
        """Run a program to its end or to a limit; nothing of it is left afterwards.

        Args:
            program: The text of the program, run as `__main__` with the standard library alone.
            stdin: What it reads.
            seconds: The processor time of each of its processes, rounded up to whole seconds. The clock may run CLOCK
                times as long.
            megabytes: The address space of each of its processes, and the memory of all of them together. Files in the
                working folder come on top.

        Raises:
            BadInput: A limit is too low to start Python.
            SandboxFailure: There is no sandbox, or it failed.
        """
        self.probe()
        return self._run(program, stdin, seconds, megabytes, threading.Event())

    async def arun(
        self, program: str, stdin: str = "", *, seconds: float = 5, megabytes: int = 512
    ) -> Outcome:
        """As `run`, beside the event loop. Where the task is cancelled, the program is killed first."""
        cancelled = threading.Event()

        def work() -> Outcome:
            self.probe()
            return self._run(program, stdin, seconds, megabytes, cancelled)

        running = asyncio.wrap_future(in_thread(work))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()
            await asyncio.wait([running])
            running.exception()
            raise

    def _run(
        self, program: str, stdin: str, seconds: float, megabytes: int, cancelled: threading.Event
    ) -> Outcome:
        if not 0 < seconds < math.inf:
            raise BadInput(f"a program cannot run for {seconds} seconds: give a number above 0")
        if megabytes < 64:
            raise BadInput(f"Python does not start in {megabytes} MB: give at least 64")
        text = program.encode("utf-8", "surrogatepass")
        began = time.monotonic()
        with ExitStack() as stack:
            start = {
                "bubblewrap": self._start_bubblewrap,
                "docker": self._start_docker,
                "none": self._start_bare,
            }[self.kind]
            arguments = _start_arguments(len(text), seconds, megabytes, self.kind)
            try:
                process, kill = start(stack, arguments, megabytes)
            except (OSError, subprocess.SubprocessError) as error:
                raise SandboxFailure(
                    f"the sandbox ({self.kind}) does not start ({error}); {self._ways_out()}"
                ) from error
            watched = watch(
                process,
                text + stdin.encode("utf-8", "surrogatepass"),
                until=began + CLOCK * seconds,
                megabytes=math.inf if self.kind == "docker" else megabytes,
                most_bytes=OUTPUT_KB << 10,
                cancelled=cancelled,
                kill=kill,
            )
        if watched.stdout[:1] != b"\0" and watched.limit is None:
            said = watched.stderr.decode("utf-8", "replace").strip()
            raise SandboxFailure(
                f"the sandbox ({self.kind}) does not start: "
                f"{said or f'exit status {watched.status}'}; {self._ways_out()}"
            )
        taken = time.monotonic() - began
        return Outcome(
            stdout=watched.stdout[1:].decode("utf-8", "replace"),
            stderr=watched.stderr.decode("utf-8", "replace"),
            status=None if watched.limit else watched.status,
            ended=watched.limit or self._ending(watched, taken, seconds),
            seconds=taken,
        )

    def _ending(self, watched: Watched, taken: float, seconds: float) -> Ending:
        if watched.status == 0:
            return "done"
        if watched.status == 128 + signal.SIGXCPU:
            return "time"
        if watched.status == 128 + signal.SIGKILL:
            # A second after SIGXCPU, which a program can ignore, or from Docker's limit of memory.
            if taken > math.ceil(seconds) + 1:
                return "time"
            return "memory" if self.kind == "docker" else "error"
        last = watched.stderr.rstrip().rpartition(b"\n")[2]
        return "memory" if last.startswith(b"MemoryError") else "error"

    def _try(self) -> None:
        if self.kind == "bubblewrap":
            try:
                self._root = interpreter_root()
            except (OSError, subprocess.SubprocessError) as error:
                raise SandboxFailure(
                    f"Python cannot be copied for the sandbox ({error}); {self._ways_out()}"
                ) from error
        outcome = self._run("", "", 30, 512, threading.Event())
        if outcome.ended != "done":
            raise SandboxFailure(
                f"an empty program does not end well in the sandbox ({self.kind}): "
                f"{outcome.stderr.strip() or outcome.ended}; {self._ways_out()}"
            )

    def _executable(self) -> str:
        if self.kind == "none":
            return sys.executable
        if self.kind == "bubblewrap" and sys.platform != "linux":
            raise SandboxFailure(f"bubblewrap runs on Linux only; {self._ways_out()}")
        name = "bwrap" if self.kind == "bubblewrap" else "docker"
        found = shutil.which(name)
        if not found:
            raise SandboxFailure(
                f"{self.kind} is not installed (no `{name}` on the PATH); {self._ways_out()}"
            )
        return found

    def _ways_out(self) -> str:
        ways = {
            "bubblewrap": "install bubblewrap 0.8 or newer (apt-get install bubblewrap) on a system that permits user "
            "namespaces, run this in a container that has it",
            "docker": f"start Docker and get the image (docker pull {self._image})",
            "none": "use a Python that starts",
        }
        others = {
            "bubblewrap": "choose --sandbox docker",
            "docker": "choose --sandbox bubblewrap",
            "none": "choose --sandbox bubblewrap or docker",
        }
        trusting = (
            ""
            if self.kind == "none"
            else ", or, only if you trust the code, --sandbox none --i-understand"
        )
        return f"generated code is not run: {ways[self.kind]}, {others[self.kind]}{trusting}"

    def _start_bubblewrap(self, stack: ExitStack, arguments: list[str], _: int) -> _Started:
        info, written = os.pipe()
        size = str(FILE_MB << 20)
        command = [
            *(
                self._found,
                "--unshare-all",
                "--unshare-user",
                "--disable-userns",
                "--cap-drop",
                "ALL",
            ),
            *(
                "--die-with-parent",
                "--new-session",
                "--hostname",
                "sandbox",
                "--info-fd",
                str(written),
            ),
            *("--ro-bind", str(self._root), "/"),
            *("--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom"),
            *("--size", size, "--tmpfs", "/work"),
            *("--size", size, "--tmpfs", "/dev/shm"),  # noqa: S108 - a mount point in the sandbox
            *("--chdir", "/work", "--", PYTHON, *arguments),
        ]
        try:
            process = _started(command, env={}, pass_fds=[written], drop_root=True)
        except BaseException:
            os.close(info)
            raise
        finally:
            os.close(written)
        first = first_process(info)
        if first is not None and process.poll() is not None:  # its number may be another's by now
            os.close(first)
            first = None
        if first is None:
            return process, process.kill
        stack.callback(os.close, first)
        return process, lambda: end_namespace(first)

    def _start_docker(self, _: ExitStack, arguments: list[str], megabytes: int) -> _Started:
        name = f"stepcraft-{uuid.uuid4().hex}"
        command = [
            *(
                self._found,
                "run",
                "--rm",
                "--interactive",
                "--init",
                "--pull",
                "never",
                "--name",
                name,
            ),
            *(
                "--network",
                "none",
                "--read-only",
                "--cap-drop",
                "ALL",
                "--user",
                f"{_NOBODY}:{_NOBODY}",
            ),
            *("--security-opt", "no-new-privileges", "--pids-limit", str(PROCESSES + 1)),
            *(
                "--memory",
                f"{megabytes}m",
                "--memory-swap",
                f"{megabytes}m",
                "--shm-size",
                f"{FILE_MB}m",
            ),
            *("--tmpfs", f"/work:rw,size={FILE_MB}m,mode=1777", "--workdir", "/work"),
            *("--entrypoint", "python", self._image, *arguments),
        ]

        def kill() -> None:
            if process.poll() is None:
                with suppress(OSError, subprocess.SubprocessError):
                    subprocess.run(  # noqa: S603 - as it was started
                        [self._found, "kill", name], check=False, capture_output=True, timeout=30
                    )
                process.kill()

        process = _started(command)
        return process, kill

    def _start_bare(self, stack: ExitStack, arguments: list[str], _: int) -> _Started:
        folder = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        process = _started([self._found, *arguments], cwd=folder, env={})

        def kill() -> None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        return process, kill


def _started(
    command: list[str],
    *,
    cwd: str = "/",
    env: dict[str, str] | None = None,
    pass_fds: Sequence[int] = (),
    drop_root: bool = False,
) -> "subprocess.Popen[bytes]":
    if drop_root and os.geteuid() == 0:
        # The switch is made by a program, because with `user=` Python forks, and what libraries such as gRPC do in a
        # forked process, for which they have threads, ends up in what the program wrote.
        switched = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", "--"]
        command = [*switched, *command]
    return subprocess.Popen(  # noqa: S603 - runs what it is made for
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=env,
        pass_fds=pass_fds,
        start_new_session=True,
    )


def _start_arguments(size: int, seconds: float, megabytes: int, kind: Kind) -> list[str]:
    # Without a namespace of users the kernel counts all processes of the user; Docker has a limit of its own.
    processes = PROCESSES if kind == "bubblewrap" else 0
    limits = (size, math.ceil(seconds), megabytes << 20, processes, OPEN_FILES, FILE_MB << 20)
    return ["-I", "-S", "-B", "-c", _START, *map(str, limits)]
