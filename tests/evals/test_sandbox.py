"""Programs that try to break out of the sandbox, and what a caller sees of programs that do not."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stepcraft.errors import BadInput, SandboxFailure
from stepcraft.evals.sandbox import OUTPUT_KB, Outcome, Sandbox

ROOT = Path(__file__).parents[2]


@pytest.fixture
def contained(sandbox: Sandbox) -> Callable[..., Outcome]:
    """Runs a program, and another one after it, which must run as if nothing had been."""

    def run(program: str, *, seconds: float = 1, megabytes: int = 256) -> Outcome:
        outcome = sandbox.run(program, seconds=seconds, megabytes=megabytes)
        after = sandbox.run("print('next')")
        assert (after.stdout, after.stderr, after.ended) == ("next\n", "", "done")
        return outcome

    return run


def running(marker: str) -> list[str]:
    """The command lines of all processes, from the host's /proc, that hold a text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (
                (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
        except OSError:
            continue
        found += [line] if marker in line else []
    return found


def test_a_program_reads_its_input_and_is_main(sandbox: Sandbox) -> None:
    outcome = sandbox.run("import sys; print(__name__, sys.argv, input() + input())", "ab\nc\u20ac")
    assert (outcome.stdout, outcome.stderr) == ("__main__ ['program.py'] abc\u20ac\n", "")
    assert (outcome.status, outcome.ended) == (0, "done")
    assert 0 < outcome.seconds < 30


def test_the_standard_library_is_there(sandbox: Sandbox) -> None:
    modules = (
        "ast asyncio collections ctypes datetime decimal fractions hashlib itertools json lzma math"
    )
    modules += " multiprocessing random re sqlite3 ssl statistics string typing unittest zlib"
    outcome = sandbox.run(
        f"for name in {modules.split()}: __import__(name)\n"
        "import dataclasses, multiprocessing, tempfile\n"
        "@dataclasses.dataclass\nclass Point:\n    x: int\n"
        "open(tempfile.mkstemp(dir='.')[1], 'w').write('kept')\n"
        "print(Point(1), multiprocessing.get_context('fork').Pool(2).map(abs, [-3]))"
    )
    assert (outcome.stdout, outcome.stderr) == ("Point(x=1) [3]\n", "")


@pytest.mark.parametrize(
    ("program", "last"),
    [
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError: division by zero"),
        ("x = (", "SyntaxError: '(' was never closed"),
        ("assert 1 == 2, 'unequal'", "AssertionError: unequal"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("x = '\ud800'", "SyntaxError: "),
    ],
)
def test_an_exception_ends_a_program_with_its_own_traceback(
    sandbox: Sandbox, program: str, last: str
) -> None:
    outcome = sandbox.run(program)
    assert (outcome.status, outcome.ended, outcome.stdout) == (1, "error", "")
    assert outcome.stderr.splitlines()[-1].startswith(last) or last in outcome.stderr
    assert "_start" not in outcome.stderr
    assert '"program.py"' in outcome.stderr or "ud800" in program


@pytest.mark.parametrize(
    ("program", "status"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 15)", 143)],
)
def test_the_exit_status_is_told(sandbox: Sandbox, program: str, status: int) -> None:
    outcome = sandbox.run(program)
    assert (outcome.status, outcome.ended) == (status, "error")


def test_the_environment_is_empty(
    contained: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-parent")
    outcome = contained("import os; print(sorted(os.environ), os.path.exists('/proc/1/environ'))")
    assert outcome.stdout == "['PWD'] False\n"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        str(Path.home()),
        str(ROOT),
        __file__,
        "/proc/self",
        "/proc/1",
        "/sys",
        "/usr",
        "/bin/sh",
    ],
)
def test_files_of_the_host_are_not_there(contained: Callable[..., Outcome], path: str) -> None:
    assert Path(path).exists()
    outcome = contained(
        f"import os\nprint(os.path.lexists({path!r}))\nos.stat({path!r})",
    )
    assert outcome.stdout == "False\n"
    assert "FileNotFoundError" in outcome.stderr


def test_a_symbolic_link_out_of_the_working_folder_leads_nowhere(
    contained: Callable[..., Outcome], tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    outcome = contained(
        "import os\n"
        f"for number, target in enumerate(['/etc/passwd', {str(secret)!r}, '../../../../etc/passwd', '/proc/1/root']):\n"
        "    os.symlink(target, f'link{number}')\n"
        "    try: print(open(f'link{number}').read())\n"
        "    except OSError as error: print(type(error).__name__)\n"
        "    try: open(f'link{number}', 'w').write('changed')\n"
        "    except OSError as error: print(type(error).__name__)\n"
    )
    assert set(outcome.stdout.split()) <= {"FileNotFoundError", "PermissionError", "OSError"}
    assert outcome.stdout.count("\n") == 8
    assert secret.read_text() == "secret"


def test_only_the_working_folder_and_shared_memory_can_be_written(
    contained: Callable[..., Outcome], tmp_path: Path
) -> None:
    outcome = contained(
        "import os\n"
        f"for path in ['/made', '/python/bin/python', '/python/lib/made.py', '/dev/made', '/tmp/made', {str(tmp_path / 'made')!r}]:\n"
        "    try: open(path, 'w'); print('wrote', path)\n"
        "    except OSError: pass\n"
        "for folder, _, names in os.walk('/'):\n"
        "    if os.access(folder, os.W_OK): print(folder)\n"
    )
    assert sorted(outcome.stdout.split()) == ["/dev/shm", "/work"]
    assert list(tmp_path.iterdir()) == []


def test_the_next_program_finds_nothing_of_the_last(sandbox: Sandbox) -> None:
    sandbox.run("open('kept', 'w').write('1'); open('/dev/shm/kept', 'w').write('1')")
    outcome = sandbox.run("import os; print(os.listdir('.'), os.listdir('/dev/shm'))")
    assert outcome.stdout == "['program.py'] []\n"


def test_a_server_on_loopback_is_not_reached(
    contained: Callable[..., Outcome], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as named:
        server.setblocking(False)
        abstract = f"\0stepcraft-test-{os.getpid()}"
        named.bind(abstract)
        named.listen()
        outcome = contained(
            "import socket\n"
            f"for family, address in [(socket.AF_INET, {server.getsockname()!r}), (socket.AF_UNIX, {abstract!r})]:\n"
            "    try: socket.socket(family).connect(address); print('reached')\n"
            "    except OSError as error: print(type(error).__name__)\n"
            "try: socket.create_connection(('1.1.1.1', 53), 1)\n"
            "except OSError as error: print(type(error).__name__)\n"
        )
        with pytest.raises(BlockingIOError):
            server.accept()
    assert outcome.stdout == "ConnectionRefusedError\nConnectionRefusedError\nOSError\n"


def test_a_descriptor_of_the_parent_is_not_inherited(
    contained: Callable[..., Outcome], tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        outcome = contained(
            "import os\n"
            "for number in range(64):\n"
            "    try: os.fstat(number); print(number)\n"
            "    except OSError: pass\n"
        )
    assert outcome.stdout.split() == ["0", "1", "2"]


@pytest.mark.parametrize(
    "bomb",
    [
        "import os\nwhile True: os.fork()",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    ],
    ids=["processes", "stubborn", "threads"],
)
def test_a_fork_bomb_ends(contained: Callable[..., Outcome], bomb: str) -> None:
    outcome = contained(bomb, seconds=0.3)
    assert outcome.ended in {"error", "time", "memory"}
    assert outcome.seconds < 10


def test_no_more_processes_than_the_limit(contained: Callable[..., Outcome]) -> None:
    outcome = contained(
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while True:\n"
        "        if not os.fork(): time.sleep(60)\n"
        "        made += 1\n"
        "except OSError: print(made)"
    )
    assert 8 <= int(outcome.stdout) <= 16


@pytest.mark.parametrize(
    "bomb",
    [
        "kept = bytearray(1 << 30)",
        "kept = []\nwhile True: kept.append(bytearray(1 << 20))",
        "import os, time\nfor _ in range(3): os.fork()\nkept = b'x' * (90 << 20)\ntime.sleep(60)",
    ],
    ids=["at once", "bit by bit", "in children"],
)
def test_a_memory_bomb_ends(contained: Callable[..., Outcome], bomb: str) -> None:
    outcome = contained(bomb, seconds=2)
    assert outcome.ended == "memory"


def test_memory_that_processes_share_counts_once(contained: Callable[..., Outcome]) -> None:
    outcome = contained(
        "import os, time\nkept = b'x' * (90 << 20)\nfor _ in range(3): os.fork()\ntime.sleep(0.3)\n"
        "try:\n    while os.wait(): pass\nexcept ChildProcessError: print('here', flush=True)"
    )
    assert (outcome.ended, outcome.stdout) == ("done", "here\n" * 8)


@pytest.mark.parametrize("folder", ["/work", "/dev/shm"])
def test_files_cannot_fill_the_memory(contained: Callable[..., Outcome], folder: str) -> None:
    outcome = contained(
        "import os, errno\n"
        "try:\n"
        f"    for number in range(40): open(f'{folder}/{{number}}', 'wb').write(bytes(4 << 20))\n"
        "except OSError as error: print(errno.errorcode[error.errno], number)\n"
        f"try: open('{folder}/large', 'wb').truncate(1 << 40)\n"
        "except OSError as error: print(errno.errorcode[error.errno])"
    )
    assert outcome.stdout.split() in (["ENOSPC", "7", "EFBIG"], ["ENOSPC", "8", "EFBIG"])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_endless_output_ends(contained: Callable[..., Outcome], stream: str) -> None:
    outcome = contained(f"import sys\nwhile True: print('x' * 999, file=sys.{stream})")
    assert (outcome.ended, outcome.status) == ("output", None)
    assert len(outcome.stdout + outcome.stderr) in range(
        (OUTPUT_KB << 10) - 1, (OUTPUT_KB << 11) + 1
    )


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "import signal, time\nfor name in range(1, 65):\n    try: signal.signal(name, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True: time.sleep(1)",
        "import os, time\nos.close(1); os.close(2)\ntime.sleep(60)",
        "import sys\nsys.stdin.read()\nwhile True: pass",
    ],
    ids=["busy", "deaf", "silent", "after reading"],
)
def test_an_endless_loop_ends(contained: Callable[..., Outcome], loop: str) -> None:
    outcome = contained(loop, seconds=0.3)
    assert (outcome.ended, outcome.stdout) == ("time", "")
    assert outcome.seconds < 10


def test_no_signal_reaches_the_parent(contained: Callable[..., Outcome]) -> None:
    outcome = contained(
        "import os, signal\n"
        f"for process in [{os.getpid()}, {os.getppid()}, os.getppid(), 1, -{os.getpgrp()}, -1]:\n"
        "    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):\n"
        "        try: os.kill(process, number)\n"
        "        except OSError: pass\n"
        "print('alive', os.getppid(), os.getpid())"
    )
    assert outcome.stdout == "alive 1 2\n"


def test_no_way_to_more_rights(contained: Callable[..., Outcome]) -> None:
    outcome = contained(
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


def test_a_limit_cannot_be_raised(contained: Callable[..., Outcome]) -> None:
    outcome = contained(
        "import resource\n"
        "for name in ('CPU', 'AS', 'NPROC', 'NOFILE', 'FSIZE', 'CORE'):\n"
        "    kind = getattr(resource, 'RLIMIT_' + name)\n"
        "    try: resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2); print(name)\n"
        "    except (OSError, ValueError): pass\n"
    )
    assert (outcome.stdout, outcome.ended) == ("", "done")


def test_the_first_process_can_be_taken_over_and_gives_nothing(
    contained: Callable[..., Outcome],
) -> None:
    """A debugger's call stops it; what it could do then has the limits of the program."""
    outcome = contained(
        "import ctypes, resource\n"
        "for name in ('CPU', 'AS', 'NPROC', 'NOFILE', 'FSIZE', 'CORE'):\n"
        "    kind = getattr(resource, 'RLIMIT_' + name)\n"
        "    assert resource.prlimit(1, kind) == resource.getrlimit(kind) != (resource.RLIM_INFINITY,) * 2\n"
        "print('limited', ctypes.CDLL(None).ptrace(16, 1, 0, 0), flush=True)\n",
        seconds=0.2,
    )
    assert outcome.stdout in {"limited 0\n", "limited -1\n"}
    assert outcome.ended in {"done", "time"}


def test_a_daemon_does_not_outlive_its_program(contained: Callable[..., Outcome]) -> None:
    marker = f"marker-{os.getpid()}-{time.monotonic_ns()}"
    outcome = contained(
        "import os, sys, time\n"
        "if os.fork():\n"
        "    time.sleep(0.2)\n"
        "    print('leaving')\n"
        "    sys.exit()\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "os.close(1); os.close(2)\n"
        f"os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)', '{marker}'])\n"
    )
    assert (outcome.stdout, outcome.ended) == ("leaving\n", "done")
    assert running(marker) == []


def test_children_are_killed_at_the_limit(sandbox: Sandbox) -> None:
    marker = f"marker-{os.getpid()}-{time.monotonic_ns()}"
    outcome = sandbox.run(
        "import os, sys, time\n"
        "if not os.fork():\n"
        f"    os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)', '{marker}'])\n"
        "time.sleep(0.2)\n"
        "print(os.waitpid(-1, os.WNOHANG), flush=True)\n"
        "time.sleep(60)",
        seconds=0.2,
    )
    assert (outcome.ended, outcome.stdout) == ("time", "(0, 0)\n")
    assert running(marker) == []


def test_a_sandbox_dies_with_the_process_that_started_it(sandbox: Sandbox) -> None:
    marker = f"marker-{os.getpid()}-{time.monotonic_ns()}"
    program = f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}])"
    script = f"from stepcraft.evals.sandbox import Sandbox; Sandbox().run({program!r}, seconds=60)"
    shown = f"import time; time.sleep(60) {marker}"
    harness = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    try:
        _until(lambda: bool([line for line in running(shown) if line.startswith("/python")]))
    finally:
        harness.send_signal(signal.SIGKILL)
        harness.wait()
    _until(lambda: not [line for line in running(shown) if line.startswith("/python")])


def _until(state: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not state():
        assert time.monotonic() < ends


async def test_programs_run_beside_the_event_loop(sandbox: Sandbox) -> None:
    outcomes = await asyncio.gather(
        *(sandbox.arun("print(int(input()) ** 2)", str(number)) for number in range(12))
    )
    assert [outcome.stdout for outcome in outcomes] == [f"{number**2}\n" for number in range(12)]


async def test_a_cancelled_program_is_gone(sandbox: Sandbox) -> None:
    marker = f"marker-{os.getpid()}-{time.monotonic_ns()}"
    program = f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}])"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sandbox.arun(program, seconds=60), 0.3)
    assert running(marker) == []


@pytest.mark.parametrize(
    ("seconds", "megabytes"), [(0, 256), (-1, 256), (float("nan"), 256), (1, 8)]
)
def test_a_limit_that_no_program_can_keep_is_refused(
    sandbox: Sandbox, seconds: float, megabytes: int
) -> None:
    with pytest.raises(BadInput, match=r"give (a number above 0|at least 64)"):
        sandbox.run("pass", seconds=seconds, megabytes=megabytes)


def test_without_bubblewrap_nothing_runs_and_the_ways_out_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxFailure) as raised:
        Sandbox().run("print('ran')")
    for way in (
        "apt-get install bubblewrap",
        "container",
        "--sandbox docker",
        "--sandbox none --i-understand",
    ):
        assert way in str(raised.value)


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap runs on Linux only")
def test_where_bubblewrap_is_not_permitted_its_own_words_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal = "bwrap: setting up uid map: Permission denied"
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "bwrap").write_text(f"#!/bin/sh\necho '{refusal}' >&2\nexit 1\n")
        (folder / "bwrap").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        with pytest.raises(SandboxFailure, match=refusal) as raised:
            Sandbox().probe()
    assert "user namespaces" in str(raised.value)


def test_no_sandbox_has_to_be_asked_for() -> None:
    with pytest.raises(BadInput, match="--i-understand"):
        Sandbox("none")
    with pytest.raises(BadInput, match="choose one of bubblewrap, docker, none"):
        Sandbox("chroot")  # type: ignore[arg-type]


def test_without_a_sandbox_the_other_limits_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-parent")
    bare = Sandbox("none", i_understand=True)
    assert bare.probe().startswith("no sandbox")
    assert (
        bare.run("import os; print('OPENAI_API_KEY' in os.environ, input())", "x").stdout
        == "False x\n"
    )
    assert bare.run("while True: pass", seconds=0.3).ended == "time"
    assert bare.run("import time; time.sleep(60)", seconds=0.1).ended == "time"
    assert bare.run("kept = bytearray(1 << 30)", megabytes=256).ended == "memory"
    assert bare.run("while True: print('x' * 999)").ended == "output"


def test_docker_is_told_every_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The stand-in for `docker` notes what it is told, and runs what the container would run here."""
    stand_in = tmp_path / "docker"
    stand_in.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/told\n'
        f'while [ "$1" != python:test ]; do shift; done\nshift\ncd {tmp_path} && exec {sys.executable} "$@"\n'
    )
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    docker = Sandbox("docker", image="python:test")
    assert docker.probe() == "Docker, image python:test"
    assert docker.run("print(input())", "hello", megabytes=256).stdout == "hello\n"
    told = (tmp_path / "told").read_text()
    for option in (
        *(
            "run --rm",
            "--network none",
            "--read-only",
            "--cap-drop ALL",
            "--user 65534:65534",
            "--pull never",
        ),
        *(
            "no-new-privileges",
            "--pids-limit 17",
            "--memory 256m",
            "--memory-swap 256m",
            "--tmpfs /work:rw,size=32m",
        ),
    ):
        assert option in told


def test_docker_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxFailure, match="docker pull python:"):
        Sandbox("docker").probe()
