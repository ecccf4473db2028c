"""LangSmith traces of what the command line runs. They never fail a command, and hold up its end only briefly."""

import logging
import os
from collections.abc import Generator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from functools import partial
from http.client import HTTPException
from threading import Timer
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import requests
from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.run_helpers import tracing_context
from langsmith.utils import get_api_url, get_env_var, is_env_var_truish, tracing_is_enabled
from rich.console import Console
from urllib3.util import Retry

from stepcraft.cli.output import write
from stepcraft.concurrency import in_thread, within
from stepcraft.secrets import redacted

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
    if not _goes_to_collector_alone() and not _responds(endpoint):
        _warn(err, f"LangSmith does not answer at {endpoint}; this run is not traced")
        with tracing_context(enabled=False):
            yield []
        return
    for library, receiver in (("langsmith", "LangSmith"), ("opentelemetry", "the OpenTelemetry collector")):
        logger = logging.getLogger(library)
        logger.addHandler(_LossReport(err, receiver))
        logger.propagate = False
    # The exporter, where LANGSMITH_OTEL_ENABLED asks for it, tries for ten seconds at exit.
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", f"{_AFTER_RUN_S:g}")
    session = _Session()
    client = Client(session=session, retry_config=Retry(total=0), anonymizer=redacted)
    try:
        yield [LangChainTracer(client=client)]
    finally:
        ends = Timer(_AFTER_RUN_S, session.over.set_result, [None])
        ends.daemon = True
        ends.start()


class _Session(requests.Session):
    """The HTTP session of the LangSmith client, which bounds how long sending traces takes.

    The client sends from threads that the interpreter waits for at exit, tries each batch three times, and for uploads
    sets a timeout of its own; and the timeout of a request is that between two bytes. So the bound has to be below the
    client, and the request in a thread that nobody waits for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.over: Future[Any] = Future()
        """Done when nothing may be sent any more."""

    def request(self, *args: Any, **options: Any) -> requests.Response:  # noqa: ANN401 - the signature of Session
        """Send a request; raise ConnectionError if it is not answered before the end."""
        options["timeout"] = (_CONNECT_S, _READ_S)
        if not self.over.done():
            sent: Future[Any] = in_thread(partial(super().request, *args, **options))
            wait([sent, self.over], return_when=FIRST_COMPLETED)
            if sent.done():
                reply: requests.Response = sent.result()
                return reply
        raise requests.ConnectionError("the run is over")


class _LossReport(logging.Handler):
    """Replaces a client's messages about failed uploads, which fill the screen, by one warning."""

    def __init__(self, err: Console, receiver: str) -> None:
        super().__init__()
        self._err = err
        self._receiver = receiver
        self._warned = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._warned and record.getMessage().startswith("Failed"):
            self._warned = True
            _warn(self._err, f"{self._receiver} did not take the whole trace of this run")


def _warn(err: Console, message: str) -> None:
    write(err, f"warning: {message}", style="yellow")


def _goes_to_collector_alone() -> bool:
    """Whether traces are sent to an OpenTelemetry collector instead of LangSmith."""
    return get_env_var("TRACING_MODE") == "otel" or is_env_var_truish("OTEL_ONLY")


def _responds(endpoint: str) -> bool:
    """Whether the endpoint answers anything over HTTP in time, be it an error."""

    def ask() -> None:
        with urlopen(f"{endpoint}/info", timeout=_READ_S):  # noqa: S310 - the user's own setting
            pass

    try:
        within(_READ_S, ask)
    except HTTPError as error:
        error.close()
        return True
    except (OSError, HTTPException, ValueError):
        return False
    return True
