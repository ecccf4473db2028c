"""Run methods as inspect_ai tasks, and import its logs as evaluations (extra `inspect`).

inspect_ai.eval(task(method, samples), model="none/none")
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage
from inspect_ai.scorer import Score, Target, mean, scorer, stderr, value_to_float
from inspect_ai.scorer import Scorer as InspectScorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from stepcraft import __version__
from stepcraft.evals.calls import Calls, no_tokens
from stepcraft.evals.directory import SAMPLES, Outcome, read_outcomes, run_directory
from stepcraft.evals.methods import AnyMethod
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
    """Return a solver that runs a method and puts its output and usage in the store."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001
        calls = Calls()
        sample = state.metadata.get("sample") or Sample(
            id=str(state.sample_id), question=state.input_text
        )
        result = await method.run(sample, {"callbacks": [calls]})
        answer = result.output.get("answer") or "\n".join(result.output.get("steps") or [])
        state.output = ModelOutput.from_content(method.model or "none", str(answer))
        for name, value in vars(replace(result, usage=calls.usage())).items():
            state.store.set(name, value)
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def score_output(scorers: Sequence[Scorer] = (default_scores,)) -> InspectScorer:
    """Return a scorer that applies our scores, each under its name."""

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        output: dict[str, Any] = state.store.get("output", {})
        values = await scores_of(scorers, state.metadata["sample"], output)
        return Score(value={**values}, answer=state.output.completion)

    return score


def import_logs(logs: Sequence[str | Path], directory: Path) -> None:
    """Import inspect_ai logs into an evaluation, keeping any outcomes already in it.

    Args:
        logs: The log files. The task name in each must be unique and is used as the name of the
            method.
        directory: The directory of the evaluation.

    Raises:
        BadInput: The directory contains another evaluation.
    """
    read = {log.eval.task: log for log in (read_eval_log(str(path)) for path in logs)}
    outcomes = [outcome for name, log in read.items() for outcome in _outcomes(name, log)]
    configuration = {
        "version": __version__,
        "methods": {
            name: {"graph": "inspect_ai", "settings": {}, "model": log.eval.model}
            for name, log in read.items()
        },
    }
    with run_directory(directory, configuration, SAMPLES) as [file]:
        present = {(each["method"], each["id"]) for each in read_outcomes(directory)}
        for outcome in outcomes:
            if (outcome["method"], outcome["id"]) not in present:
                file.add(outcome)


def _outcomes(method: str, log: EvalLog) -> Iterator[Outcome]:
    for logged in log.samples or []:
        id_ = str(logged.id) if logged.epoch == 1 else f"{logged.id}#{logged.epoch}"
        yield Outcome(
            method=method,
            id=id_,
            sample={**_sample(logged), "id": id_, "task": str(logged.id)},
            output=logged.store.get("output") or {"answer": logged.output.completion},
            error=logged.error.message if logged.error else "",
            scores=dict(_scores(logged)),
            usage=logged.store.get("usage") or _usage(logged.model_usage),
            seconds=round(logged.total_time or 0.0, 3),
            warnings=logged.store.get("warnings") or [],
            began=logged.started_at or log.eval.created,
        )


def _sample(logged: EvalSample) -> Sample:
    messages = [logged.input] if isinstance(logged.input, str) else [m.text for m in logged.input]
    answers = [logged.target] if isinstance(logged.target, str) else list(logged.target)
    sample = Sample(id=str(logged.id), question="\n".join(messages), answers=answers)
    ours: Sample = logged.metadata.get("sample", sample)
    return ours


def _scores(logged: EvalSample) -> Iterator[tuple[str, float]]:
    to_float = value_to_float()
    for name, score in (logged.scores or {}).items():
        values = score.value if isinstance(score.value, dict) else {name: score.value}
        yield from ((key, to_float(value)) for key, value in values.items() if value is not None)


def _usage(used: dict[str, ModelUsage]) -> dict[str, Any]:
    kinds = ("input_tokens", "output_tokens")
    models = {name: {kind: getattr(each, kind) for kind in kinds} for name, each in used.items()}
    total = {kind: sum(tokens[kind] for tokens in models.values()) for kind in kinds}
    return {**no_tokens(), **total, "models": models}
