"""Run ablations of the papers' graphs, and compare our scores with the papers' figures.

Like any evaluation, a run is stored in a directory, so that it can be resumed after being killed,
and `stepcraft eval report` shows its costs and comparisons.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from stepcraft.errors import BadInput
from stepcraft.evals.benchmark import get_benchmark
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.judging import judge
from stepcraft.evals.methods import read_methods
from stepcraft.evals.progress import Progress
from stepcraft.evals.samples import repeated
from stepcraft.evals.summary import Summary, summarise
from stepcraft_papers.published import AAG_ABLATIONS, FIGURES, Figure

Row = tuple[str, str, str, str]
"""The cells of a table row: the ablation, the name of the score, our value with its interval, and
the paper's value.
"""


@dataclass(frozen=True)
class Protocol:
    """The data and settings with which an ablation is run."""

    directory: Path
    data: Path | None = None
    """The benchmark's file, or None for the published one."""
    limit: int | None = None
    samples: int = 1
    """The number of answers to each question."""
    concurrency: int = 4
    allow_keyless: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The model, the sources, the memory, and other settings, for all methods that have them."""
    on_progress: Callable[[Progress], object] = lambda _progress: None


def ablate(figures: Sequence[Figure], benchmark: str, protocol: Protocol) -> Summary:
    """Run our methods for a table on a benchmark, using the protocol's directory.

    Raises:
        BadInput: A setting or the benchmark's file cannot be used, or there is no model.
        RunStopped: The model refuses every call, or the directory cannot be written to.
    """
    loaded = get_benchmark(benchmark)
    questions = loaded.load(protocol.data, protocol.limit)
    methods = ",".join(figure.method for figure in figures)
    asyncio.run(
        evaluate(
            read_methods(methods, {**questions.settings, **protocol.settings}),
            repeated(questions.samples, protocol.samples),
            protocol.directory,
            scorers=questions.scorers,
            benchmark={**loaded.origin(), "version": questions.version},
            concurrency=protocol.concurrency,
            allow_keyless=protocol.allow_keyless,
            on_progress=protocol.on_progress,
        )
    )
    return summarise(protocol.directory)


def score_rows(figures: Sequence[Figure], summary: Summary) -> list[Row]:
    """Return table rows with our ablation scores beside the paper's."""
    scores = {method.method: method.scores for method in summary.methods}
    rows: list[Row] = []
    for figure in figures:
        ours = scores.get(figure.method, {}).get(figure.score)
        shown = f"{ours.mean:.3f} ({ours.low:.3f} to {ours.high:.3f})" if ours else "-"
        rows.append((figure.label, figure.score, shown, _shown(figure.value)))
    return rows


def aag_rows(
    benchmark: str, protocol: Protocol, judges: Sequence[BaseChatModel | str], votes: int = 10
) -> list[Row]:
    """Run AAG's ablations, have judges compare them with RAG, and return the table rows.

    Raises:
        BadInput: As for `ablate`, or a judge cannot be used.
        RunStopped: As for `ablate`.
    """
    ablate(AAG_ABLATIONS, benchmark, protocol)
    asyncio.run(
        judge(
            protocol.directory,
            list(judges),
            against="rag",
            kinds=["vote"],
            votes=votes,
            concurrency=protocol.concurrency,
            on_progress=protocol.on_progress,
        )
    )
    labels = {figure.method: figure.label for figure in AAG_ABLATIONS}
    published = {figure.score: figure.value for figure in FIGURES.get(benchmark, ())}
    rows: list[Row] = []
    for vote in summarise(protocol.directory, "rag").comparisons:
        _, is_vote, judge_name = vote.score.partition("votes of ")
        if not is_vote:
            continue
        counts = {"wins": vote.wins, "losses": vote.losses}
        counts["ties"] = vote.samples - sum(counts.values())
        papers = published if vote.method == "aag_paper" and vote.against == "rag" else {}
        rows.append(
            (
                f"{labels[vote.method]} against {labels[vote.against]}, by {judge_name}",
                "/".join(counts),
                " / ".join(f"{count / vote.samples:.3f}" for count in counts.values()),
                " / ".join(_shown(papers.get(score)) for score in counts),
            )
        )
    if not rows:
        raise BadInput("nothing was judged; let at least two methods answer a question")
    return rows


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
