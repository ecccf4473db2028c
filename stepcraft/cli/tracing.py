"""LangSmith traces of what the command line runs. They never fail a command, and hold up its end only briefly."""

import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import requests
from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.run_helpers import tracing_context
from langsmith.utils import get_api_url, tracing_is_enabled
from rich.console import Console
from urllib3.util import Retry

from stepcraft.cli.output import write

_CONNECT_S, _READ_S = 1.0, 2.0
_AFTER_RUN_S = 2.0
"""How long traces may still be sent when the run is over."""


@contextmanager
def tracing(err: Console) -> Generator[list[LangChainTracer]]:
    """Provide the callbacks that trace a run; none if tracing is off or LangSmith does not respond.

    A warning on `err` says if the run is not traced or its trace is incomplete.
    """
    if not tracing_is_enabled():
        yield []
        return
    endpoint = get_api_url(None)
    if not _responds(endpoint):
        _warn(err, f"LangSmith does not answer at {endpoint}; this run is not traced")
        with tracing_context(enabled=False):
            yield []
        return
    logger = logging.getLogger("langsmith")
    logger.addHandler(_LossReport(err))
    logger.propagate = False
    session = _Session()
    client = Client(session=session, retry_config=Retry(total=0))
    try:
        yield [LangChainTracer(client=client)]
    finally:
        session.deadline = time.monotonic() + _AFTER_RUN_S


class _Session(requests.Session):
    """The HTTP session of the LangSmith client, which bounds how long sending traces takes.

    The client sends from threads that the interpreter waits for at exit, tries each batch three times, and for uploads
    sets a timeout of its own. So the bound has to be below the client.
    """

    deadline = float("inf")

    def request(self, *args: Any, **options: Any) -> requests.Response:  # noqa: ANN401 - the signature of Session
        """Send a request within what time is left; raise ConnectionError if that is none."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise requests.ConnectionError("the run is over")
        options["timeout"] = (min(_CONNECT_S, left), min(_READ_S, left))
        return super().request(*args, **options)


class _LossReport(logging.Handler):
    """Replaces the client's messages about failed uploads, which fill the screen, by one warning."""

    def __init__(self, err: Console) -> None:
        super().__init__()
        self._err = err
        self._warned = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._warned and record.getMessage().startswith("Failed"):
            self._warned = True
            _warn(self._err, "LangSmith did not take the whole trace of this run")


def _warn(err: Console, message: str) -> None:
    write(err, f"warning: {message}", style="yellow")


def _responds(endpoint: str) -> bool:
    """Whether the endpoint answers anything, be it an error."""
    try:
        with urlopen(f"{endpoint}/info", timeout=_READ_S):  # noqa: S310 - the user's own setting
            return True
    except HTTPError as error:
        error.close()
        return True
    except OSError:
        return False
