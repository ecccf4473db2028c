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
