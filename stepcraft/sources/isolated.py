"""Parsers in processes of their own, with limits of seconds and memory.

A library that parses HTML or PDF cannot be interrupted, may take hours or gigabytes for a small hostile document, may
crash, and holds the interpreter's lock while it works, so that no thread and no event loop gets on. A process of its
own can be bounded by the operating system and killed, and the next document gets another one. `multiprocessing` is not
used, because its processes import the caller's main module again.
"""

import faulthandler
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from atexit import register as at_exit
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from multiprocessing.spawn import get_executable
from pathlib import Path
from typing import Any

from stepcraft.errors import SourceFailure

MAX_MB = 400
"""The memory that a parser may use, in megabytes, where the operating system can bound it."""

_AT_ONCE = 2
"""The most documents that are parsed at the same time."""
_IDLE_S = 120
"""Seconds after which a process without work ends."""
_REUSED_S = 90
"""Seconds for which an idle process is used again; it must not end while a document is on its way to it."""
_LARGE_MB = 150
"""A process that has grown beyond this ends after its document, and with it the memory."""
_SLACK = 4
"""How many times as long as its processor time a document may take by the clock."""
_LATE = 1
"""The exit code of a process whose time is up, as faulthandler sets it."""
_MAX_REPLY = 100_000_000


class Unparsed(Exception):
    """A document cannot be parsed. The message is the reason, a clause whose subject is the document."""


def isolated(parser: str, data: bytes, *, seconds: float, **options: str) -> Any:  # noqa: ANN401 - JSON
    """Return what a parser makes of a document, in a process of its own.

    Args:
        parser: `package.module:function`, which takes the data and the options, and returns JSON values. The module is
            imported in that process, which is not counted in the seconds.
        data: the document.
        seconds: how much processor time it may take; by the clock it may take up to four times as long.
        options: further arguments of the parser.

    Raises:
        Unparsed: the parser raised it or anything else, took too long, needed too much memory, or crashed.
        SourceFailure: no process can be started.
    """
    return _pool(os.getpid()).call(parser, data, seconds, options)


def prepare(parser: str) -> None:
    """Start a process for a parser unless one waits, so that the first document need not wait for it."""
    pool = _pool(os.getpid())
    if not pool.is_ready:
        with suppress(Unparsed):
            pool.call(parser, b"", _IDLE_S, {})


class _Worker:
    """A process that parses one document after the other."""

    def __init__(self) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from stepcraft.sources.isolated import serve; serve()"
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and code of this module
                [get_executable(), "-I", "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise SourceFailure(
                f"no process can be started to parse documents: {error.strerror}; check the limits of this machine"
            ) from error
        self.used = time.monotonic()
        self.is_new = True

    @property
    def usable(self) -> bool:
        """Whether it waits for the next document."""
        return self._process.poll() is None and time.monotonic() - self.used < _REUSED_S

    @property
    def was_late(self) -> bool:
        """Whether it ended because a document took too long."""
        return self._process.returncode in {_LATE, -getattr(signal, "SIGXCPU", 0)}

    def call(self, request: dict[str, Any], data: bytes) -> Any:  # noqa: ANN401 - JSON
        """The reply to a request; None if the process ended without one."""
        assert self._process.stdin  # noqa: S101 - it was asked for
        assert self._process.stdout  # noqa: S101 - the same
        with suppress(OSError):  # it ended, and there is no reply
            self._process.stdin.write(json.dumps({**request, "size": len(data)}).encode() + b"\n")
            self._process.stdin.write(data)
            self._process.stdin.flush()
        size = int(self._process.stdout.readline(20).strip() or -1)
        reply = self._process.stdout.read(size) if 0 <= size <= _MAX_REPLY else b""
        if not reply or len(reply) < size:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(1)  # it is about to end, with a code that tells why
            return None
        self.used, self.is_new = time.monotonic(), False
        return json.loads(reply)

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                with suppress(OSError):  # what was not yet sent is lost
                    pipe.close()


class _Pool:
    """The workers of this process."""

    def __init__(self) -> None:
        self._turns = threading.BoundedSemaphore(_AT_ONCE)
        self._lock = threading.Lock()
        self._workers: set[_Worker] = set()
        self._idle: list[_Worker] = []

    def call(self, parser: str, data: bytes, seconds: float, options: dict[str, str]) -> Any:  # noqa: ANN401 - JSON
        """The value that a parser returned."""
        with self._turns:
            worker = self._taken()
            is_new, reply, began = worker.is_new, None, time.monotonic()
            try:
                reply = worker.call(
                    {"parser": parser, "seconds": seconds, "options": options}, data
                )
            finally:
                self._put_back(worker, usable=reply is not None and not reply["last"])
        # With the same exit code a process ends whose start failed.
        is_late = worker.was_late and time.monotonic() - began >= seconds / 2
        if not is_new and (bool(reply.get("full")) if reply else not is_late):
            # What came before may have taken a part of the memory.
            return self.call(parser, data, seconds, options)
        if reply is None:
            raise Unparsed(
                f"it takes more than {seconds:g} s to parse"
                if is_late
                else f"its parser crashed, or needs more than {MAX_MB} MB of memory"
            )
        if "reason" in reply:
            raise Unparsed(str(reply["reason"]))
        return reply["value"]

    @property
    def is_ready(self) -> bool:
        """Whether a worker waits."""
        with self._lock:
            return any(worker.usable for worker in self._idle)

    def end(self) -> None:
        """End all workers."""
        with self._lock:
            for worker in self._workers:
                worker.end()

    def _taken(self) -> _Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.usable:
                    return worker
                self._workers.discard(worker)
                worker.end()
            worker = _Worker()
            self._workers.add(worker)
            return worker

    def _put_back(self, worker: _Worker, *, usable: bool) -> None:
        with self._lock:
            if usable:
                self._idle.append(worker)
            else:
                self._workers.discard(worker)
                worker.end()


@cache
def _pool(pid: int) -> _Pool:
    """One for each process: a fork must not write into the pipes of its parent, nor end its workers."""
    pool = _Pool()
    at_exit(lambda: pool.end() if os.getpid() == pid else None)
    return pool


def serve() -> None:
    """Parse the documents that come in on the standard input: what the process of a worker does."""
    # It reaches all processes of a terminal, and the parent ends its workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, target = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a device
        os.dup2(nowhere.fileno(), 1)  # what a library prints is no reply
        _bound_memory(MAX_MB)
        while True:
            # Its thread ends the process without the interpreter's lock, also where a parser keeps that.
            faulthandler.dump_traceback_later(_IDLE_S, exit=True, file=nowhere)
            line = source.readline()
            if not line:
                return
            request = json.loads(line)
            module, _, name = request["parser"].partition(":")
            try:
                parser = getattr(import_module(module), name)
            except (
                Exception
            ):  # such as for want of memory; no exit code of a traceback, which is that of lateness
                sys.exit(2)
            try:
                data = source.read(request["size"])
                slack = _bound_seconds(request["seconds"])
                faulthandler.dump_traceback_later(
                    slack * request["seconds"], exit=True, file=nowhere
                )
                reply = _reply(partial(parser, data, **request["options"]))
                reply["last"] = "full" in reply or _peak_mb() > _LARGE_MB
                written = json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace")
                target.write(b"%d\n" % len(written) + written)
                target.flush()
            except MemoryError:  # no traceback either: the document gets a new process
                sys.exit(2)


def _reply(parse: Callable[[], Any]) -> dict[str, Any]:
    """Parse one document; the value, or the reason why there is none."""
    try:
        return {"value": parse()}
    except Unparsed as error:
        return {"reason": str(error)}
    except RecursionError:
        return {"reason": "it is nested too deeply"}
    except MemoryError:
        return {"reason": f"it needs more than {MAX_MB} MB of memory to parse", "full": True}
    except Exception as error:  # a hostile document can fail anywhere in the parser
        return {"reason": f"its parser failed ({type(error).__name__})"}


def _bound_seconds(seconds: float) -> float:
    """Bound the processor time from now on, where that can be; return how much longer the clock may run meanwhile.

    A machine that is busy with other things needs longer for the same work.
    """
    with suppress(ImportError, ValueError, OSError):  # Windows has no such limit
        import resource  # noqa: PLC0415 - Windows has none

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))
        return _SLACK
    return 1


def _bound_memory(megabytes: int) -> None:
    with suppress(
        ImportError, ValueError, OSError
    ):  # Windows and macOS cannot, or a lower limit is in force
        import resource  # noqa: PLC0415 - Windows has none

        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _peak_mb() -> float:
    with suppress(
        OSError, StopIteration
    ):  # only Linux has it; its `ru_maxrss` counts what ran before `exec`
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / (1 << 10)
    with suppress(ImportError):
        import resource  # noqa: PLC0415 - Windows has none

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    return 0
