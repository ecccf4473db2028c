"""`python -m stepcraft_papers`: print the papers' tables, and compute scores that they use."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from langchain.chat_models import init_chat_model
from typer import Argument, Option

from stepcraft import open_memory
from stepcraft.evals.progress import Progress
from stepcraft_papers.ablations import Protocol, Row, aag_rows, ablate, score_rows
from stepcraft_papers.console import print_table, run, say
from stepcraft_papers.experience import append, checked_arm, play, read, table
from stepcraft_papers.mauve import GPT2, mauve_scores
from stepcraft_papers.published import FIGURES, RAT_ABLATIONS, RPG_ABLATIONS, Figure
from stepcraft_papers.trueskill import ratings

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Model = Annotated[str, Option(help='The chat model: "openai:gpt-5-mini", "ollama:…".')]
Sources = Annotated[
    list[str] | None, Option("--from", metavar="SPEC", help="A source of evidence; repeatable.")
]
Memory = Annotated[str | None, Option(help="The memory, in place of the benchmark's.")]
Embeddings = Annotated[str | None, Option(help="Those of the memory.")]
Data = Annotated[Path | None, Option(help="The benchmark's file, in place of the published one.")]
Into = Annotated[Path, Option(help="The directory of the evaluation.")]
Limit = Annotated[int | None, Option(min=1, help="The first N questions alone.")]
Samples = Annotated[int, Option(min=1, help="Answers to each question.")]
Concurrency = Annotated[int, Option(min=1, help="Samples that run at the same time.")]
Keyless = Annotated[bool, Option("--allow-keyless", help="Run without a language model.")]
Directory = Annotated[Path, Argument(metavar="DIR", help="The directory of an evaluation.")]


@app.command()
def rat_ablations(
    model: Model,
    sources: Sources = None,
    data: Data = None,
    into: Into = Path("rat-ablations"),
    limit: Limit = None,
    samples: Samples = 1,
    concurrency: Concurrency = 4,
    allow_keyless: Keyless = False,
) -> None:
    """Run RAT's ablations on HumanEval, and print them beside the paper's (RAT §4)."""
    settings = {"model": model, "sources": sources}
    protocol = Protocol(into, data, limit, samples, concurrency, allow_keyless, settings, _note)
    _print_scores(RAT_ABLATIONS["humaneval"], "humaneval", protocol)


@app.command()
def rpg_ablations(
    model: Model,
    benchmark: Annotated[str, Option(help=f"One of {', '.join(RPG_ABLATIONS)}.")] = "asqa",
    sources: Sources = None,
    data: Data = None,
    into: Into = Path("rpg-ablations"),
    limit: Limit = None,
    samples: Samples = 1,
    concurrency: Concurrency = 4,
    allow_keyless: Keyless = False,
) -> None:
    """Run RPG's ablations, and print them beside the paper's."""
    if benchmark not in RPG_ABLATIONS:
        raise typer.BadParameter(f"the paper has no ablation of {benchmark!r}")
    settings = {"model": model} | ({"sources": sources} if sources else {})
    protocol = Protocol(into, data, limit, samples, concurrency, allow_keyless, settings, _note)
    _print_scores(RPG_ABLATIONS[benchmark], benchmark, protocol)


@app.command()
def aag_ablations(
    model: Model,
    judges: Annotated[list[str], Option("--judge", metavar="MODEL", help="May be repeated.")],
    benchmark: Annotated[str, Option(help="One of procedures.")] = "lgstep-test",
    memory: Memory = None,
    embeddings: Embeddings = None,
    data: Data = None,
    into: Into = Path("aag-ablations"),
    limit: Limit = None,
    concurrency: Concurrency = 4,
    allow_keyless: Keyless = False,
) -> None:
    """Run AAG's ablations, and print wins, losses and ties against RAG beside the paper's."""
    settings: dict[str, object] = {"model": model, "temperature": 0.7, "k": 3}
    settings |= {"memory": memory} if memory else {}
    settings |= {"embeddings": embeddings} if embeddings else {}
    protocol = Protocol(into, data, limit, 1, concurrency, allow_keyless, settings, _note)
    print_table("ablation", "score", "ours", "paper", rows=aag_rows(benchmark, protocol, judges))


@app.command()
def figures(
    benchmark: Annotated[str, Argument(help=f"One of {', '.join(FIGURES)}.")],
) -> None:
    """Print the papers' figures for a benchmark, each with our method to compare with it."""
    if benchmark not in FIGURES:
        raise typer.BadParameter(
            f"no figures of the papers for {benchmark!r} are part of this package"
        )
    rows = [(f.label, f.method, f.score, f"{f.value}") for f in FIGURES[benchmark]]
    print_table("paper", "ours", "score", "value", rows=rows)


@app.command()
def trueskill(directory: Directory) -> None:
    """Print the TrueSkill of each method in an evaluation, from the judges' votes (RAT §4)."""
    rows = [
        (judge, rating.method, f"{rating.mean:.2f}", f"{2 * rating.sigma:.2f}")
        for judge, rated in ratings(directory).items()
        for rating in rated
    ]
    print_table("judge", "method", "TrueSkill", "±", rows=rows)


@app.command()
def mauve(
    directory: Directory,
    features: Annotated[str, Option(help="gpt2-large, or the name of embeddings.")] = GPT2,
) -> None:
    """Print the MAUVE score of each method in an evaluation (RPG §4)."""
    rows = [(method, f"{score:.3f}") for method, score in mauve_scores(directory, features).items()]
    print_table("method", f"MAUVE with {features}", rows=rows)


@app.command()
def experience(
    model: Model,
    arms: Annotated[
        list[str], Option("--arm", metavar="ARM", help="none, notes or memory; repeatable.")
    ],
    memory: Annotated[str, Option(help="The memory of the arm of that name.")] = "experience.db",
    seed: Annotated[int, Option(help="What the names of the world are drawn by.")] = 1,
    number: Annotated[int, Option(min=1, help="The tasks of each of the three rounds.")] = 10,
    into: Annotated[Path, Option(help="The file of JSON lines that each task is added to.")] = Path(
        "experience.jsonl"
    ),
) -> None:
    """Have an agent act in the text world, and print its results from round to round."""
    chat = init_chat_model(model)
    with open_memory(memory) as opened:
        for arm in map(checked_arm, arms):
            play(
                arm,
                chat,
                seed=seed,
                number=number,
                memory=opened,
                on_task=partial(append, into),
            )
    heads = ("arm", "round", "tasks", "reached", "tool calls", "model calls", "read", "written")
    print_table(*heads, rows=table(read(into)))


def _note(progress: Progress) -> None:
    text = f"{progress.done} of {progress.total} done, {progress.failed} failed"
    say(text, end="\r" if progress.done < progress.total else "\n")


def _print_scores(table: Sequence[Figure], benchmark: str, protocol: Protocol) -> None:
    rows: list[Row] = score_rows(table, ablate(table, benchmark, protocol))
    print_table("ablation", "score", "ours (95 %)", "paper", rows=rows)


def main() -> None:
    """Run the command line, reporting a failure in one line."""
    run(app, "stepcraft_papers")


if __name__ == "__main__":
    main()
