"""`stepcraft eval`: run methods on questions of one's own, and report what was found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option, Typer
from typing_extensions import Unpack

from stepcraft.cli.building import finish
from stepcraft.cli.options import (
    EvaluationOptions,
    WorkOptions,
    check_writable,
    search_fields,
    unpacked,
    work_arguments,
)
from stepcraft.cli.output import note, one_line, say
from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stepcraft.evals.compare import Pair, PairedMethods

eval_app = Typer(
    help="Evaluate methods on your own questions.", no_args_is_help=True, rich_markup_mode=None
)

Directory = Annotated[Path, Argument(metavar="DIR", help="The directory of an evaluation.")]


@eval_app.command()
@unpacked
def run(
    questions: Annotated[
        str,
        Argument(
            help="A .jsonl, .json or .csv file with question and, if known, answer, contains or "
            "steps; or the name of a benchmark."
        ),
    ],
    methods: Annotated[
        str,
        Option(help="Methods with their settings: rag:k=10,rat:rounds=1,self_refinement."),
    ] = "rag,rat,rpg",
    directory: Annotated[Path, Option("--into", help="The directory of the evaluation.")] = Path(
        "eval"
    ),
    data: Annotated[
        Path | None, Option(help="The file of a benchmark, in place of the published one.")
    ] = None,
    items: Annotated[
        str | None,
        Option(help="These questions alone, by place from 1 and id: 3-10,17,HumanEval/5."),
    ] = None,
    limit: Annotated[int | None, Option(min=1, help="The first N questions alone.")] = None,
    repetitions: Annotated[
        int, Option("--samples", min=1, max=1_000, help="Answers to each question.")
    ] = 1,
    langsmith: Annotated[
        str | None,
        Option(
            metavar="NAME", help="Upload it to LangSmith: a dataset, and an experiment a method."
        ),
    ] = None,
    retry_errors: Annotated[
        bool, Option("--retry-errors", help="Run failed samples again.")
    ] = False,
    allow_keyless: Annotated[
        bool, Option("--allow-keyless", help="Score the keyless model, to try an evaluation.")
    ] = False,
    sandbox: Annotated[
        Literal["bubblewrap", "docker", "none"],
        Option(help="What runs generated programs: bubblewrap, docker or none."),
    ] = "bubblewrap",
    i_understand: Annotated[
        bool,
        Option("--i-understand", help="With --sandbox none: programs may do whatever you may."),
    ] = False,
    **options: Unpack[EvaluationOptions],
) -> None:
    """Run methods on questions and print the report.

    The same command goes on with a run that was stopped.
    """
    from stepcraft.evals.benchmarks.registry import described, named_samples
    from stepcraft.evals.evaluate import evaluate
    from stepcraft.evals.langsmith_upload import LangSmith
    from stepcraft.evals.methods import read_methods
    from stepcraft.evals.samples import picked, repeated
    from stepcraft.evals.sandbox import Sandbox
    from stepcraft.graphs.registry import GRAPHS

    uploads = LangSmith(langsmith) if langsmith else None
    programs = Sandbox(sandbox, i_understand=i_understand)
    samples, score, fields = named_samples(questions, data, None if items else limit, programs)
    if items:
        samples = picked(samples, items)[:limit]
    samples = repeated(samples, repetitions)
    chosen = search_fields(options)
    # The user's settings go before those that a benchmark has for one graph.
    fields = {
        name: {key: each for key, each in value.items() if key not in chosen}
        if name in GRAPHS
        else value
        for name, value in fields.items()
        if name != "sources" or "memory" not in chosen
    }
    work = evaluate(
        read_methods(methods, {**fields, **chosen}),
        samples,
        directory,
        scorers=[score],
        benchmark=described(questions, data),
        retry_errors=retry_errors,
        allow_keyless=allow_keyless,
        **work_arguments(options),
    )
    finish(work)
    if uploads:
        note(f"LangSmith has {uploads.upload(directory, samples):,} more runs of it")
    _print_report(directory)


@eval_app.command()
@unpacked
def judge(
    judges: Annotated[
        list[str],
        Option("--judge", metavar="MODEL", help="A model that judges; may be repeated."),
    ],
    directory: Directory,
    votes: Annotated[int, Option(help="Votes on a pair of answers, half in each order.")] = 10,
    passage_tokens: Annotated[
        int, Option(help="Limit on the tokens of the passages of an answer.")
    ] = 16_000,
    **options: Unpack[WorkOptions],
) -> None:
    """Have models compare methods with the cheapest, and answers with their passages."""
    from stepcraft.evals import judging

    work = judging.judge(
        directory,
        judges,
        votes=votes,
        passage_tokens=passage_tokens,
        **work_arguments(options),
    )
    finish(work)
    _print_report(directory)


def _print_report(directory: Path) -> None:
    from stepcraft.evals.reports.markdown import markdown
    from stepcraft.evals.summary import summarise

    say(markdown(summarise(directory)))


@eval_app.command()
def report(
    directories: Annotated[
        list[Path],
        Argument(metavar="DIR…", help="The directories of evaluations, side by side."),
    ],
    to: Annotated[Path | None, Option(help="Write Markdown into this file.")] = None,
    html: Annotated[Path | None, Option(help="Write a page with plots and samples.")] = None,
    csv: Annotated[Path | None, Option(help="Write a row for each sample.")] = None,
    mauve: Annotated[
        str | None,
        Option(metavar="FEATURES", help="Report MAUVE, with features of gpt2-large or embeddings."),
    ] = None,
) -> None:
    """Report what evaluations found so far; as Markdown, unless a file is named."""
    from stepcraft.evals.reports.markdown import markdown
    from stepcraft.evals.reports.page import page
    from stepcraft.evals.reports.tables import outcome_rows
    from stepcraft.evals.summary import summarise

    check_writable(to, html, csv)
    named = {str(directory): directory for directory in directories}
    if csv:
        csv.write_text(outcome_rows(named), encoding="utf-8")
    summaries = {name: summarise(directory, mauve) for name, directory in named.items()}
    text = "\n".join(
        markdown(summary, name if len(named) > 1 else "Evaluation")
        for name, summary in summaries.items()
    )
    if to:
        to.write_text(text, encoding="utf-8")
    if html:
        html.write_text(page(named, summaries), encoding="utf-8")
    if not any((to, html, csv)):
        say(text)


@eval_app.command()
def compare(
    directory: Directory,
    first: Annotated[str, Argument(metavar="A", help="A method, named as when it was run.")],
    second: Annotated[str, Argument(metavar="B", help="The method to compare it with.")],
    score: Annotated[str | None, Option(help="List the samples that differ in this score.")] = None,
    count: Annotated[int, Option(min=1, help="Limit on the samples that are listed.")] = 10,
    sample: Annotated[
        str | None, Option(metavar="ID", help="Show both outputs for this sample.")
    ] = None,
) -> None:
    """Compare two methods sample by sample: differences, tests, and where they differ most."""
    from stepcraft.evals.compare import paired_methods

    methods = paired_methods(directory, first, second)
    names = [comparison.score for comparison in methods.comparisons]
    if score and score not in names:
        raise BadInput(f"both methods have no score {score!r}; there is {', '.join(names)}")
    lines = (
        _sample_lines(methods.pair(sample))
        if sample is not None
        else _score_lines(methods, score or next(iter(names), ""), count)
    )
    say("\n".join(lines))


def _score_lines(methods: "PairedMethods", score: str, count: int) -> "Iterable[str]":
    from stepcraft.evals.reports.markdown import KEYLESS, difference_text, p_text
    from stepcraft.evals.summary import is_keyless

    outcomes = [outcome for pair in methods.pairs.values() for outcome in vars(pair).values()]
    first, second = outcomes[0]["method"], outcomes[1]["method"]
    yield f"{first} against {second}, samples: {len(methods.pairs):,}"
    if is_keyless(outcomes):
        yield KEYLESS
    for comparison in methods.comparisons:
        tests = {"p": comparison.p, "McNemar": comparison.mcnemar_p, "signs": comparison.sign_p}
        shown = [f"{name} {p_text(p)}" for name, p in tests.items() if p is not None]
        wins, losses, ties = comparison.record
        shown.append(f"wins {wins}, losses {losses}, ties {ties}")
        yield f"{comparison.score}: {difference_text(comparison)}; {', '.join(shown)}"
    yield f"where they differ most in {score}:" if score else "both have no score in common"
    for pair in methods.most_different(score, count):
        scores = f"{pair.first['scores'][score]:.3f}  {pair.second['scores'][score]:.3f}"
        yield f"{scores}  {pair.first['id']}  {one_line(pair.first['sample']['question'])[:160]}"


def _sample_lines(pair: "Pair") -> "Iterable[str]":
    for name, value in pair.first["sample"].items():
        yield f"{name}: {value}"
    for outcome in (pair.first, pair.second):
        output, usage = outcome["output"], outcome["usage"]
        scores = "".join(f"{name} {value:.3f}, " for name, value in outcome["scores"].items())
        cost = f"{usage.get('calls', 0)} calls, {outcome['seconds']:,.1f} s"
        yield f"\n== {outcome['method']}: {scores}{cost}"
        yield outcome["error"] or str(output.get("answer") or output.get("steps"))
        yield from (f"warning: {warning}" for warning in outcome["warnings"])
        for number, passage in enumerate(output.get("evidence") or [], 1):
            yield f"[{number}] {passage.get('title', '')}\n{passage.get('text', '')}"


@eval_app.command("list")
def list_() -> None:
    """List the methods and the benchmarks, one per line."""
    from stepcraft.evals.benchmarks.registry import BENCHMARKS
    from stepcraft.evals.methods import SELF_REFINEMENT
    from stepcraft.graphs.registry import GRAPHS

    names = ", ".join([*GRAPHS, SELF_REFINEMENT])
    say(f"methods: {names} (`stepcraft graphs` says more)\n")
    for name, benchmark in BENCHMARKS.items():
        cited = f"; {benchmark.citation}" if benchmark.citation else ""
        about = f"{benchmark.line}; from {benchmark.source}, licence: {benchmark.licence}{cited}"
        say(f"{name:<19} {about}")
