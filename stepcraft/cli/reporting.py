"""How commands end: errors are one sentence, and traces hold up the end only briefly."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from stepcraft.cli.output import note, one_line
from stepcraft.errors import BadInput, StepcraftError
from stepcraft.secrets import excerpt, without_secrets

_TRACES_S = 2.0
"""How long traces may still be sent when a command is over."""


class Reported(TyperGroup):
    """The commands, whose errors are reported."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as the base class
        """Run a command."""
        with reported():
            return super().invoke(ctx)


@contextmanager
def reported() -> Generator[None]:
    """End a command with one line on stderr and an exit code instead of a traceback.

    The code is 2 for bad input, 130 for Ctrl-C, and 1 for any other failure.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt as error:
        raise typer.Exit(130) from error
    except BrokenPipeError as error:
        raise typer.Exit(1) from error
    except Exception as error:
        if type(error).__module__.startswith("typer."):  # it shows the usage
            raise
        sentence, code = _explained(error)
        note(f"stepcraft: {sentence}")
        raise typer.Exit(code) from error


def _explained(error: Exception) -> tuple[str, int]:
    from pydantic import ValidationError

    if isinstance(error, StepcraftError):
        return str(error), 2 if isinstance(error, BadInput) else 1
    if isinstance(error, ValidationError):
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        return f"{place}={excerpt(problem['input'])} cannot be used: {problem['msg']}", 2
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}; name another path", 2
    if isinstance(error, UnicodeDecodeError | json.JSONDecodeError):
        return (
            f"the input cannot be read: {error}; save it as UTF-8, JSON where that is asked for",
            2,
        )
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; install it, or the extra of stepcraft with it", 1
    text = one_line(without_secrets(str(error)))[:500]
    return f"unexpected error: {type(error).__name__}: {text}", 1


def mask_traces(context: typer.Context) -> None:
    """Mask what LangSmith receives, and wait at most two seconds for it when the command ends."""
    variables = (
        f"{name}_TRACING{suffix}" for name in ("LANGSMITH", "LANGCHAIN") for suffix in ("", "_V2")
    )
    if not any(os.environ.get(variable) == "true" for variable in variables):
        return  # LangSmith takes a while to import

    from langsmith import Client, configure
    from urllib3.util import Retry

    from stepcraft.secrets import anonymizer

    # Python joins threads that are no daemons, and the pool that sends compressed traces.
    os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
    os.environ.setdefault("LANGSMITH_DISABLE_RUN_COMPRESSION", "true")
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", f"{_TRACES_S:g}")
    client = Client(anonymizer=anonymizer(), timeout_ms=(1_000, 2_000), retry_config=Retry(total=0))
    configure(client=client)
    context.call_on_close(partial(client.flush, _TRACES_S))
