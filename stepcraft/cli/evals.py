"""`stepcraft eval`: run methods on questions of one's own, and report what was found."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from stepcraft.cli.eval_progress import ShownProgress
from stepcraft.cli.options import (
    Memory,
    Model,
    Quiet,
    Settings,
    Sources,
    check_writable,
    context_fields,
    reported,
)
from stepcraft.cli.output import say, write
from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from stepcraft.evals.sandbox import Kind

eval_app = typer.Typer(help="Evaluate methods on your own questions.", no_args_is_help=True)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of an evaluation.")]
Concurrency = Annotated[
    int,
    typer.Option(
        min=1, max=1_000, help="Samples that run at the same time, on each server if there are some."
    ),
]
Repetitions = Annotated[
    int, typer.Option("--samples", min=1, max=1_000, help="Answers to each question, each with its own seed.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Use the first so many questions.")]
Items = Annotated[
    str | None,
    typer.Option(help="Use these questions, by their places from 1 and their ids: 3-10,17,HumanEval/5."),
]
MaxCalls = Annotated[int | None, typer.Option(min=1, help="Stop after so many model calls in all.")]
MaxTokens = Annotated[int | None, typer.Option(min=1, help="Stop after so many tokens in all.")]
MaxUsd = Annotated[
    float | None, typer.Option(min=0.0, help="Stop when it has cost so much in all; needs --price.")
]
PriceOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        metavar="[MODEL=]READ/WRITTEN",
        help="USD per million tokens: 0.25/2.00, or openai:gpt-5-mini=0.25/2.00; a third figure is for cached input. May "
        "be repeated.",
    ),
]
ServerOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="A LangGraph server that runs the samples; may be repeated. Its key is in LANGGRAPH_API_KEY.",
    ),
]


@eval_app.command("run")
@reported()
def run(
    questions: Annotated[
        str,
        typer.Argument(
            help="A .jsonl, .json or .csv file with question and, if known, answer, contains or steps; or the name of a "
            "benchmark."
        ),
    ],
    methods: Annotated[
        str, typer.Option(help="Methods with their settings: rag:k=10,rat:window=1,self_refinement.")
    ] = "rag,rat,rpg",
    directory: Annotated[Path, typer.Option("--into", help="The directory of the evaluation.")] = Path(
        "eval"
    ),
    sources: Sources = None,
    memory: Memory = None,
    model: Model = None,
    settings: Settings = None,
    data: Annotated[
        Path | None, typer.Option(help="The file of a benchmark, in place of the published one.")
    ] = None,
    items: Items = None,
    limit: Limit = None,
    repetitions: Repetitions = 1,
    concurrency: Concurrency = 4,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    price: PriceOptions = None,
    server: ServerOptions = None,
    langsmith: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Upload it to LangSmith as a dataset and an experiment a method."),
    ] = None,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Run failed samples again.")] = False,
    allow_keyless: Annotated[
        bool, typer.Option("--allow-keyless", help="Score the keyless model, to try the evaluation itself.")
    ] = False,
    sandbox: Annotated[
        str, typer.Option(help="What runs the programs of a benchmark of code: bubblewrap, docker or none.")
    ] = "bubblewrap",
    i_understand: Annotated[
        bool,
        typer.Option("--i-understand", help="With --sandbox none: programs may do whatever this user may."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Run methods on questions and print the report. The same command goes on with a run that was stopped."""
    from stepcraft.cli.tracing import tracing
    from stepcraft.evals.benchmarks.registry import described, named_samples
    from stepcraft.evals.evaluate import evaluate
    from stepcraft.evals.langsmith_upload import LangSmith
    from stepcraft.evals.methods import read_methods
    from stepcraft.evals.prices import Prices
    from stepcraft.evals.progress import Budget
    from stepcraft.evals.reports.markdown import markdown
    from stepcraft.evals.samples import picked, repeated
    from stepcraft.evals.sandbox import Sandbox
    from stepcraft.evals.servers import Servers
    from stepcraft.evals.summary import summarise
    from stepcraft.graphs.registry import GRAPHS

    uploads = LangSmith(langsmith) if langsmith else None
    kept_in = Sandbox(cast("Kind", sandbox), i_understand=i_understand)
    samples, score, fields = named_samples(questions, data, None if items else limit, kept_in)
    if items:
        samples = picked(samples, items)[:limit]
    samples = repeated(samples, repetitions)
    own = context_fields(settings, model=model, retriever=sources, memory=memory)
    if "memory" in own:  # it is searched in place of the passages that the file brings
        fields = {name: value for name, value in fields.items() if name != "retriever"}
    for graph in GRAPHS.keys() & fields.keys():
        fields = {**fields, graph: {name: value for name, value in fields[graph].items() if name not in own}}
    fields = {**fields, **own}
    named = read_methods(methods, fields)
    err = Console(stderr=True, quiet=quiet)
    with tracing(err) as callbacks, ShownProgress(quiet=quiet) as progress:
        work = evaluate(
            named,
            samples,
            directory,
            scorers=[score],
            benchmark=described(questions, data),
            concurrency=concurrency,
            servers=Servers(server, concurrency=concurrency) if server else None,
            budget=Budget(max_calls, max_tokens, max_usd),
            prices=Prices.of(price),
            retry_errors=retry_errors,
            allow_keyless=allow_keyless,
            callbacks=callbacks,
            on_progress=progress,
        )
        _finish(work, progress)
    if uploads:
        uploaded = uploads.upload(directory, samples)
        write(err, f"LangSmith has {uploaded:,} more {'run' if uploaded == 1 else 'runs'} of it")
    say(markdown(summarise(directory)))


@eval_app.command("judge")
@reported()
def judged(
    judges: Annotated[
        list[str],
        typer.Option(
            "--judge",
            metavar="MODEL",
            help="The judge, named as --model names a model; repeat it for several, whose agreement is reported.",
        ),
    ],
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The directory of an evaluation.")
    ] = None,
    votes: Annotated[int, typer.Option(min=2, help="Votes on a pair of answers, half in each order.")] = 10,
    passage_tokens: Annotated[
        int,
        typer.Option(
            min=100, help="Tokens of passages that a judge is shown with an answer; more are shortened."
        ),
    ] = 16_000,
    concurrency: Annotated[int, typer.Option(min=1, max=1_000, help="Calls at the same time.")] = 4,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_usd: MaxUsd = None,
    price: PriceOptions = None,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate", help="Compare the judge with 50 sentences that were marked by hand."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Have models compare every method with the cheapest, and check the answers against their passages."""
    from stepcraft.evals.judging import calibrate as calibrated
    from stepcraft.evals.judging import judge as judge_all
    from stepcraft.evals.prices import Prices
    from stepcraft.evals.progress import Budget
    from stepcraft.evals.reports.markdown import agreement_line, markdown
    from stepcraft.evals.summary import summarise

    if directory:
        with ShownProgress(quiet=quiet) as progress:
            work = judge_all(
                directory,
                judges,
                votes=votes,
                passage_tokens=passage_tokens,
                concurrency=concurrency,
                budget=Budget(max_calls, max_tokens, max_usd),
                prices=Prices.of(price),
                calibrated=calibrate,
                on_progress=progress,
            )
            _finish(work, progress)
        say(markdown(summarise(directory)))
    elif calibrate:
        for judge in judges:
            say(agreement_line(asyncio.run(calibrated(judge, concurrency=concurrency))))
    else:
        raise BadInput("there is nothing to judge; name the directory of an evaluation, or use --calibrate")


def _finish(work: Coroutine[Any, Any, object], progress: ShownProgress) -> None:
    """Do the work; where Ctrl-C stops it, say how it goes on."""
    try:
        asyncio.run(work)
    except KeyboardInterrupt:
        progress.say("stopped; the same command goes on from here")
        raise


@eval_app.command("report")
@reported()
def report(
    directories: Annotated[
        list[Path],
        typer.Argument(metavar="DIR…", help="The directories of evaluations, reported side by side."),
    ],
    to: Annotated[Path | None, typer.Option("--to", help="Write Markdown into this file.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with plots and all samples.")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write a row for each sample of each method.")
    ] = None,
    latex: Annotated[Path | None, typer.Option("--latex", help="Write a table for LaTeX.")] = None,
    mauve: Annotated[
        str | None,
        typer.Option(
            metavar="FEATURES",
            help="Report MAUVE, too, with features of gpt2-large or of embeddings such as wordllama.",
        ),
    ] = None,
) -> None:
    """Report what evaluations found so far; as Markdown, unless a file is named."""
    from stepcraft.evals.reports.markdown import markdown
    from stepcraft.evals.reports.page import page
    from stepcraft.evals.reports.tables import latex as latex_table
    from stepcraft.evals.reports.tables import outcome_rows
    from stepcraft.evals.summary import summarise

    for file in (to, html, csv, latex):
        if file:
            check_writable(file)
    named = _named(directories)
    if csv:
        csv.write_text(outcome_rows(named), encoding="utf-8")
    if csv and not (to or html or latex):
        return
    summaries = {name: summarise(directory, mauve) for name, directory in named.items()}
    text = "\n".join(
        markdown(one, name if len(named) > 1 else "Evaluation") for name, one in summaries.items()
    )
    if to:
        to.write_text(text, encoding="utf-8")
    if latex:
        latex.write_text(latex_table(summaries), encoding="utf-8")
    if html:
        html.write_text(page(named, summaries), encoding="utf-8")
    if not (to or html or latex):
        say(text)


def _named(directories: list[Path]) -> dict[str, Path]:
    """The directories by their last names; by their paths where two have the same."""
    if twice := next((one for one in directories if directories.count(one) > 1), None):
        raise BadInput(f"the directory {twice} is named twice; name each once")
    names = [one.resolve().name for one in directories]
    return {
        name if names.count(name) == 1 else str(one): one
        for name, one in zip(names, directories, strict=True)
    }


@eval_app.command("compare")
@reported()
def compare(
    directory: Directory,
    first: Annotated[str, typer.Argument(metavar="A", help="A method, named as when it was run.")],
    second: Annotated[str, typer.Argument(metavar="B", help="The method to compare it with.")],
    score: Annotated[
        str | None, typer.Option("--score", help="List the samples that differ in this score.")
    ] = None,
    count: Annotated[int, typer.Option("--count", min=1, help="List so many samples.")] = 10,
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="ID", help="Show both outputs for this sample.")
    ] = None,
) -> None:
    """Compare two methods sample by sample: differences, tests, and where they differ most."""
    from stepcraft.cli.comparison import sample_text, scores_text
    from stepcraft.evals.compare import paired_methods

    found = paired_methods(directory, first, second)
    if sample is not None:
        say(sample_text(found.pair(sample)))
        return
    known = [one.score for one in found.comparisons]
    if score is not None and score not in known:
        raise BadInput(
            f"there is no score {score!r:.80} of both methods; there is {', '.join(known) or 'none'}"
        )
    say(scores_text(found, first, second, score or next(iter(known), ""), count))


@eval_app.command("list")
def listing() -> None:
    """List the methods and the benchmarks, one per line."""
    from stepcraft.evals.benchmarks.registry import BENCHMARKS
    from stepcraft.evals.methods import SELF_REFINEMENT
    from stepcraft.graphs.registry import GRAPHS

    for name, listed in GRAPHS.items():
        say(f"{name:<19} {listed.line}")
    say(f"{SELF_REFINEMENT:<19} baseline: AAG's draft, critic and edits with an empty memory")
    say("")
    for one in BENCHMARKS.values():
        cited = f"; {one.citation}" if one.citation else ""
        say(f"{one.name:<19} {one.line}; from {one.source}, licence: {one.licence}{cited}")
