"""Run methods on samples concurrently, saving outcomes so that a killed run can resume."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7

from stepcraft import __version__
from stepcraft.concurrency import side_by_side, uncancelled
from stepcraft.errors import BadInput, ModelFailure, NoAnswer, RunStopped
from stepcraft.evals.calls import CallRecorder, reason_of
from stepcraft.evals.directory import (
    CALLS,
    SAMPLES,
    Outcome,
    is_unanswered,
    read_outcomes,
    run_directory,
)
from stepcraft.evals.methods import AnyMethod, Method, Result
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Key, Progress, Spending
from stepcraft.evals.samples import Sample, asked
from stepcraft.evals.scoring import Scorer, default_scores, scores_of
from stepcraft.files import named_path
from stepcraft.models.resolve import EXTRACTIVE


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
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> None:
    """Run each method on each sample and score the outputs, keeping earlier results.

    The outcomes are written to the directory, not kept in memory; `read_outcomes` reads them.
    Samples and methods can be added to those already in the directory. A run without an answer
    (`NoAnswer`) counts as wrong.

    Args:
        methods: The methods.
        samples: The samples.
        directory: The directory for the outcomes.
        scorers: Functions that return the scores of an output.
        benchmark: The name, source, licence and paper of the samples, for the report.
        concurrency: The maximum number of samples that run at the same time.
        budget: The limits at which to stop; usage already recorded in the directory counts towards
            them.
        prices: The prices of tokens; None for those in STEPCRAFT_PRICES.
        retry_errors: Whether to rerun failed samples. Those of a method that failed on every sample
            are always rerun. If only the scoring failed, or the right answer has changed, only the
            scoring is repeated.
        allow_keyless: Whether the keyless model may be scored, to try out the evaluation itself.
        keep_calls: Whether to store each sample's prompts and replies in the directory too.
        on_progress: Called with the progress after each sample.

    Raises:
        BadInput: The directory has a different sample or method under the same name, a method has
            no language model, a method name or sample id occurs twice, or the budget depends on an
            unknown price.
        RunStopped: The budget is used up, the model refuses every call, a method fails on its first
            five samples for the same reason or on all samples, or the directory is not writable.
    """
    directory = named_path(directory)
    _check_models(methods, allow_keyless=allow_keyless)
    configuration = {
        "version": __version__,
        "methods": {it.name: {**it.described(), "model": it.model} for it in methods},
        **({"benchmark": benchmark} if benchmark else {}),
    }
    jobs: dict[Key, tuple[AnyMethod, Sample]] = {
        (method.name, sample["id"]): (method, sample) for sample in samples for method in methods
    }
    if len(jobs) < len(samples) * len(methods):
        raise BadInput("two methods or two samples have the same name; give each its own")
    models = (method.model for method in methods)
    spending = Spending(budget, prices, models, len(jobs), on_progress, what="samples")
    names = [SAMPLES, CALLS] if keep_calls else [SAMPLES]
    with run_directory(directory, configuration, *names) as [file, *call_files]:
        unscored = _counted(directory, jobs, spending, retry_errors=retry_errors)
        spending.check_priced()

        async def finish(key: Key) -> None:
            method, sample = jobs[key]
            if (outcome := unscored.get(key)) is None:
                if not spending.begin():
                    return
                calls = CallRecorder()
                outcome = await _run(method, sample, calls)
                run = {name: outcome[name] for name in ("method", "id", "trace")}
                for call_file in call_files:
                    call_file.add({**run, "calls": calls.calls()})
                outcome["usd"] = spending.end(outcome["usage"], method.model)
            scored = await _scored(outcome, scorers)
            file.add(scored)
            spending.report(key, scored["error"])
            if scored["error"] and not is_unanswered(scored):
                spending.check_working(method.name)

        left = [key for key in jobs if key not in spending.errors]
        await side_by_side(map(finish, left), concurrency)
        spending.check_finished()


def _check_models(methods: Iterable[AnyMethod], *, allow_keyless: bool) -> None:
    for method in methods:
        if isinstance(method, Method):
            method.check()
        if method.model == EXTRACTIVE and not allow_keyless:
            raise BadInput(
                f"{method.name} has no language model, and the keyless model's scores say "
                "nothing about a method; name a model with --model or STEPCRAFT_MODEL, or try the "
                "evaluation with --allow-keyless"
            )


def _counted(
    directory: Path,
    jobs: Mapping[Key, tuple[AnyMethod, Sample]],
    spending: Spending,
    *,
    retry_errors: bool,
) -> dict[Key, Outcome]:
    """Count what is done in the directory, and return the outcomes that still have to be scored.

    These are outputs without a score, and those of samples whose right answer has changed.

    Raises:
        BadInput: A sample in the directory has the same id as a given one but a different question.
    """
    unscored: dict[Key, Outcome] = {}
    last: dict[Key, tuple[str, Outcome | None]] = {}
    counted = set[str]()
    for outcome in read_outcomes(directory):
        key = outcome["method"], outcome["id"]
        method, sample = jobs.get(key, (None, outcome["sample"]))
        if outcome["trace"] not in counted:  # otherwise it is the same run, scored again
            counted.add(outcome["trace"])
            spending.add(outcome["usage"], method.model if method else "", outcome.get("usd"))
        if method is None:
            continue
        if asked(sample) != asked(outcome["sample"]):
            raise BadInput(
                f"{directory} has another question with the id {outcome['id']!r:.80}; add new ones "
                "at the end, give each an id of its own, or name another directory"
            )
        error = outcome["error"]
        is_failed = error and not is_unanswered(outcome)
        to_score = outcome["output"] if is_failed else sample != outcome["sample"]
        last[key] = error, {**outcome, "sample": sample} if to_score else None
    working = {name for (name, _), (error, _) in last.items() if not error}
    for done, (error, left) in last.items():
        is_output = left is not None and left["output"]
        if error and not is_output and (retry_errors or done[0] not in working):
            continue  # it is run again
        if left:
            unscored[done] = left
        else:
            spending.record(done, error)
    return unscored


async def _run(method: AnyMethod, sample: Sample, calls: CallRecorder) -> Outcome:
    """Run a method on a sample; record a failure, or raise it if it would affect every sample."""
    began, began_s, trace = datetime.now(UTC), time.monotonic(), uuid7()
    metadata = {"stepcraft_sample": sample["id"]}
    config: RunnableConfig = {"run_id": trace, "callbacks": [calls], "metadata": metadata}
    result, error = Result({}, [], {}), ""
    try:
        result = await uncancelled(method.run(sample, config))
        error = reason_of(NoAnswer(result.unanswered)) if result.unanswered else ""
    except ModelFailure as failure:
        raise RunStopped(f"{method.name} was stopped: {failure}") from failure
    except Exception as failure:
        error = reason_of(failure)
    is_remote = result.usage and not calls.calls()
    return Outcome(
        method=method.name,
        id=sample["id"],
        sample=sample,
        output=result.output,
        error=error,
        scores={},
        usage=dict(result.usage) if is_remote else calls.usage(),
        seconds=round(time.monotonic() - began_s, 3),
        warnings=result.warnings,
        began=began.isoformat(timespec="milliseconds"),
        trace=str(trace),
    )


async def _scored(outcome: Outcome, scorers: Sequence[Scorer]) -> Outcome:
    """Score an output; if that fails, keep the output with the reason.

    A run without an answer scores 0 wherever an empty answer gets a score.
    """
    if is_unanswered(outcome):
        empty = await _scored({**outcome, "output": {"answer": ""}, "error": ""}, scorers)
        return {**outcome, "scores": dict.fromkeys(empty["scores"], 0.0)}
    if outcome["error"] and not outcome["output"]:
        return outcome
    try:
        scores = await uncancelled(scores_of(scorers, outcome["sample"], outcome["output"]))
    except Exception as failure:
        return {**outcome, "error": f"it could not be scored: {reason_of(failure)}"}
    return {**outcome, "error": "", "scores": scores}
