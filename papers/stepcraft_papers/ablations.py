"""Ablations of the papers' graphs: ours beside the papers' figures.

A run goes into a directory as any evaluation does, so that a killed one goes on from there, and
`stepcraft eval report` has the costs and comparisons.
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
"""Cells of a table: what was left out, the score, ours with its interval, the paper's."""


@dataclass(frozen=True)
class Protocol:
    """What an ablation is run on and with."""

    directory: Path
    data: Path | None = None
    """The file of the benchmark; None for the published one."""
    limit: int | None = None
    samples: int = 1
    """Answers to each question."""
    concurrency: int = 4
    allow_keyless: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The model, the sources, the memory, and settings of all methods that have them."""
    on_progress: Callable[[Progress], object] = lambda _progress: None


def ablate(figures: Sequence[Figure], benchmark: str, protocol: Protocol) -> Summary:
    """Run our methods of a table on a benchmark, into the directory of the protocol.

    Raises:
        BadInput: A setting or the benchmark's file cannot be used, or there is no model.
        RunStopped: The model refuses every call, or the directory cannot be written.
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
    """Return the scores of an ablation beside those of the paper."""
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
    """Run AAG's ablations and have judges compare them with RAG.

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
    for vote in summarise(protocol.directory).preferences:
        counts = {"wins": vote.wins, "losses": vote.losses, "ties": vote.ties}
        decided = sum(counts.values()) or 1
        papers = published if vote.method == "aag_paper" and vote.against == "rag" else {}
        rows.append(
            (
                f"{labels[vote.method]} against {labels[vote.against]}, by {vote.judge}",
                "/".join(counts),
                " / ".join(f"{count / decided:.3f}" for count in counts.values()),
                " / ".join(_shown(papers.get(score)) for score in counts),
            )
        )
    if not rows:
        raise BadInput("nothing was judged; let at least two methods answer a question")
    return rows


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
