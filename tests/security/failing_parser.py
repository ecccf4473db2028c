"""A parser that fails as its document says; its process imports little, as that of a real one."""

from __future__ import annotations

import os


def fails(data: bytes) -> object:
    """A parser that does what it is told."""
    match data:
        case b"memory":
            return [bytearray(100_000_000) for _ in range(100)]
        case b"crash":
            os.abort()
        case b"hang":
            while True:
                pass
        case b"print":
            print("noise")  # noqa: T201
            os.write(1, b"noise")
        case b"deep":
            return _deep(0)
        case b"raise":
            raise KeyError(data)
    return os.getpid()


def _deep(depth: int) -> int:
    return _deep(depth + 1)


_seen: list[bytes] = []


def fails_the_second_time(data: bytes) -> int:
    """Return the number of the process for its first document; of a second one, end or fail as the document says."""
    _seen.append(data)
    if len(_seen) > 1:
        if data == b"memory":
            raise MemoryError
        os._exit(1)
    return os.getpid()
