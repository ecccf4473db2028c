"""The command line, in process and as a process."""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

from typer.testing import CliRunner, Result

from stepcraft.cli import app

STEPCRAFT = [sys.executable, "-P", "-c", "from stepcraft.cli import main; main()"]
HEARS_CTRL_C = [
    sys.executable,
    "-c",
    "import os, signal, sys\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
]
"""Prefix of a command that restores Ctrl-C, which the test process may have been told to ignore."""


def run(line: str, *, status: int = 0, stdin: str | bytes | None = None) -> Result:
    """Run what follows `stepcraft` in a shell; it ends with this exit code, without a traceback."""
    result = CliRunner().invoke(
        app, shlex.split(line), input=stdin, env={"STEPCRAFT_EMBEDDINGS": "none"}
    )
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == status, result.output
    return result


def data(line: str, *, status: int = 0, stdin: str | None = None) -> Any:
    """Run a command with --json and return what it prints."""
    return json.loads(run(f"{line} --json", status=status, stdin=stdin).stdout)
