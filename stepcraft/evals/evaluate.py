"""Run methods on samples, side by side and within budgets, into a directory that a killed run goes on from."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from langgraph.errors import GraphBubbleUp

from stepcraft.errors import BadInput, ModelFailure, RunStopped
from stepcraft.evals.directory import Outcome, RunDirectory, read_outcomes
from stepcraft.evals.gold import retrieval_scores
from stepcraft.evals.methods import Method
from stepcraft.evals.samples import Sample, fingerprint
from stepcraft.evals.scores import alias_accuracy, contains, exact_match, f1, steps_f1
from stepcraft.graphs.compile import Graph, resources_of
from stepcraft.graphs.registry import outputs_of
from stepcraft.llm.resources import VERSION
from stepcraft.models.resolve import EXTRACTIVE, model_name
from stepcraft.secrets import without_secrets
from stepcraft.text.lists import read_steps

_PACKAGE = str(files("stepcraft"))
"""Where this package is installed: no part of a configuration, so that another installation goes on with a run."""
Scores = Mapping[str, float]
Scorer = Callable[[Sample, Mapping[str, Any]], Scores | Awaitable[Scores]]
"""The scores of an output, by name; nothing where the sample does not say what is right. It may be asynchronous."""


@dataclass(frozen=True)
class Budget:
    """When an evaluation stops; samples that are running are finished."""

    calls: int | None = None
    """Model calls of all samples together."""
    tokens: int | None = None
    """Tokens read and written by all samples together."""


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is."""

    done: int
    failed: int
    total: int
    seconds: float
    calls: int
    tokens: int


def known_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """The scores that fit what is known of a sample.

    Of answers: exact match, F1, and whether one occurs, which long answers can show alone; what is contained; steps; the
    recall of gold passages and sentences.
    """
    answer = str(output.get("answer") or "")
    scores: dict[str, float] = {}
    if answers := sample.get("answers"):
        scores |= {
            "exact match": exact_match(answer, answers),
            "F1": f1(answer, answers),
            "occurs": alias_accuracy(answer, answers),
        }
    if parts := sample.get("contains"):
        scores["contains"] = contains(answer, parts)
    if steps := sample.get("steps"):
        scores["steps"] = steps_f1(output.get("steps") or read_steps(answer), steps)
    return scores | retrieval_scores(sample.get("gold", ()), output)


async def evaluate(
    methods: Sequence[Method],
    samples: Sequence[Sample],
    directory: Path,
    *,
    scorers: Sequence[Scorer] = (known_scores,),
    benchmark: Mapping[str, str] | None = None,
    graph_of: Callable[[Method], Graph] = Method.compiled,
    concurrency: int = 4,
    budget: Budget | None = None,
    retry_errors: bool = False,
    allow_keyless: bool = False,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> Progress:
    """Run each method on each sample and score the outputs; what is in the directory already is not run again.

    The outcomes are in the directory (`read_outcomes`); they are not kept in memory.

    Args:
        methods: The methods.
        samples: The samples.
        directory: Where the outcomes are kept.
        scorers: What makes the scores of an output.
        benchmark: The name, source, licence and paper of the benchmark that the samples are of, which the report shows.
        graph_of: What makes the graph of a method.
        concurrency: The most samples that run at the same time.
        budget: When to stop.
        retry_errors: Whether samples that failed are run again; where only the scoring failed, it alone is.
        allow_keyless: Whether the keyless model may be scored, to try the evaluation itself.
        on_progress: Is told of the progress after each sample.

    Raises:
        BadInput: The directory belongs to another evaluation, or a method has no language model.
        RunStopped: The budget is used up, the model refuses every call, or the directory cannot be written.
    """
    graphs = {method.name: graph_of(method) for method in methods}
    for method in methods:
        if not allow_keyless and _is_keyless(graphs[method.name], method):
            raise BadInput(
                f"{method.name} has no language model, and scores of the keyless model say nothing of a method; name a "
                "model with --model or STEPCRAFT_MODEL, or try the evaluation with --allow-keyless"
            )
    configuration = {
        "version": VERSION,
        "methods": {
            method.name: {
                "graph": method.graph,
                "settings": {
                    name: value.replace(_PACKAGE, "stepcraft") if isinstance(value, str) else value
                    for name, value in method.settings.items()
                },
                "model": _writer(graphs[method.name], method),
            }
            for method in methods
        },
        "samples": {"count": len(samples), "fingerprint": fingerprint(samples)},
        **({"benchmark": benchmark} if benchmark else {}),
    }
    with RunDirectory(directory, configuration) as kept:
        run = _Run(kept, len(methods) * len(samples), budget or Budget(), on_progress)
        for outcome in read_outcomes(kept.path):
            run.count(outcome)
        left = [
            (method, sample)
            for sample in samples
            for method in methods
            if (failed := run.failed.get((method.name, sample["id"]))) is None or (failed and retry_errors)
        ]

        async def one(method: Method, sample: Sample) -> None:
            outcome = run.unscored.get((method.name, sample["id"]))
            run.add(await _scored(outcome or await _outcome(graphs[method.name], method, sample), scorers))

        await side_by_side([partial(one, *pair) for pair in left], concurrency, lambda: bool(run.stopped))
        if run.stopped:
            raise RunStopped(
                f"{run.stopped}: {len(run.failed):,} of {run.total:,} samples are done; raise it and start the same "
                "command again"
            )
        return run.progress()


class _Run:
    """What is finished, and why no further sample is begun."""

    def __init__(
        self, kept: RunDirectory, total: int, budget: Budget, on_progress: Callable[[Progress], object]
    ) -> None:
        self.kept = kept
        self.total = total
        self.budget = budget
        self.on_progress = on_progress
        self.began = time.monotonic()
        self.stopped = ""
        self.failed: dict[tuple[str, str], bool] = {}
        """Whether a method failed on a sample; nothing for what is not finished."""
        self.unscored: dict[tuple[str, str], Outcome] = {}
        """The outcomes that have an output whose scoring failed."""
        self.calls = 0
        self.tokens = 0

    def count(self, outcome: Outcome) -> None:
        key = outcome["method"], outcome["id"]
        self.failed[key] = bool(outcome["error"])
        if not self.unscored.pop(key, None):
            self.calls += int(outcome["usage"].get("calls", 0))
            self.tokens += tokens_of(outcome)
        if outcome["error"] and outcome["output"]:
            self.unscored[key] = outcome

    def add(self, outcome: Outcome) -> None:
        self.kept.add(outcome)
        self.count(outcome)
        self.on_progress(self.progress())
        for name, most, used in (
            ("calls", self.budget.calls, self.calls),
            ("tokens", self.budget.tokens, self.tokens),
        ):
            if most is not None and used >= most and len(self.failed) < self.total:
                self.stopped = f"the budget of {most:,} {name} is used up"

    def progress(self) -> Progress:
        return Progress(
            done=len(self.failed),
            failed=sum(self.failed.values()),
            total=self.total,
            seconds=time.monotonic() - self.began,
            calls=self.calls,
            tokens=self.tokens,
        )


def tokens_of(outcome: Outcome) -> int:
    """The tokens that a sample read and wrote."""
    return int(outcome["usage"].get("input_tokens", 0)) + int(outcome["usage"].get("output_tokens", 0))


async def side_by_side(
    jobs: Sequence[Callable[[], Awaitable[None]]],
    concurrency: int,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Do the jobs, so many at a time, until all are done or `is_stopped` says so after one of them.

    Raises:
        Exception: The first error of a job; the others are cancelled.
    """
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job()
            if is_stopped():
                return

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, min(concurrency, len(jobs)))):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _outcome(graph: Graph, method: Method, sample: Sample) -> Outcome:
    """Run a method on a sample; a failure is the outcome, except where every further sample would fail too."""
    began = time.monotonic()
    outcome = Outcome(
        method=method.name,
        id=sample["id"],
        sample=sample,
        output={},
        error="",
        scores={},
        usage={},
        seconds=0.0,
        warnings=[],
    )
    given = method.given(sample["question"], sample.get("resources", ""))
    try:
        result = await graph.ainvoke(given, context=method.context(sample.get("seed")))
    except ModelFailure as failure:
        raise RunStopped(f"{method.name} was stopped: {failure}") from failure
    except GraphBubbleUp:
        raise
    except Exception as failure:
        outcome["error"] = _reason(failure)
    else:
        outcome["output"] = {
            name: result[name] for name in outputs_of(method.graph) if name not in {"usage", "warnings"}
        }
        outcome["usage"], outcome["warnings"] = result["usage"], result["warnings"]
    outcome["seconds"] = round(time.monotonic() - began, 3)
    return outcome


async def _scored(outcome: Outcome, scorers: Sequence[Scorer]) -> Outcome:
    """Score an output; where that fails, the output is kept with the reason."""
    if outcome["error"] and not outcome["output"]:
        return outcome
    scores: dict[str, float] = {}
    try:
        for score in scorers:
            made = score(outcome["sample"], outcome["output"])
            scores |= await made if isinstance(made, Awaitable) else made
    except Exception as failure:
        return {**outcome, "error": f"it could not be scored: {_reason(failure)}"}
    return {**outcome, "error": "", "scores": scores}


def _reason(failure: Exception) -> str:
    return f"{type(failure).__name__}: {without_secrets(str(failure))[:1000]}"


def _writer(graph: Graph, method: Method) -> str:
    """The name of the model that writes a method's answers; "" for a graph that is not of this package."""
    try:
        models = resources_of(graph).models
    except KeyError:
        return ""
    choice = models.choice("answer", method.context())
    return choice if isinstance(choice, str) else model_name(choice)


def _is_keyless(graph: Graph, method: Method) -> bool:
    return _writer(graph, method) == EXTRACTIVE
