"""Small evaluations, and the command line as a user writes it."""

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

from typer.testing import CliRunner

from stepcraft.cli import app
from stepcraft.evals.directory import Outcome, read_outcomes
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import AnyMethod, Method
from stepcraft.evals.samples import Sample
from tests.evals.asked import samples
from tests.scripted import ScriptedModel
from tests.servers.openai_server import OpenAIServer

DIRECT = Method("direct", "direct")
WARM = Method("direct:temperature=1", "direct", {"temperature": 1.0})
KEY = "opensesame-opensesame"


def run(
    directory: Path,
    script: ScriptedModel | Callable[[str, str], Any] = lambda *_: "3",
    given: int | Sequence[Sample] = 3,
    methods: Sequence[AnyMethod] = (DIRECT,),
    **options: Any,
) -> list[Outcome]:
    """The outcomes after an evaluation, in the order of samples and methods."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    asked = samples(given) if isinstance(given, int) else given
    ready = [
        replace(method, options={"model": model}) if isinstance(method, Method) else method
        for method in methods
    ]
    asyncio.run(evaluate(ready, asked, directory, **{"concurrency": 1, **options}))
    last = {(outcome["method"], outcome["id"]): outcome for outcome in read_outcomes(directory)}
    return [last[method.name, sample["id"]] for sample in asked for method in ready]


def questions(folder: Path, count: int) -> Path:
    """A file of questions whose answer is their number."""
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples(count)))
    return file


def stepcraft(command: str, server: OpenAIServer | None = None) -> Any:
    """Run `stepcraft eval`, with the models of a server."""
    return CliRunner().invoke(app, ["eval", *shlex.split(command)], env=environment(server))


def environment(server: OpenAIServer | None) -> dict[str, str]:
    """The variables by which OpenAI's models are those of a server."""
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": KEY} if server else {}


def problem_of(command: str) -> str:
    """What a command that cannot be carried out says, in one line."""
    ran = stepcraft(command)
    assert (ran.exit_code, len(ran.stderr.strip().splitlines())) == (2, 1), ran.output
    return ran.stderr


def interrupted(command: str) -> list[str]:
    """What `stepcraft eval` writes whose model falls silent after ten calls, until Ctrl-C."""
    # A shell that starts the tests in the background has them ignore Ctrl-C.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeding}; from stepcraft.cli import main; main()"
    arguments = [sys.executable, "-c", code, "eval", *shlex.split(command)]
    is_silent = Event()

    def reply(_body: object) -> str:
        if len(server.requests) > 10:
            is_silent.set()
            server.closing.wait(60)
        return "T"

    with OpenAIServer(reply) as server:
        variables = {**os.environ, **environment(server)}
        process = subprocess.Popen(arguments, env=variables, stderr=subprocess.PIPE, text=True)
        try:
            assert is_silent.wait(60)
            process.send_signal(signal.SIGINT)
            _, written = process.communicate(timeout=30)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 130
    return written.splitlines()
