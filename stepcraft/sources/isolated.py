"""Run parsers in separate processes, with limits on time and memory.

A library that parses HTML or PDF cannot be interrupted, may take hours or gigabytes for a small
hostile document, and may crash. The operating system can limit a separate process, and a failed
process is replaced for the next document. `multiprocessing` and pebble are not used, because their
processes import the caller's main module again.
"""

import atexit
import json
import math
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing.spawn import get_executable
from queue import LifoQueue
from typing import Any, BinaryIO, cast

from stepcraft.encoding import Unreadable
from stepcraft.errors import SourceFailure

MAX_MB = 600
"""The memory that a parser may use, in megabytes, if the operating system can limit it."""

_AT_ONCE = 2
"""The maximum number of documents that are parsed at the same time."""
_SLACK = 4
"""The allowed ratio of wall-clock time to processor time, which leaves room for a busy machine."""
_IDLE_S = 60
"""The number of seconds after which an idle process ends."""
_Process = subprocess.Popen[bytes]
_PARSED, _UNREADABLE, _FAILED = "parsed", "unreadable", "failed"
"""The kinds of replies."""


class NotParsed(Unreadable):
    """A parser failed, possibly because of the current state of this machine."""


def isolated(parser: str, data: bytes, *, seconds: float, **options: str) -> Any:  # noqa: ANN401
    """Return the result of parsing a document in a separate process.

    Args:
        parser: `package.module:function`, which takes the data and the options, and returns JSON.
        data: The document.
        seconds: The maximum processor time, not counting the import of the module.
        options: Additional arguments for the parser.

    Raises:
        Unreadable: The parser reported that the document cannot be read.
        NotParsed: The parser raised any other error, took too much time or memory, or crashed.
        SourceFailure: No process can be started.
    """
    request = json.dumps([parser, len(data), seconds, options]).encode() + b"\n" + data
    waiting, reusable = _slots(os.getpid()), None
    used = waiting.get()
    try:
        process = used or _start()
        reply = _reply(process, request)
        if used and (not reply or reply[0] == _FAILED):
            # It had ended, or an earlier document had used up part of its memory.
            _end(process)
            process = _start()
            reply = _reply(process, request)
        reusable = process if reply else None
    finally:
        waiting.put(reusable)
    if not reply:
        raise NotParsed(f"its parser crashed, or needs more than {seconds:g} s or {MAX_MB} MB")
    kind, value = reply
    if kind == _FAILED:
        raise NotParsed(value)
    if kind == _UNREADABLE:
        raise Unreadable(value)
    return value


@cache
def _slots(_pid: int) -> LifoQueue[_Process | None]:
    """Return a queue with one slot per concurrent document: an idle process, or None.

    A forked process gets its own queue, since it must not write to its parent's pipes.
    """
    slots: LifoQueue[_Process | None] = LifoQueue()
    for _ in range(_AT_ONCE):
        slots.put(None)
    return slots


@atexit.register
def end() -> None:
    """End the idle processes."""
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
        raise SourceFailure(f"no process can be started to parse documents: {error}") from error


def _reply(process: _Process, request: bytes) -> list[Any]:
    """Return the kind and value of a reply, or [] if the process has ended without one."""
    pipes = cast("tuple[BinaryIO, BinaryIO]", (process.stdin, process.stdout))
    with suppress(OSError):  # it has ended
        pipes[0].write(request)
        pipes[0].flush()
    line = pipes[1].readline()
    if line.endswith(b"\n"):
        return list(json.loads(line))
    _end(process)
    return []


def _end(process: _Process) -> None:
    with suppress(OSError), process:  # anything not yet sent is lost
        process.kill()


def serve() -> None:
    """Run a parser process's main loop, parsing documents from standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches all processes in a terminal
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # output printed by a library is not a reply
    alarm = getattr(signal, "alarm", int)  # not available on Windows
    while True:
        alarm(_IDLE_S)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        name, size, seconds, options = json.loads(line)
        alarm(_IDLE_S + math.ceil(_SLACK * seconds))
        data = sys.stdin.buffer.read(size)
        module, _, function = name.partition(":")
        parser = getattr(import_module(module), function)
        _bound(seconds)
        try:
            reply = [_PARSED, parser(data, **options)]
        except Unreadable as error:
            reply = [_UNREADABLE, str(error)]
        except MemoryError:
            return
        except Exception as error:  # a hostile document can fail anywhere in the parser
            reply = [_FAILED, f"it cannot be read as {function} ({type(error).__name__})"]
        target.write(json.dumps(reply).encode() + b"\n")
        target.flush()


def _bound(seconds: float) -> None:
    """Limit processor time and memory from now on."""
    with suppress(ImportError):  # not available on Windows
        import resource

        limits = {
            resource.RLIMIT_CPU: math.ceil(time.process_time() + seconds),
            resource.RLIMIT_AS: MAX_MB << 20,
        }
        for limit, most in limits.items():
            with suppress(ValueError, OSError):  # a lower limit is in force, or macOS has none
                resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))
