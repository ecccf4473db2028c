"""Sources that open when a test lets them: each name is another one, because a source is opened once a process."""

from collections.abc import Callable
from threading import Event

from langchain_core.retrievers import BaseRetriever

from tests.shelf import Shelf

MAY_OPEN = Event()


def __getattr__(name: str) -> Callable[[], BaseRetriever]:
    if name.startswith("slow"):
        return _slow_to_open
    raise AttributeError(name)


def _slow_to_open() -> BaseRetriever:
    """The source, once it may open, and after half a minute at the latest."""
    MAY_OPEN.wait(30)
    return Shelf()
