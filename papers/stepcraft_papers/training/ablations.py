"""Benchmark models for which a part of the training was left out (RPG §4, table 3)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stepcraft.evals.benchmark import get_benchmark
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import read_methods
from stepcraft.evals.summary import summarise
from stepcraft_papers.ablations import Row
from stepcraft_papers.published import RPG_ABLATIONS
from stepcraft_papers.training.model import TunedModel
from stepcraft_papers.training.samples import TrainingSample
from stepcraft_papers.training.train import Recipe, train


def compare(
    base: str,
    samples: Sequence[TrainingSample],
    recipe: Recipe,
    folder: Path,
    *,
    benchmark: str,
    data: Path,
    limit: int | None = None,
    sizes: Sequence[int] = (),
) -> list[Row]:
    """Train the models in the table and run the paper's graph with each of them.

    Args:
        base: The model that is trained.
        samples: The training samples for the full model.
        recipe: The training settings that all models share.
        folder: The folder for the models and their evaluations; anything already there is not made
            again.
        benchmark: The name of the benchmark.
        data: The benchmark's file.
        limit: The maximum number of questions.
        sizes: The numbers of samples on which to train additional models.

    Raises:
        BadInput: The base, the benchmark or the folder cannot be used.
    """
    variants = {
        "RPG": (samples, recipe),
        "without the plan loss": (samples, replace(recipe, plan_loss=False)),
        "one prompt for both tasks": (samples, replace(recipe, shared_prompt=True)),
        **{f"on {size:,} samples": (samples[:size], recipe) for size in sizes},
    }
    questions = get_benchmark(benchmark).load(data, limit)
    [paper] = [each for each in RPG_ABLATIONS[benchmark] if each.label == "RPG"]
    rows: list[Row] = []
    for number, (label, (learned, changed)) in enumerate(variants.items()):
        trained = folder / f"model-{number}"
        train(base, learned, (), trained, changed)
        [method] = read_methods("rpg_paper", questions.settings)
        method = replace(method, options={**method.options, "model": TunedModel(trained)})
        evaluation = folder / f"eval-{number}"
        asyncio.run(evaluate([method], questions.samples, evaluation, scorers=questions.scorers))
        ours = summarise(evaluation).methods[0].scores.get(paper.score)
        shown = f"{ours.mean:.3f} ({ours.low:.3f} to {ours.high:.3f})" if ours else "-"
        theirs = f"{paper.value:.3f}" if number == 0 and paper.value else "-"
        rows.append((label, paper.score, shown, theirs))
    return rows
