"""Programs that try to break out of the sandbox, and what a caller sees of programs that do not."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from stepcraft.errors import BadInput
from stepcraft_papers.sandbox import OUTPUT_KB, Outcome, SandboxFailure, need_sandbox, run_program

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.usefixtures("sandbox")


def run(program: str, stdin: str = "", *, seconds: float = 5, megabytes: int = 256) -> Outcome:
    """Run a program, and another one after it, which must run as if nothing had been."""

    async def both() -> tuple[Outcome, Outcome]:
        first = await run_program(program, stdin, seconds=seconds, megabytes=megabytes)
        return first, await run_program("import os; print(os.listdir('.'))")

    outcome, after = asyncio.run(both())
    assert (after.stdout, after.stderr, after.ended) == ("[]\n", "", "done")
    return outcome


def running(marker: str) -> list[str]:
    """Return the command lines of the host's processes that hold a text."""
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except (OSError, UnicodeDecodeError):
            continue
    return [line for line in lines if marker in line and line.startswith("/python")]


def sleeper() -> tuple[str, str]:
    """Return a program that sleeps under a name of its own, and the name."""
    marker = f"marker-{uuid.uuid4().hex}"
    command = f"[sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}]"
    return f"import os, sys; os.execv(sys.executable, {command})", marker


def test_a_program_reads_its_input_and_is_main() -> None:
    outcome = run(
        "import sys; print(__name__, sys.argv, input() + input(), sorted(globals()))", "ab\nc\u20ac"
    )
    assert outcome.stdout.startswith("__main__ ['program.py'] abc\u20ac ['__annotations__', ")
    assert "os'" not in outcome.stdout
    assert (outcome.stderr, outcome.ended) == ("", "done")


def test_the_standard_library_is_there() -> None:
    modules = (
        "ast asyncio collections ctypes datetime decimal fractions hashlib itertools json lzma"
    )
    modules += " math random re sqlite3 ssl statistics string typing unittest zlib"
    outcome = run(
        f"for name in {modules.split()}: __import__(name)\n"
        "import dataclasses, tempfile\n"
        "@dataclasses.dataclass\nclass Point:\n    x: int\n"
        "open(tempfile.mkstemp(dir='.')[1], 'w').write('kept')\n"
        "print(Point(1))"
    )
    assert (outcome.stdout, outcome.stderr) == ("Point(x=1)\n", "")


@pytest.mark.parametrize(
    ("program", "last"),
    [
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError: division by zero"),
        ("x = (", "SyntaxError: '(' was never closed"),
        ("raise SystemExit(7)", ""),
        ("import os; os.kill(os.getpid(), 15)", ""),
        ("x = '\ud800'", "invalid continuation byte"),
    ],
)
def test_a_program_that_fails_says_why(program: str, last: str) -> None:
    outcome = run(program)
    assert (outcome.ended, outcome.stdout) == ("error", "")
    assert last in outcome.stderr.rpartition("\n  ")[2] + outcome.stderr


def test_the_environment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-parent")
    assert run("import os; print(sorted(os.environ))").stdout == "['PWD']\n"


def test_files_of_the_host_are_not_there(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    paths = ["/etc/passwd", "/proc/self", "/proc/1/environ", "/sys", "/usr", "/bin/sh"]
    paths += [str(Path.home()), __file__, str(secret), "../../../../etc/passwd"]
    outcome = run(
        "import os\n"
        f"for number, path in enumerate({paths!r}):\n"
        "    print(os.path.lexists(path))\n"
        "    os.symlink(path, str(number))\n"
        "    for mode in 'rw':\n"
        "        try: open(str(number), mode); print('opened', path)\n"
        "        except OSError: pass\n"
    )
    assert outcome.stdout.split() == ["False"] * len(paths)
    assert secret.read_text() == "secret"


def test_only_the_working_folder_can_be_written_and_is_small() -> None:
    outcome = run(
        "import os, errno\n"
        "for folder, _, names in os.walk('/'):\n"
        "    if os.access(folder, os.W_OK): print(folder)\n"
        "for path in ['/made', '/python/bin/python', '/dev/made']:\n"
        "    try: open(path, 'w'); print('wrote', path)\n"
        "    except OSError: pass\n"
        "try:\n"
        "    for number in range(40): open(f'{number}', 'wb').write(bytes(4 << 20))\n"
        "except OSError as error: print(errno.errorcode[error.errno], number)\n"
        "try: open('large', 'wb').truncate(1 << 40)\n"
        "except OSError as error: print(errno.errorcode[error.errno])"
    )
    assert outcome.stdout.split() in (
        ["/work", "ENOSPC", "7", "EFBIG"],
        ["/work", "ENOSPC", "8", "EFBIG"],
    )


def test_a_server_on_loopback_is_not_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        server.setblocking(False)
        abstract = f"\0stepcraft-test-{os.getpid()}"
        named.bind(abstract)
        named.listen()
        outcome = run(
            "import socket\n"
            f"for family, address in [(socket.AF_INET, {server.getsockname()!r}),"
            f" (socket.AF_UNIX, {abstract!r}), (socket.AF_INET, ('1.1.1.1', 53))]:\n"
            "    try: socket.socket(family).connect(address); print('reached')\n"
            "    except OSError as error: print(type(error).__name__)\n"
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    assert outcome.stdout == "ConnectionRefusedError\nConnectionRefusedError\nOSError\n"


def test_a_descriptor_of_the_parent_is_not_inherited() -> None:
    with Path(__file__).open() as file:
        os.set_inheritable(file.fileno(), True)
        outcome = run(
            "import os\n"
            "for number in range(64):\n"
            "    try: os.fstat(number); print(number)\n"
            "    except OSError: pass\n"
        )
    assert outcome.stdout.split() == ["0", "1", "2"]


@pytest.mark.parametrize(
    "start",
    ["os.fork()", "threading.Thread(target=print).start()", "subprocess.run(['/python'])"],
)
def test_a_program_starts_no_process_and_no_thread(start: str) -> None:
    outcome = run(f"import os, subprocess, threading\n{start}\nprint('started')")
    assert (outcome.ended, outcome.stdout) == ("error", "")


def test_a_memory_bomb_ends() -> None:
    outcome = run("kept = []\nwhile True: kept.append(bytearray(1 << 20))", seconds=5)
    assert (outcome.ended, outcome.stderr.split()[-1]) == ("error", "MemoryError")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_ends(stream: str) -> None:
    outcome = run(f"import sys\nwhile True: print('x' * 999, file=sys.{stream})", seconds=9)
    assert outcome.ended == "output"
    assert len(outcome.stdout + outcome.stderr) == OUTPUT_KB << 10


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "import signal, time\nfor name in range(1, 65):\n"
        "    try: signal.signal(name, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: time.sleep(1)",
        "import os, time\nos.close(1); os.close(2)\ntime.sleep(60)",
        "import sys\nsys.stdin.read()\nwhile True: pass",
    ],
    ids=["busy", "deaf", "silent", "after reading"],
)
def test_an_endless_loop_ends(loop: str) -> None:
    outcome = run("print('begun', flush=True)\n" + loop, "x" * 1_000_000, seconds=1)
    assert (outcome.ended, outcome.stdout) == ("time", "begun\n")


def test_no_signal_reaches_the_parent() -> None:
    outcome = run(
        "import os, signal\n"
        f"for process in [{os.getpid()}, {os.getppid()}, os.getppid(), 1, -{os.getpgrp()}, -1]:\n"
        "    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):\n"
        "        try: os.kill(process, number)\n"
        "        except OSError: pass\n"
        "print('alive', os.getppid(), os.getpid())"
    )
    assert outcome.stdout == "alive 1 2\n"


def test_no_way_to_more_rights() -> None:
    outcome = run(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(os.getuid() == os.geteuid() != 0)\n"
        "for flag in (0x10000000, 0x00020000, 0x40000000): print(libc.unshare(flag))\n"
        "print(libc.mount(b'none', b'/work', b'tmpfs', 0, None), libc.chroot(b'/work'))\n"
        "print(libc.umount2(b'/work', 2))\n"
        "try: os.setuid(0)\n"
        "except OSError: print('refused')\n"
    )
    assert outcome.stdout.split() == ["True", *["-1"] * 6, "refused"]


def test_no_limit_can_be_raised_and_the_first_process_has_them_all() -> None:
    """A program may take over the first process as a debugger does."""
    outcome = run(
        "import ctypes, resource\n"
        "for name in ('CPU', 'AS', 'NPROC', 'NOFILE', 'FSIZE', 'CORE'):\n"
        "    kind = getattr(resource, 'RLIMIT_' + name)\n"
        "    limit = resource.getrlimit(kind)\n"
        "    assert resource.prlimit(1, kind) == limit != (resource.RLIM_INFINITY,) * 2\n"
        "    try: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2); print(name)\n"
        "    except (OSError, ValueError): pass\n"
        "print('limited', ctypes.CDLL(None).ptrace(16, 1, 0, 0), flush=True)\n",
        seconds=1,
    )
    assert outcome.stdout in {"limited 0\n", "limited -1\n"}
    assert outcome.ended in {"done", "time"}


def test_a_program_is_gone_after_its_limit_and_after_a_cancellation() -> None:
    program, marker = sleeper()

    async def cancel() -> None:
        task = asyncio.create_task(run_program(program, seconds=60))
        while not await asyncio.to_thread(running, marker):
            assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert (
        run("import ctypes; ctypes.CDLL(None).prctl(1, 0)\n" + program, seconds=0.5).ended == "time"
    )
    assert running(marker) == []
    asyncio.run(cancel())
    assert running(marker) == []


def test_a_sandbox_dies_with_the_process_that_started_it() -> None:
    program, marker = sleeper()
    script = (
        "import asyncio\nfrom stepcraft_papers.sandbox import run_program\n"
        f"asyncio.run(run_program({program!r}, seconds=60))"
    )
    harness = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    while not running(marker):
        assert harness.poll() is None
    harness.send_signal(signal.SIGKILL)
    harness.wait()
    while running(marker):  # the time limit of the test ends it
        pass


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"seconds": 0}, "above 0"),
        ({"seconds": float("nan")}, "above 0"),
        ({"megabytes": 8}, "8 MB: give at least 64"),
    ],
)
async def test_a_limit_that_no_program_can_keep_is_refused(
    limits: dict[str, int], problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        await run_program("pass", **limits)  # type: ignore[arg-type]


@pytest.mark.parametrize("refusal", ["", "bwrap: setting up uid map: Permission denied"])
def test_without_a_sandbox_nothing_runs(monkeypatch: pytest.MonkeyPatch, refusal: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))
        if refusal:
            (folder / "bwrap").write_text(f"#!/bin/sh\necho '{refusal}' >&2\nexit 1\n")
            (folder / "bwrap").chmod(0o755)
            monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}:/usr/bin:/bin")
        with pytest.raises(SandboxFailure, match=refusal or "no `bwrap` on the PATH") as raised:
            need_sandbox()
    assert "apt-get install bubblewrap" in str(raised.value)
    assert "user namespaces" in str(raised.value)
