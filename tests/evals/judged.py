"""Finished evaluations and scripted judges, for tests of judging."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepcraft.evals.directory import SAMPLES, Outcome, run_directory
from stepcraft.evals.judging import judge
from stepcraft.evals.summary import Summary, summarise
from stepcraft.evidence import Evidence
from stepcraft.text.sections import parse
from tests.evals.asked import number_in
from tests.scripted import ScriptedModel

BEGAN = "2026-01-01T00:00:00+00:00"
COSTS = {"rag": 100, "rat": 300, "rpg": 500}
"""Input tokens of a sample; the first method is the cheapest."""


class JudgeModel(ScriptedModel):
    """A scripted model with a name and a seed."""

    model: str = "scripted:judge"
    seed: int | None = None


def saying(reply: str, model: str = "scripted:judge") -> JudgeModel:
    """A judge that always says the same."""
    return JudgeModel(lambda *_: reply, model=model)


def preferring(
    choice: str | Callable[[int, int], str], model: str = "scripted:judge"
) -> JudgeModel:
    """A judge of which the answer of a method is better, by the question and the vote's number."""
    votes: Counter[int] = Counter()

    def reply(_node: str, prompt: str) -> str:
        number = int(number_in(prompt))
        method = choice if isinstance(choice, str) else choice(number, votes[number])
        votes[number] += 1
        texts = shown(prompt)
        return next((id_ for name, id_ in texts if texts[name, id_].startswith(method)), "T")

    return JudgeModel(reply, model=model)


def passage(id_: str, title: str, text: str) -> Evidence:
    """A passage of the evidence."""
    return Evidence(id=id_, title=title, text=text, source="", score=1.0)


def outcome(method: str, number: int, output: Mapping[str, Any] | None, **fields: Any) -> Outcome:
    """The outcome of a sample; without an output it failed."""
    id_ = str(number)
    return Outcome(
        method=method,
        id=id_,
        sample={"id": id_, "question": f"Question {number}?", **fields.pop("right", {})},
        output={**(output or {})},
        error="" if output else "ValueError: no such luck",
        **{
            "scores": {},
            "usage": {},
            "seconds": 1.0,
            "warnings": [],
            "began": BEGAN,
            "trace": f"{method} {id_}",
            **fields,
        },
    )


def evaluation(
    directory: Path,
    answers: Mapping[str, Sequence[str | Mapping[str, Any] | None]],
    right: Mapping[str, Any] | None = None,
    model: str = "scripted:writer",
) -> Path:
    """A finished evaluation; an answer is a text, an output, or None for a sample that failed."""
    configuration = {
        "methods": {name: {"graph": name, "settings": {}, "model": model} for name in answers}
    }
    with run_directory(directory, configuration, SAMPLES) as [file]:
        for method, outputs in answers.items():
            usage = {"calls": 1, "input_tokens": COSTS[method], "output_tokens": 0}
            for number, text in enumerate(outputs):
                output = {"answer": text} if isinstance(text, str) else text
                file.add(outcome(method, number, output, usage=usage, right=right or {}))
    return directory


def pair(directory: Path, count: int = 1, **options: Any) -> Path:
    """A finished evaluation of two methods whose answers are their names."""
    return evaluation(directory, {"rag": ["rag"] * count, "rat": ["rat"] * count}, **options)


def judged(
    directory: Path, model: ScriptedModel | Sequence[ScriptedModel], **options: Any
) -> Summary:
    """Have it judged, one call at a time where nothing else is said."""
    models = [model] if isinstance(model, ScriptedModel) else model
    asyncio.run(judge(directory, models, **{"concurrency": 1, **options}))
    return summarise(directory)


def shown(prompt: str) -> dict[tuple[str, str], str]:
    """The sections of a prompt by name and id, without the reply format."""
    return {
        (part.name, part.id): part.text for part in parse(prompt) if part.name != "reply_format"
    }
