"""Run methods as inspect_ai tasks (extra `inspect`).

inspect_ai.eval(task(method, samples), model="none/none")
"""

from collections.abc import Sequence
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Target, mean, scorer, stderr
from inspect_ai.scorer import Scorer as InspectScorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from stepcraft.errors import NoAnswer
from stepcraft.evals.calls import CallRecorder
from stepcraft.evals.methods import AnyMethod, Result
from stepcraft.evals.samples import Sample
from stepcraft.evals.scoring import Scorer, default_scores, scores_of


def task(
    method: AnyMethod,
    samples: Sequence[Sample],
    scorers: Sequence[Scorer] = (default_scores,),
    **options: Any,  # noqa: ANN401 - those of Task
) -> Task:
    """Return an inspect_ai task that runs a method on samples and scores its outputs.

    The method calls its own models, so the model of inspect_ai is not used.
    """
    dataset = [
        InspectSample(
            id=sample["id"],
            input=sample["question"],
            target=sample.get("answers", []),
            metadata={"sample": sample},
        )
        for sample in samples
    ]
    options = {"name": method.name, **options}
    return Task(dataset, solver=run_method(method), scorer=score_output(scorers), **options)


@solver
def run_method(method: AnyMethod) -> Solver:
    """Return a solver that runs a method and puts its output and usage in the store.

    Without an answer, the output is empty.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        calls = CallRecorder()
        try:
            result = await method.run(state.metadata["sample"], {"callbacks": [calls]})
        except NoAnswer as failure:
            result = Result({}, [], {}, str(failure))
        answer = result.output.get("answer") or "\n".join(result.output.get("steps") or [])
        name, reason = method.model or "none", result.unanswered or None
        state.output = ModelOutput.from_content(name, str(answer), error=reason)
        state.store.set("output", result.output)
        state.store.set("usage", calls.usage())
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def score_output(scorers: Sequence[Scorer] = (default_scores,)) -> InspectScorer:
    """Return an inspect_ai scorer that reports the scores from the given scorers by name.

    A run without an answer scores 0 wherever an empty answer gets a score.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        output: dict[str, Any] = state.store.get("output", {})
        values = await scores_of(scorers, state.metadata["sample"], output or {"answer": ""})
        values = values if output else dict.fromkeys(values, 0.0)
        return Score(value={**values}, answer=state.output.completion)

    return score
