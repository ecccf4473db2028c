"""Traces of the command line's runs: sent if LangSmith answers, and never waited for if it does not."""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import urlopen

from langchain_core.tracers import LangChainTracer
from langsmith import Client
from langsmith.run_helpers import tracing_context
from langsmith.utils import get_api_url, tracing_is_enabled
from rich.console import Console
from rich.text import Text
from urllib3.util import Retry


@contextmanager
def tracing(err: Console) -> Generator[list[LangChainTracer]]:
    """The callbacks of a run. Whether LangSmith takes its trace is no reason for the command to fail or to hang."""
    if not tracing_is_enabled():
        yield []
        return
    logger = logging.getLogger("langsmith")
    logger.addHandler(_OneLine(err))
    logger.propagate = False
    endpoint = get_api_url(None)
    if _answers(endpoint):
        client = Client(timeout_ms=(1000, 2000), retry_config=Retry(total=0))
        yield [LangChainTracer(client=client)]
        return
    err.print(
        Text(f"warning: LangSmith does not answer at {endpoint}; this run is not traced", "yellow"),
        soft_wrap=True,
    )
    with tracing_context(enabled=False):
        yield []


class _OneLine(logging.Handler):
    """Says once that traces are lost, where the client would fill the screen."""

    def __init__(self, err: Console) -> None:
        super().__init__()
        self.err = err
        self.told = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.told and record.getMessage().startswith("Failed"):
            self.told = True
            self.err.print(
                Text("warning: LangSmith did not take the whole trace of this run", "yellow"), soft_wrap=True
            )


def _answers(endpoint: str) -> bool:
    """Whether anything, be it an error, comes back."""
    try:
        with urlopen(f"{endpoint}/info", timeout=2):  # noqa: S310 - the user's own setting
            return True
    except HTTPError as error:
        error.close()
        return True
    except OSError:
        return False
