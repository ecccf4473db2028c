"""Run methods on samples, side by side, into a directory that a killed run goes on from."""

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.utils.uuid import uuid7

from stepcraft.errors import BadInput, ModelFailure, RunStopped
from stepcraft.evals.calls import Calls
from stepcraft.evals.directory import CALLS, SAMPLES, Outcome, read_outcomes, run_directory
from stepcraft.evals.methods import AnyMethod
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Key, Progress, Spending, side_by_side, unpriced
from stepcraft.evals.samples import Sample, fingerprint
from stepcraft.evals.scoring import Scorer, default_scores
from stepcraft.files import named_path
from stepcraft.models.resolve import EXTRACTIVE
from stepcraft.secrets import without_secrets

_VERSIONS = {name: version(name) for name in ("stepcraft", "langgraph", "langchain-core")}


async def evaluate(
    methods: Sequence[AnyMethod],
    samples: Sequence[Sample],
    directory: Path,
    *,
    scorers: Sequence[Scorer] = (default_scores,),
    benchmark: Mapping[str, str] | None = None,
    concurrency: int = 4,
    budget: Budget | None = None,
    prices: Prices | None = None,
    retry_errors: bool = False,
    allow_keyless: bool = False,
    keep_calls: bool = False,
    callbacks: Sequence[BaseCallbackHandler] = (),
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> Progress:
    """Run each method on each sample and score the outputs; what is in the directory stays.

    The outcomes are in the directory (`read_outcomes`) and not kept in memory.

    Args:
        methods: The methods.
        samples: The samples.
        directory: Where the outcomes are kept.
        scorers: Return the scores of an output.
        benchmark: The name, source, licence and paper of the samples, which the report shows.
        concurrency: The most samples that run at the same time.
        budget: When to stop; what the directory has already counts, too.
        prices: What tokens cost; None for the prices in STEPCRAFT_PRICES.
        retry_errors: Whether samples that failed are run again; where only the scoring failed, it
            alone is done again, always.
        allow_keyless: Whether the keyless model may be scored, to try the evaluation itself.
        keep_calls: Whether the directory gets the prompts and replies of each sample, too.
        callbacks: The callbacks of every run, such as a tracer.
        on_progress: Is told of the progress after each sample.

    Raises:
        BadInput: The directory belongs to another evaluation, a method has no language model, a
            method or an id is there twice, or the budget needs a price that is unknown.
        RunStopped: The budget is used up, the model refuses every call, or the directory cannot be
            written.
    """
    directory, budget = named_path(directory), budget or Budget()
    prices = Prices.of(None) if prices is None else prices
    for method in methods:
        if method.model == EXTRACTIVE and not allow_keyless:
            raise BadInput(
                f"{method.name} has no language model, and scores of the keyless model say nothing "
                "of a method; name a model with --model or STEPCRAFT_MODEL, or try the evaluation "
                "with --allow-keyless"
            )
        if budget.usd is not None and method.model and prices.price(method.model) is None:
            raise BadInput(unpriced(method.model))
    configuration = _configuration(methods, samples, benchmark)
    with run_directory(
        directory, configuration, SAMPLES, *([CALLS] if keep_calls else [])
    ) as files:
        spending = Spending(budget, len(methods) * len(samples), on_progress)
        models = {method.name: method.model for method in methods}
        unscored = _counted(directory, spending, prices, models)

        async def finish(method: AnyMethod, sample: Sample) -> None:
            key = method.name, sample["id"]
            outcome, calls = unscored.get(key), Calls()
            if outcome is None:
                if not spending.begin():
                    return
                outcome = await _run(method, sample, calls, callbacks)
                outcome["usd"] = _usd(outcome, prices, models)
            scored = await _scored(outcome, scorers)
            for file in files[1:]:
                file.add({"method": method.name, "id": sample["id"], "calls": calls.calls()})
            files[0].add(scored)
            if key not in unscored:
                spending.end(outcome["usage"], outcome.get("usd"))
            spending.report(key, failed=bool(scored["error"]))

        left = (
            partial(finish, method, sample)
            for sample in samples
            for method in methods
            if (failed := spending.failed.get(key := (method.name, sample["id"]))) is None
            or (failed and (retry_errors or key in unscored))
        )
        await side_by_side(left, concurrency)
        spending.check_finished("samples", retried=retry_errors)
        return spending.progress


def _counted(
    directory: Path, spending: Spending, prices: Prices, models: Mapping[str, str]
) -> dict[Key, Outcome]:
    """Count what the directory has, and return the outputs that are not scored."""
    unscored: dict[Key, Outcome] = {}
    for outcome in read_outcomes(directory):
        key = outcome["method"], outcome["id"]
        if unscored.pop(key, None) is None:  # else it is the same run, scored again
            spending.add(outcome["usage"], _usd(outcome, prices, models))
        spending.failed[key] = bool(outcome["error"])
        if outcome["error"] and outcome["output"]:
            unscored[key] = outcome
    return unscored


def _usd(outcome: Outcome, prices: Prices, models: Mapping[str, str]) -> float | None:
    usd = outcome.get("usd")
    return prices.cost(outcome["usage"], models[outcome["method"]]) if usd is None else usd


async def _run(
    method: AnyMethod, sample: Sample, calls: Calls, callbacks: Sequence[BaseCallbackHandler]
) -> Outcome:
    """Run a method on a sample; a failure is the outcome, unless every sample would fail."""
    began, trace = time.monotonic(), uuid7()
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
        trace=str(trace),
        versions=_VERSIONS,
    )
    try:
        result = await method.run(
            sample,
            {
                "run_id": trace,
                "callbacks": [calls, *callbacks],
                "metadata": {"stepcraft_sample": sample["id"]},
            },
        )
    except ModelFailure as failure:
        raise RunStopped(f"{method.name} was stopped: {failure}") from failure
    except Exception as failure:
        outcome["error"] = _reason(failure)
        outcome["usage"] = calls.usage()
    else:
        outcome["output"], outcome["warnings"] = result.output, result.warnings
        outcome["usage"] = calls.usage()
        if not outcome["usage"]["calls"]:
            outcome["usage"] = dict(result.usage) or outcome["usage"]
    outcome["seconds"] = round(time.monotonic() - began, 3)
    return outcome


async def _scored(outcome: Outcome, scorers: Sequence[Scorer]) -> Outcome:
    """Score an output; where that fails, keep the output with the reason."""
    if outcome["error"] and not outcome["output"]:
        return outcome
    scores: dict[str, float] = {}
    try:
        for scorer in scorers:
            result = scorer(outcome["sample"], outcome["output"])
            scores |= await result if isinstance(result, Awaitable) else result
        bad = [name for name, score in scores.items() if not math.isfinite(score)]
    except Exception as failure:
        return {**outcome, "error": f"it could not be scored: {_reason(failure)}"}
    if bad:
        reason = f"the score {bad[0]!r} is {scores[bad[0]]}; return a finite number"
        return {**outcome, "error": f"it could not be scored: {reason}"}
    scores = {name: float(score) for name, score in scores.items()}
    return {**outcome, "error": "", "scores": scores}


def _reason(failure: Exception) -> str:
    return f"{type(failure).__name__}: {without_secrets(str(failure))[:1000]}"


def _configuration(
    methods: Sequence[AnyMethod], samples: Sequence[Sample], benchmark: Mapping[str, str] | None
) -> dict[str, Any]:
    for names in ([method.name for method in methods], [sample["id"] for sample in samples]):
        for name, count in Counter(names).most_common(1):
            if count > 1:
                raise BadInput(f"the name {name!r:.80} is there twice; give each its own")
    return {
        "version": _VERSIONS["stepcraft"],
        "methods": {
            method.name: {**method.described(), "model": method.model} for method in methods
        },
        "samples": {"count": len(samples), "fingerprint": fingerprint(samples)},
        **({"benchmark": benchmark} if benchmark else {}),
    }
