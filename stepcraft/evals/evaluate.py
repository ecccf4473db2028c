"""Run methods on samples, side by side and within budgets, into a directory that a killed run goes on from."""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.errors import GraphBubbleUp

from stepcraft.errors import BadInput, ModelFailure, RunStopped
from stepcraft.evals.directory import Outcome, RunDirectory, check_names, read_outcomes
from stepcraft.evals.gold import retrieval_scores
from stepcraft.evals.local import Local
from stepcraft.evals.methods import AnyMethod, Method
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Progress, Tally, unpriced
from stepcraft.evals.prompts import prompts_digest
from stepcraft.evals.samples import Sample, fingerprint
from stepcraft.evals.scores import alias_accuracy, contains, exact_match, f1, steps_f1
from stepcraft.llm.resources import VERSION
from stepcraft.models.resolve import EXTRACTIVE
from stepcraft.nodes.begin import KEYLESS
from stepcraft.secrets import without_secrets
from stepcraft.text.lists import read_steps

_PACKAGE = str(files("stepcraft"))
"""Where this package is installed: no part of a configuration, so that another installation goes on with a run."""
Scores = Mapping[str, float]
Scorer = Callable[[Sample, Mapping[str, Any]], Scores | Awaitable[Scores]]
"""The scores of an output, by name; nothing where the sample does not say what is right. It may be asynchronous."""


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
    methods: Sequence[AnyMethod],
    samples: Sequence[Sample],
    directory: Path,
    *,
    scorers: Sequence[Scorer] = (known_scores,),
    benchmark: Mapping[str, str] | None = None,
    concurrency: int = 4,
    budget: Budget | None = None,
    prices: Prices | None = None,
    retry_errors: bool = False,
    allow_keyless: bool = False,
    callbacks: Sequence[BaseCallbackHandler] = (),
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
        concurrency: The most samples that run at the same time.
        budget: When to stop; what the directory has already counts, too.
        prices: What tokens cost; None for the prices in STEPCRAFT_PRICES.
        retry_errors: Whether samples that failed are run again; where only the scoring failed, it alone is.
        allow_keyless: Whether the keyless model may be scored, to try the evaluation itself.
        callbacks: The callbacks of every run, such as a tracer.
        on_progress: Is told of the progress before and after each sample.

    Raises:
        BadInput: The directory belongs to another evaluation, a method has no language model, a method or an id is
            there twice, or the budget needs a price that is unknown.
        RunStopped: The budget is used up, the model refuses every call, or the directory cannot be written.
    """
    check_names("method", [method.name for method in methods])
    check_names("id", [sample["id"] for sample in samples])
    by_name = {method.name: method for method in methods}
    runner = Local(by_name, callbacks)
    budget, prices = budget or Budget(), Prices.of(None) if prices is None else prices
    writers = {method.name: runner.writer(method) for method in methods}
    for name, writer in writers.items():
        if not allow_keyless and writer == EXTRACTIVE:
            raise BadInput(_keyless(f"{name} has no language model"))
        if budget.usd is not None and prices.price(writer) is None:
            raise BadInput(unpriced(name, writer))
    prompts = {method.name: _prompts(method) for method in methods}
    configuration = {
        "version": VERSION,
        "methods": {method.name: _described(method, writers[method.name]) for method in methods},
        "prompts": prompts,
        "samples": {"count": len(samples), "fingerprint": fingerprint(samples)},
        **({"benchmark": benchmark} if benchmark else {}),
    }

    cost_of = partial(_cost, prices, runner, by_name)
    with RunDirectory(directory, configuration) as kept:
        counts = dict.fromkeys(by_name, len(samples))
        run = Tally[Outcome](
            counts, slots=concurrency, budget=budget, cost=cost_of, tell=on_progress
        )
        for outcome in read_outcomes(kept.path):
            run.count(outcome)
        left = (
            (method, sample)
            for sample in samples
            for method in methods
            if (failed := run.failed.get((method.name, sample["id"]))) is None
            or (failed and retry_errors)
        )

        async def one(method: AnyMethod, sample: Sample) -> None:
            outcome = run.unscored.get((method.name, sample["id"]))
            if not run.begin(is_free=(is_free := bool(outcome))):
                return
            if not outcome:
                outcome = await _outcome(runner, method, sample)
                if KEYLESS in outcome["warnings"] and not allow_keyless:
                    raise BadInput(_keyless(f"{method.name} ran without a language model"))
                outcome["usd"] = cost_of(outcome)
                outcome["prompts"] = prompts[method.name]
            scored = await _scored(outcome, scorers)
            kept.add(scored)
            run.end(scored, is_free=is_free)

        await side_by_side((partial(one, *pair) for pair in left), concurrency)
        run.check_finished(len(run.failed) - (run.failures if retry_errors else 0), "samples")
        return run.progress()


async def side_by_side(jobs: Iterable[Callable[[], Awaitable[None]]], concurrency: int) -> None:
    """Do the jobs, so many at a time.

    Raises:
        Exception: The first error of a job; the others are cancelled.
    """
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, concurrency)):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _outcome(runner: Local, method: AnyMethod, sample: Sample) -> Outcome:
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
        began=datetime.now(UTC).isoformat(timespec="milliseconds"),
        trace="",
        models=[],
        versions={},
        seed=sample.get("seed", method.context().seed)
        if isinstance(method, Method)
        else sample.get("seed"),
    )
    try:
        await runner.run(method, sample, outcome)
    except ModelFailure as failure:
        raise RunStopped(f"{method.name} was stopped: {failure}") from failure
    except (GraphBubbleUp, RunStopped):
        raise
    except Exception as failure:
        outcome["error"] = _reason(failure)
    outcome["seconds"] = round(time.monotonic() - began, 3)
    return outcome


def _cost(
    prices: Prices, runner: Local, methods: Mapping[str, AnyMethod], outcome: Outcome
) -> float | None:
    """What an outcome cost in USD; None where a price is unknown."""
    method, told = methods[outcome["method"]], outcome.get("models") or []

    def model_of(node: str) -> str:
        named = runner.writer(method, node) if node else ""
        return named or (told[0] if len(told) == 1 else "")

    return prices.cost(outcome["usage"], model_of)


async def _scored(outcome: Outcome, scorers: Sequence[Scorer]) -> Outcome:
    """Score an output; where that fails, the output is kept with the reason."""
    if outcome["error"] and not outcome["output"]:
        return outcome
    scores: dict[str, float] = {}
    try:
        for score in scorers:
            made = score(outcome["sample"], outcome["output"])
            named = await made if isinstance(made, Awaitable) else made
            scores |= {name: _finite(name, value) for name, value in named.items()}
    except Exception as failure:
        return {**outcome, "error": f"it could not be scored: {_reason(failure)}"}
    return {**outcome, "error": "", "scores": scores}


def _finite(name: str, value: float) -> float:
    """A score as a number that means and intervals can be made of."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(
            f"the score {name!r} is {number}; return a finite number, or leave the score out"
        )
    return number


def _reason(failure: Exception) -> str:
    return f"{type(failure).__name__}: {without_secrets(str(failure))[:1000]}"


def _prompts(method: AnyMethod) -> str:
    return prompts_digest(method.graph, method.context()) if isinstance(method, Method) else ""


def _keyless(what: str) -> str:
    return (
        f"{what}, and scores of the keyless model say nothing of a method; name a model with --model or STEPCRAFT_MODEL, or "
        "try the evaluation with --allow-keyless"
    )


def _described(method: AnyMethod, writer: str) -> dict[str, Any]:
    """A method as the configuration has it."""
    graph = method.graph if isinstance(method, Method) else f"{method.graph.get_name()} (own)"
    settings = json.loads(json.dumps(method.described()).replace(_PACKAGE, "stepcraft"))
    return {"graph": graph, "settings": settings, "model": writer}
