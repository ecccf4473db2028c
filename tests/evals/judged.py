"""Finished evaluations and scripted judges, for tests of judging."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stepcraft.evals.directory import SAMPLES, Outcome, run_directory
from stepcraft.evals.judging import judge
from stepcraft.evals.summary import Summary, summarise
from stepcraft.text.sections import parse
from tests.scripted import ScriptedModel

COSTS = {"rag": 100, "rat": 300, "rpg": 500}
"""Input tokens of a sample; the first method is the cheapest."""


class JudgeModel(ScriptedModel):
    """A scripted model with a name and a seed."""

    model: str = "scripted:judge"
    seed: int | None = None


def evaluation(
    directory: Path,
    answers: Mapping[str, Sequence[str | Mapping[str, Any] | None]],
    known: Mapping[str, Any] | None = None,
    model: str = "scripted:writer",
) -> Path:
    """A finished evaluation; an answer is a text, a whole output, or None for a sample that failed."""
    configuration = {
        "methods": {name: {"graph": name, "settings": {}, "model": model} for name in answers}
    }
    with run_directory(directory, configuration, SAMPLES) as [kept]:
        for method, given in answers.items():
            for number, answer in enumerate(given):
                output = (
                    {"answer": answer, "evidence": []}
                    if isinstance(answer, str)
                    else dict(answer or {})
                )
                kept.add(
                    Outcome(
                        method=method,
                        id=str(number),
                        sample={
                            "id": str(number),
                            "question": f"Question {number}?",
                            **(known or {}),
                        },  # type: ignore[typeddict-item]
                        output=output,
                        error="" if answer is not None else "ValueError: no such luck",
                        scores={},
                        usage={"calls": 1, "input_tokens": COSTS[method], "output_tokens": 0},
                        seconds=1.0,
                        warnings=[],
                    )
                )
    return directory


def judged(
    directory: Path, model: ScriptedModel | Sequence[ScriptedModel], **options: Any
) -> Summary:
    """Have it judged, one call at a time where nothing else is said."""
    asyncio.run(judge(directory, model, **{"concurrency": 1, **options}))
    return summarise(directory)


def shown(prompt: str) -> dict[tuple[str, str], str]:
    """The sections of a prompt by name and id, without the reply format."""
    return {(one.name, one.id): one.text for one in parse(prompt) if one.name != "reply_format"}
