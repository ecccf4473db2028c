"""Small evaluations, and the command line as a user writes it."""

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft.cli import app
from stepcraft.errors import RunStopped
from stepcraft.evals.directory import SAMPLES, Outcome, read_outcomes
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
    asked: int | Sequence[Sample] = 3,
    methods: Sequence[AnyMethod] = (DIRECT,),
    **options: Any,
) -> list[Outcome]:
    """The outcomes after an evaluation, in the order of samples and methods."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    posed = samples(asked) if isinstance(asked, int) else asked
    ready = [
        replace(method, options={"model": model}) if isinstance(method, Method) else method
        for method in methods
    ]
    asyncio.run(evaluate(ready, posed, directory, **{"concurrency": 1, **options}))
    last = {(outcome["method"], outcome["id"]): outcome for outcome in read_outcomes(directory)}
    return [last[method.name, sample["id"]] for sample in posed for method in ready]


def stopped(directory: Path, reason: str, **options: Any) -> list[Outcome]:
    """The outcomes of an evaluation that ends for a reason."""
    with pytest.raises(RunStopped, match=re.escape(reason)):
        run(directory, **options)
    return list(read_outcomes(directory))


def rewrite(run: Path, before: str, after: str) -> None:
    """Replace a text in the samples."""
    file = run / SAMPLES
    file.write_text(file.read_text("utf-8").replace(before, after), "utf-8")


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
