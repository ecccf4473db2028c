"""Parsers in processes of their own, with limits of seconds and memory.

A library that parses HTML or PDF cannot be interrupted, may take hours or gigabytes for a small
hostile document, and may crash. The operating system bounds a process, and the next document gets
another one. `multiprocessing` and pebble are not used, because their processes import the caller's
main module again.
"""

import atexit
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.spawn import get_executable
from queue import LifoQueue
from typing import Any

from stepcraft.errors import SourceFailure

MAX_MB = 600
"""The memory that a parser may use, in megabytes, where the operating system can bound it."""

_AT_ONCE = 2
"""The most documents that are parsed at the same time."""
_SLACK = 4
"""How many times its processor time a document may take by the clock: a machine may be busy."""
_START_S = 30
_IDLE_S = 60
"""Seconds after which a process without work ends."""
_LARGE = 2_000_000
"""Bytes of a document after which a process ends, and with it the memory that it took."""
_LATE = {-getattr(signal, name, 1) for name in ("SIGKILL", "SIGXCPU")}
"""The exit codes of a process whose time is up."""


_Process = subprocess.Popen[bytes]
_Reply = dict[str, Any] | int
"""A reply, or the exit code of a process that has ended without one."""


class Unparsed(Exception):
    """A document cannot be parsed. The message is the reason, a clause about the document."""


def isolated(parser: str, data: bytes, *, seconds: float, **options: str) -> Any:  # noqa: ANN401
    """Return what a parser makes of a document, in a process of its own.

    Args:
        parser: `package.module:function`, which takes the data and the options, and returns JSON.
        data: The document.
        seconds: How much processor time it may take, the import of the module not counted.
        options: Further arguments of the parser.

    Raises:
        Unparsed: The parser raised it or anything else, took too much time or memory, or crashed.
        SourceFailure: No process can be started.
    """
    request = json.dumps([parser, len(data), seconds, options]).encode() + b"\n" + data
    waiting = _slots(os.getpid())
    process: _Process | None = None
    try:
        process, reply = _answered(waiting.get(), request, seconds)
    finally:
        waiting.put(process)
    if isinstance(reply, dict) and "value" in reply:
        return reply["value"]
    if isinstance(reply, dict):
        raise Unparsed(reply["reason"])
    if reply in _LATE:
        raise Unparsed(f"it takes more than {seconds:g} s to parse")
    raise Unparsed(f"its parser crashed, or needs more than {MAX_MB} MB of memory")


def _answered(
    waiting: _Process | None, request: bytes, seconds: float
) -> tuple[_Process | None, _Reply]:
    """Return the reply, and the process if it can be used again."""
    process = waiting or _start()
    reply = _reply(process, request, seconds)
    if isinstance(reply, dict) and len(request) < _LARGE:
        return process, reply
    _end(process)
    if waiting and isinstance(reply, int) and reply not in _LATE:
        # It had ended, or an earlier document held a part of its memory.
        return _answered(None, request, seconds)
    return None, reply


@cache
def _slots(_pid: int) -> LifoQueue[_Process | None]:
    """Return, for each document that may be parsed now, a process that waits for it, or None.

    A fork gets others, since it must not write into the pipes of its parent.
    """
    slots: LifoQueue[_Process | None] = LifoQueue()
    for _ in range(_AT_ONCE):
        slots.put(None)
    return slots


@atexit.register
def end() -> None:
    """End the processes that wait for a document."""
    for process in filter(None, _slots(os.getpid()).queue):
        _end(process)
    _slots.cache_clear()


def _start() -> _Process:
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        "from stepcraft.sources.isolated import serve; serve()"
    )
    command, pipe = [get_executable(), "-I", "-c", code], subprocess.PIPE
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter, and code of this module
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
        )
    except OSError as error:
        raise SourceFailure(
            f"no process can be started to parse documents: {error.strerror}; "
            "check the limits of this machine"
        ) from error


def _reply(process: _Process, request: bytes, seconds: float) -> _Reply:
    assert process.stdin  # noqa: S101 - a pipe
    assert process.stdout  # noqa: S101 - a pipe
    timer = threading.Timer(_START_S + _SLACK * seconds, process.kill)
    timer.start()
    try:
        with suppress(OSError):  # it has ended
            process.stdin.write(request)
            process.stdin.flush()
        line = process.stdout.readline()
        return json.loads(line) if line.endswith(b"\n") else process.wait()
    finally:
        timer.cancel()


def _end(process: _Process) -> None:
    with suppress(OSError), process:  # what was not yet sent is lost
        process.kill()


def serve() -> None:
    """Parse the documents that come in on the standard input: what such a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches all processes of a terminal
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no reply
    alarm = getattr(signal, "alarm", int)  # Windows has none
    while True:
        alarm(_IDLE_S)
        line = sys.stdin.buffer.readline()
        alarm(0)
        if not line:
            return
        name, size, seconds, options = json.loads(line)
        data = sys.stdin.buffer.read(size)
        module, _, function = name.partition(":")
        parser = getattr(import_module(module), function)
        _bound(seconds)
        try:
            reply = {"value": parser(data, **options)}
        except Unparsed as error:
            reply = {"reason": str(error)}
        except RecursionError:
            reply = {"reason": "it is nested too deeply"}
        except MemoryError:
            return
        except Exception as error:  # a hostile document can fail anywhere in the parser
            reply = {"reason": f"it cannot be read as {function} ({type(error).__name__})"}
        target.write(json.dumps(reply).encode() + b"\n")
        target.flush()


def _bound(seconds: float) -> None:
    """Bound processor time and memory from now on."""
    with suppress(ImportError):  # Windows bounds nothing
        import resource

        limits = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_CPU: math.ceil(time.process_time() + seconds),
            resource.RLIMIT_AS: MAX_MB << 20,
        }
        for limit, most in limits.items():
            with suppress(ValueError, OSError):  # a lower limit is in force, or macOS has none
                resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))
