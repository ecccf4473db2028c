"""Watching a process that may do anything: what is read of it, what it takes, and its end."""

import json
import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Limit = Literal["time", "memory", "output"]

_LOOK_S = 0.05
"""How often the memory and the clock are looked at."""
_END_S = 10.0
"""How long a killed process may take to be gone."""
_PIECE = 1 << 16
_STDIN, _STDOUT, _STDERR, _END = range(4)


@dataclass(frozen=True)
class Watched:
    """What a process did."""

    stdout: bytes
    stderr: bytes
    status: int
    """Its exit status, 128 and the signal's number for a signal."""
    limit: Limit | None
    """The limit at which it was killed."""


def watch(
    process: "subprocess.Popen[bytes]",
    stdin: bytes,
    *,
    until: float,
    megabytes: float,
    most_bytes: int,
    cancelled: threading.Event,
    kill: Callable[[], None],
) -> Watched:
    """Feed a process, read what it writes, and kill it at a limit; return when it has ended.

    Args:
        process: A process with a pipe for each stream; all three are closed.
        stdin: What it reads.
        until: When it is killed, as `time.monotonic` counts.
        megabytes: The memory of it and the processes it started, together; only Linux tells it.
        most_bytes: The length that its standard output, and its standard error, may have.
        cancelled: Kills it when set.
        kill: Kills it and what it started.
    """
    written: dict[int, bytearray] = {_STDOUT: bytearray(), _STDERR: bytearray()}
    limit: Limit | None = None
    with process, selectors.DefaultSelector() as selector, _end_of(process) as end:
        try:
            _register(selector, process, end)
            left = memoryview(stdin)
            looked = time.monotonic()
            while limit is None and not cancelled.is_set():
                has_ended = process.poll() is not None
                events = selector.select(0 if has_ended else _LOOK_S)
                for key, _ in events:
                    if key.data == _STDIN:
                        left = _feed(selector, key, left)
                    elif key.data != _END and (part := os.read(key.fd, _PIECE)):
                        written[key.data] += part
                    else:
                        selector.unregister(key.fileobj)
                now = time.monotonic()
                if any(len(text) > most_bytes for text in written.values()):
                    limit = "output"
                elif has_ended and not any(key.data in written for key, _ in events):
                    break
                elif now > until:
                    limit = "time"
                elif now > looked + _LOOK_S:
                    looked = now
                    limit = "memory" if _megabytes(process.pid) > megabytes else None
        finally:
            kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_END_S)
            process.kill()
    status = process.returncode
    return Watched(
        bytes(written[1][:most_bytes]),
        bytes(written[2][:most_bytes]),
        status if status >= 0 else 128 - status,
        limit,
    )


@contextmanager
def _end_of(process: "subprocess.Popen[bytes]") -> Generator[int | None, None, None]:
    """Give a descriptor that can be read when a process has ended; None where the system has none, or it has ended."""
    if sys.platform != "linux" or process.poll() is not None:
        yield None
        return
    end = os.pidfd_open(process.pid)
    try:
        yield end
    finally:
        os.close(end)


def _register(
    selector: selectors.BaseSelector, process: "subprocess.Popen[bytes]", end: int | None
) -> None:
    for number, pipe in enumerate((process.stdin, process.stdout, process.stderr)):
        if pipe is None:
            raise ValueError("a watched process needs three pipes")
        os.set_blocking(pipe.fileno(), False)
        selector.register(pipe, selectors.EVENT_READ if number else selectors.EVENT_WRITE, number)
    if end is not None:
        selector.register(end, selectors.EVENT_READ, _END)


def _feed(
    selector: selectors.BaseSelector, key: selectors.SelectorKey, left: memoryview
) -> memoryview:
    """Write some of what is left; close the pipe behind the last of it, or where nobody reads."""
    try:
        left = left[os.write(key.fd, left[:_PIECE]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        left = left[:0]
    if not left:
        selector.unregister(key.fileobj)
        key.fileobj.close()  # type: ignore[union-attr]
    return left


def _megabytes(process: int) -> float:
    """Return the memory of a process and all below it; what several share is counted once."""
    kilobytes, waiting = 0, [process]
    while waiting:
        folder = Path("/proc") / str(waiting.pop())
        with suppress(OSError, ValueError, IndexError):  # it has ended, or this is not Linux
            for thread in (folder / "task").iterdir():
                with suppress(OSError):
                    waiting += map(int, (thread / "children").read_text("ascii").split())
            shares = (folder / "smaps_rollup").read_text("ascii").partition("\nPss:")[2]
            kilobytes += int(shares.split()[0])
    return kilobytes / 1024


def first_process(info: int) -> int | None:
    """Return a descriptor of the first process in a sandbox, from what bubblewrap tells; None where there is none."""
    told = b""
    with os.fdopen(info, "rb", buffering=0) as source:
        while b"}" not in told and (part := source.read(4096)):
            told += part
    try:
        return os.pidfd_open(json.loads(told)["child-pid"])
    except (OSError, ValueError, KeyError):
        return None


def end_namespace(first: int) -> None:
    """Kill the first process of a sandbox, which ends all others in it, and wait until they are gone."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(first, signal.SIGKILL)
    gone = select.poll()
    gone.register(first, select.POLLIN)
    gone.poll(10_000)
