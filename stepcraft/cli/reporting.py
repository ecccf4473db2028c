"""How commands end: with errors reported in one sentence and only a short wait for traces."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from stepcraft.cli.output import note
from stepcraft.errors import BadInput, StepcraftError
from stepcraft.secrets import excerpt, without_secrets
from stepcraft.text.clean import one_line
from stepcraft.tracing import configure_tracing

if TYPE_CHECKING:
    from pydantic import ValidationError


class Reported(TyperGroup):
    """A group of commands whose errors are reported."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as the base class
        """Run a command."""
        with reported():
            return super().invoke(ctx)


@contextmanager
def reported() -> Generator[None]:
    """Turn an exception into one line on stderr and an exit code instead of a traceback.

    The code is 2 for bad input, 130 for Ctrl-C, and 1 for any other failure.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt as error:
        raise SystemExit(130) from error
    except BrokenPipeError as error:
        raise SystemExit(1) from error
    except Exception as error:
        if type(error).__module__.startswith("typer."):  # typer shows the usage itself
            raise
        sentence, code = _explained(error)
        note(f"stepcraft: {sentence}")
        raise SystemExit(code) from error


def _invalid(error: "ValidationError") -> str:
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"])) or error.title
    if problem["type"] == "missing":
        return f"{place} is missing in {excerpt(problem['input'])}; add it"
    if problem["type"] == "extra_forbidden":
        return f"{error.title} has no setting {place!r}; check its spelling"
    return f"{place}={excerpt(problem['input'])} cannot be used: {problem['msg']}"


def _explained(error: Exception) -> tuple[str, int]:
    from pydantic import ValidationError

    if isinstance(error, StepcraftError):
        return str(error), 2 if isinstance(error, BadInput) else 1
    if isinstance(error, ValidationError):
        return _invalid(error), 2
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}; name another path", 2
    if isinstance(error, UnicodeDecodeError | json.JSONDecodeError):
        return (
            f"the input cannot be read: {error}; save it as UTF-8, or as valid JSON",
            2,
        )
    if isinstance(error, ModuleNotFoundError):
        return (
            f"{error.name} is not installed; install it, or the extra of stepcraft that has it",
            1,
        )
    text = one_line(without_secrets(str(error)))[:500]
    return f"unexpected error: {type(error).__name__}: {text}", 1


def mask_traces() -> None:
    """If tracing is on, mask the traces sent to LangSmith, and limit the wait for them."""
    variables = (
        f"{name}_TRACING{suffix}" for name in ("LANGSMITH", "LANGCHAIN") for suffix in ("", "_V2")
    )
    if any(os.environ.get(variable) == "true" for variable in variables):
        configure_tracing()
