"""The command line in process."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner, Result

from stepcraft.cli import app


def run(*arguments: object, status: int = 0, stdin: str | bytes | None = None) -> Result:
    """Run a command, which ends with this exit code and without a traceback."""
    result = CliRunner().invoke(
        app, [*map(str, arguments)], input=stdin, env={"STEPCRAFT_EMBEDDINGS": "none"}
    )
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == status, result.output
    return result


def data(*arguments: object, status: int = 0, stdin: str | bytes | None = None) -> Any:
    """Run a command with --json and return what it prints."""
    return json.loads(run(*arguments, "--json", status=status, stdin=stdin).stdout)
