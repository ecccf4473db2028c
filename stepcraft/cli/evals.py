"""`stepcraft eval`: run methods on questions of one's own, and report what was found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from collections.abc import Iterable, Mapping

    from stepcraft.evals.benchmark import Questions
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
        Option(help="Methods with their settings: rag:k=10,rat:rounds=1."),
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
    keep_calls: Annotated[
        bool, Option("--keep-calls", help="Keep the prompts and replies of each sample.")
    ] = False,
    cache: Annotated[
        Path | None,
        Option(metavar="DIR", help="Keep the replies of models here, and ask for none twice."),
    ] = None,
    langsmith: Annotated[
        str | None,
        Option(metavar="NAME", help="Upload each method to LangSmith as an experiment."),
    ] = None,
    retry_errors: Annotated[
        bool, Option("--retry-errors", help="Run failed samples again.")
    ] = False,
    allow_keyless: Annotated[
        bool, Option("--allow-keyless", help="Score the keyless model, to try an evaluation.")
    ] = False,
    **options: Unpack[EvaluationOptions],
) -> None:
    """Run methods on questions and print the report.

    The same command goes on with a run that was stopped.
    """
    from langchain_core.globals import set_llm_cache

    from stepcraft.evals.cache import ReplyCache
    from stepcraft.evals.evaluate import evaluate
    from stepcraft.evals.langsmith import check_key, upload
    from stepcraft.evals.methods import read_methods
    from stepcraft.evals.samples import picked, repeated

    if langsmith:
        check_key()
    if cache:
        if repetitions > 1:
            raise BadInput("with --cache all --samples of a question may be one; leave one out")
        set_llm_cache(ReplyCache(cache))
    loaded, benchmark = _questions(questions, data, None if items else limit)
    samples = picked(loaded.samples, items)[:limit] if items else loaded.samples
    settings = _settings(loaded.settings, search_fields(options))
    work = evaluate(
        read_methods(methods, settings),
        repeated(samples, repetitions),
        directory,
        scorers=loaded.scorers,
        benchmark=benchmark,
        keep_calls=keep_calls,
        retry_errors=retry_errors,
        allow_keyless=allow_keyless,
        **work_arguments(options),
    )
    finish(work)
    if langsmith:
        note(f"LangSmith has {', '.join(upload(directory, langsmith))}")
    _print_report(directory)


def _questions(
    name: str, data: Path | None, limit: int | None
) -> "tuple[Questions, dict[str, str] | None]":
    """Return the questions of a file or a benchmark, and where those of a benchmark are from."""
    from stepcraft.evals.benchmark import Questions, benchmark_names, get_benchmark
    from stepcraft.evals.passages import pooled
    from stepcraft.evals.samples import read_samples

    file = Path(name)
    if name in benchmark_names() or not (file.suffix or file.exists()):
        benchmark = get_benchmark(name)
        loaded = benchmark.load(data, limit)
        return loaded, {**benchmark.origin(), "version": loaded.version}
    if data is not None:
        raise BadInput(f"--data {data} is for a benchmark, and {name} is a file; leave it out")
    return Questions(read_samples(file, limit), settings=pooled(file)), None


def _settings(loaded: "Mapping[str, Any]", chosen: "Mapping[str, Any]") -> "dict[str, Any]":
    """Return the settings of questions and those that the user chose, which go first.

    The passages of a file are not searched where the user names a memory.
    """
    from stepcraft.graphs.registry import graph_names

    graphs = graph_names()
    settings = {
        name: {key: each for key, each in value.items() if key not in chosen}
        if name in graphs
        else value
        for name, value in loaded.items()
        if name != "sources" or "memory" not in chosen
    }
    return {**settings, **chosen}


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
    summaries = {name: summarise(directory) for name, directory in named.items()}
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
    from stepcraft.evals.reports.markdown import KEYLESS
    from stepcraft.evals.reports.tables import difference_text, p_text
    from stepcraft.evals.summary import is_keyless

    outcomes = [outcome for pair in methods.pairs.values() for outcome in pair]
    first, second = outcomes[0]["method"], outcomes[1]["method"]
    yield f"{first} against {second}, samples: {len(methods.pairs):,}"
    if is_keyless(outcomes):
        yield KEYLESS
    for each in methods.comparisons:
        ties = each.samples - each.wins - each.losses
        yield (
            f"{each.score}: {difference_text(each.difference)}; p {p_text(each.p)}, "
            f"signs {p_text(each.sign_p)}, wins {each.wins}, losses {each.losses}, ties {ties}"
        )
    yield f"where they differ most in {score}:" if score else "both have no score in common"
    for ours, theirs in methods.most_different(score, count):
        scores = f"{ours['scores'][score]:.3f}  {theirs['scores'][score]:.3f}"
        yield f"{scores}  {ours['id']}  {one_line(ours['sample']['question'])[:160]}"


def _sample_lines(pair: "Pair") -> "Iterable[str]":
    for name, value in pair[0]["sample"].items():
        yield f"{name}: {value}"
    for outcome in pair:
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
    """List the methods and the installed benchmarks, one per line."""
    from stepcraft.evals.benchmark import benchmark_names, get_benchmark
    from stepcraft.evals.methods import method_names

    say(f"methods: {', '.join(method_names())} (`stepcraft graphs` says more)\n")
    for name in benchmark_names():
        benchmark = get_benchmark(name)
        cited = f"; {benchmark.citation}" if benchmark.citation else ""
        about = f"from {benchmark.source}, licence: {benchmark.licence}{cited}"
        say(f"{name:<19} {benchmark.description}; {about}")
    say("\nmethods and benchmarks of papers: pip install stepcraft-papers")
