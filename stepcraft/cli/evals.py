"""`stepcraft eval`: run methods on your own questions, and report the results."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option, Typer
from typing_extensions import Unpack

from stepcraft.cli.building import finish
from stepcraft.cli.options import (
    EvaluationOptions,
    Price,
    WorkOptions,
    check_writable,
    search_fields,
    unpacked,
    work_arguments,
)
from stepcraft.cli.output import note, say
from stepcraft.errors import BadInput, RunStopped
from stepcraft.files import named_path
from stepcraft.registered import did_you_mean
from stepcraft.text.clean import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stepcraft.evals.benchmark import Questions
    from stepcraft.evals.methods import AnyMethod
    from stepcraft.evals.progress import Progress
    from stepcraft.evals.summary import Comparison, Summary

eval_app = Typer(
    help="Evaluate methods on your own questions.", no_args_is_help=True, rich_markup_mode=None
)

Directory = Annotated[Path, Argument(metavar="DIR", help="The directory of an evaluation.")]
Baseline = Annotated[
    str | None,
    Option(metavar="METHOD", help="Compare the others with this method; by default the first."),
]
FailUnder = Annotated[
    list[str] | None,
    Option(
        metavar="SCORE=LEAST",
        help="End with status 1 if a method's mean is under this; may be repeated.",
    ),
]
_MOST_ADVISED = 300


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
        str | None,
        Option(
            help="Methods with their settings: rag:k=10,rat:rounds=1. By default rag,rat,rpg, or "
            "those of --method alone."
        ),
    ] = None,
    named: Annotated[
        list[str] | None,
        Option(
            "--method",
            metavar="NAME=METHOD",
            help="A method under a name: quick=rat:rounds=1, mine=package.module:graph (a Runnable "
            "or a function of the question), or mine=https://host/assistant (a LangGraph "
            "deployment). May be repeated.",
        ),
    ] = None,
    directory: Annotated[Path, Option("--into", help="The directory of the evaluation.")] = Path(
        "eval"
    ),
    data: Annotated[
        Path | None, Option(help="The file of a benchmark, in place of the published one.")
    ] = None,
    limit: Annotated[int | None, Option(min=1, help="The first N questions alone.")] = None,
    repetitions: Annotated[
        int, Option("--samples", min=1, max=1_000, help="Answers to each question.")
    ] = 1,
    keep_calls: Annotated[
        bool, Option("--keep-calls", help="Keep the prompts and replies of each sample.")
    ] = False,
    baseline: Baseline = None,
    fail_under: FailUnder = None,
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

    Rerun the command to resume a stopped run; questions and methods can be added.
    """
    from stepcraft.evals.directory import read_outcomes
    from stepcraft.evals.evaluate import evaluate
    from stepcraft.evals.langsmith import upload
    from stepcraft.evals.methods import read_methods, read_named_method
    from stepcraft.evals.samples import repeated
    from stepcraft.evals.stats import scipy_stats

    scipy_stats()
    directory = named_path(directory)
    loaded, benchmark = _questions(questions, data, limit)
    settings = _settings(loaded.settings, search_fields(options))
    chosen: list[AnyMethod] = [read_named_method(each, settings) for each in named or []]
    if methods is not None or not chosen:
        chosen = [*read_methods("rag,rat,rpg" if methods is None else methods, settings), *chosen]
    _check_names(search_fields(options), chosen)
    _thresholds(fail_under)  # report a mistake before any work is done
    if not options["quiet"]:
        _advise(len(loaded.samples), len(chosen))
    samples = repeated(loaded.samples, repetitions)
    work = evaluate(
        chosen,
        samples,
        directory,
        scorers=loaded.scorers,
        benchmark=benchmark,
        keep_calls=keep_calls,
        retry_errors=retry_errors,
        allow_keyless=allow_keyless,
        **work_arguments(options),
    )
    finish(work)
    if others := {it["id"] for it in read_outcomes(directory)} - {it["id"] for it in samples}:
        note(
            f"{directory} also has answers to questions that were not asked now, such as "
            f"{min(others)!r}; the report counts them, so name another directory to leave them out"
        )
    if langsmith:
        note(f"LangSmith has {', '.join(upload(directory, langsmith))}")
    report([directory], baseline=baseline, price=options["price"], fail_under=fail_under)


def _check_names(names: "Iterable[str]", methods: "Iterable[AnyMethod]") -> None:
    """Reject settings that no method has; the user's own methods have none."""
    from stepcraft.evals.methods import Method
    from stepcraft.graphs.registry import context_of

    graphs = [each.graph for each in methods if isinstance(each, Method)]
    fields = {name: graph for graph in graphs for name in context_of(graph).model_fields}
    for name in names:
        if name not in {*fields, "embeddings"}:
            advice = did_you_mean(name, fields, f"they have {', '.join(fields) or 'none'}")
            raise BadInput(f"no method has a setting {name!r}; {advice}")


def _advise(samples: int, methods: int) -> None:
    """Print the chance of detecting differences of various sizes with this many questions."""
    from stepcraft.evals.stats import power

    if 1 < samples <= _MOST_ADVISED and methods > 1:
        gains = (0.1, 0.2, 0.3)
        chances = ", ".join(f"{power(samples, gain):.0%} for {gain:.0%}" for gain in gains)
        note(
            f"with {samples:,} questions, the chance to detect a true gain in right answers is "
            f"{chances}"
        )


def _thresholds(entries: list[str] | None) -> dict[str, float]:
    """Return the minimum mean for each score.

    Raises:
        BadInput: An entry has no score or no finite number.
    """
    thresholds: dict[str, float] = {}
    for entry in entries or []:
        score, _, value = entry.rpartition("=")
        try:
            least = float(value)
        except ValueError:
            least = math.nan
        if not math.isfinite(least):
            raise BadInput(f"--fail-under {entry!r} has no number; write score=0.8")
        if not score.strip():
            raise BadInput(f"--fail-under {entry!r} names no score; write score=0.8")
        thresholds[score] = least
    return thresholds


def _check(summary: "Summary", thresholds: "Mapping[str, float]") -> None:
    """Check that no mean is below its threshold, and that no method failed on all samples.

    Raises:
        BadInput: No method has such a score.
        RunStopped: A mean is below its threshold, or a method failed on all samples.
    """
    failed = [it for it in summary.methods if thresholds and it.failed == it.samples]
    low = [f"{it.method} failed on all {it.samples:,} samples" for it in failed]
    for score, least in thresholds.items():
        means = {it.method: it.scores[score].mean for it in summary.methods if score in it.scores}
        if not means:
            names = dict.fromkeys(name for it in summary.methods for name in it.scores)
            raise BadInput(f"no method has the score {score!r}; there is {', '.join(names)}")
        low += [f"{name} has {score} {it:.3f}" for name, it in means.items() if it < least]
    if low:
        raise RunStopped(f"{'; '.join(low)}: under --fail-under")


def _questions(
    name: str, data: Path | None, limit: int | None
) -> "tuple[Questions, dict[str, str] | None]":
    """Return the questions in a file or a benchmark, and the benchmark's origin or None."""
    from stepcraft.evals.benchmark import Questions, benchmark_names, get_benchmark
    from stepcraft.evals.passages import corpus_settings
    from stepcraft.evals.samples import read_samples

    file = Path(name)
    if name in benchmark_names() or not (file.suffix or file.exists()):
        benchmark = get_benchmark(name)
        loaded = benchmark.load(data, limit)
        return loaded, {**benchmark.origin(), "version": loaded.version}
    if data is not None:
        raise BadInput(f"--data {data} is for a benchmark, and {name} is a file; leave it out")
    return Questions(read_samples(file, limit), settings=corpus_settings(file)), None


def _settings(loaded: "Mapping[str, Any]", chosen: "Mapping[str, Any]") -> "dict[str, Any]":
    """Combine the settings of questions with those that the user chose, which take precedence.

    The passages in a file are not searched if the user names a memory.
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
    against: Annotated[
        str | None,
        Option(metavar="METHOD", help="Compare with this method; by default the first."),
    ] = None,
    kinds: Annotated[
        list[str] | None,
        Option(
            "--only",
            metavar="KIND",
            help="What is asked: vote, support, facts, rubric, reference; by default all that the "
            "questions have. May be repeated.",
        ),
    ] = None,
    rubric: Annotated[
        list[str] | None,
        Option(metavar="CRITERION", help="What every answer has to meet; may be repeated."),
    ] = None,
    votes: Annotated[int, Option(help="Votes on a pair of answers, half in each order.")] = 10,
    passage_tokens: Annotated[
        int, Option(min=1, help="Limit on the tokens of the passages of an answer.")
    ] = 16_000,
    dry_run: Annotated[bool, Option("--dry-run", help="Say what it would take, and stop.")] = False,
    fail_under: FailUnder = None,
    **options: Unpack[WorkOptions],
) -> None:
    """Have models compare the methods with a baseline, and grade each answer."""
    from stepcraft.evals import judging
    from stepcraft.evals.kinds import KINDS
    from stepcraft.evals.stats import scipy_stats

    scipy_stats()
    for name in kinds or []:
        if name not in KINDS:
            raise BadInput(f"--only {name!r} is no kind; there is {', '.join(KINDS)}")

    def estimated(estimate: "Progress") -> bool:
        usd = "" if estimate.usd is None else f", {estimate.usd:,.2f} USD"
        if dry_run or not options["quiet"]:
            note(
                f"{estimate.calls:,} calls, some {estimate.tokens:,} tokens in{usd}; replies extra"
            )
        return not dry_run

    _thresholds(fail_under)
    chosen = cast("Any", kinds or KINDS)
    work = judging.judge(
        directory,
        judges,
        against=against,
        kinds=chosen,
        rubric=rubric or (),
        votes=votes,
        passage_tokens=passage_tokens,
        on_estimate=estimated,
        **work_arguments(options),
    )
    finish(work)
    if not dry_run:
        report([directory], baseline=against, fail_under=fail_under)


@eval_app.command()
def agreement(
    directory: Directory,
    labels: Annotated[
        Path,
        Argument(
            help="A .csv file with the columns id, method, label, and for votes against. A label "
            "is right or wrong, of votes win, loss or tie."
        ),
    ],
) -> None:
    """Compare human labels with judges' verdicts or another score: agreement and Cohen's kappa."""
    from stepcraft.evals.agreement import agreements
    from stepcraft.evals.reports.tables import interval_text

    for rater, share, chance in agreements(directory, labels):
        say(f"{rater}: agreement {interval_text(share)}, kappa {interval_text(chance)}")


@eval_app.command()
def report(
    directories: Annotated[
        list[Path],
        Argument(metavar="DIR…", help="The directories of evaluations, side by side."),
    ],
    to: Annotated[Path | None, Option(help="Write Markdown into this file.")] = None,
    html: Annotated[Path | None, Option(help="Write a page with plots and samples.")] = None,
    csv: Annotated[Path | None, Option(help="Write a row for each sample.")] = None,
    baseline: Baseline = None,
    price: Price = None,
    fail_under: FailUnder = None,
) -> None:
    """Report the results of evaluations so far: print Markdown, unless files are named."""
    from stepcraft.evals.prices import Prices
    from stepcraft.evals.reports.markdown import markdown
    from stepcraft.evals.reports.page import page
    from stepcraft.evals.reports.tables import outcome_rows
    from stepcraft.evals.summary import summarise

    check_writable(to, html, csv)
    thresholds = _thresholds(fail_under)
    named = {str(directory): directory for directory in directories}
    summary = summarise(named, baseline, Prices.of(price))
    if csv:
        csv.write_text(outcome_rows(summary), encoding="utf-8")
    text = markdown(summary)
    if to:
        to.write_text(text, encoding="utf-8")
    if html:
        html.write_text(page(summary), encoding="utf-8")
    if not any((to, html, csv)):
        say(text)
    _check(summary, thresholds)


@eval_app.command()
def compare(
    directory: Directory,
    first: Annotated[
        str,
        Argument(metavar="A", help="A method, or another directory: that after a change."),
    ],
    second: Annotated[
        str | None, Argument(metavar="[B]", help="The method to compare A with.")
    ] = None,
    score: Annotated[str | None, Option(help="List the samples that differ in this score.")] = None,
    count: Annotated[int, Option(min=1, help="Limit on the samples that are listed.")] = 10,
    html: Annotated[
        Path | None, Option(help="Write a page that begins with the samples that changed.")
    ] = None,
) -> None:
    """Compare two methods sample by sample (`DIR A B`), or two directories (`BEFORE AFTER`)."""
    from stepcraft.evals.compare import paired_samples
    from stepcraft.evals.reports.markdown import warnings
    from stepcraft.evals.reports.page import page
    from stepcraft.evals.summary import summarise

    check_writable(html)
    named = {str(directory): directory}
    if second is None:
        named[str(Path(first))] = Path(first)
        if len(named) < 2 or not Path(first).is_dir():
            raise BadInput(f"{first!r} is no other directory; name DIR A B, or BEFORE AFTER")
    summary = summarise(named)
    changes = {(it.method, it.against): None for it in summary.pairs if it.is_change}
    pairs = [*changes] if second is None else [(first, second)]
    if not pairs:
        raise BadInput(
            f"{directory} and {first} have no scores of the same questions; run the same questions "
            "into both"
        )
    for pair in pairs:
        samples = paired_samples(summary, *pair)
        comparisons = [it for it in summary.pairs if (it.method, it.against) == pair]
        names = [comparison.score for comparison in comparisons]
        if score and score not in names:
            raise BadInput(f"both methods have no score {score!r}; there is {', '.join(names)}")
        say(f"{' against '.join(pair)}, samples: {len(samples):,}")
        most = _most_changed(comparisons)
        listed = _by_answer(score or (most.score if most else ""), comparisons)
        say("\n".join(_score_lines(comparisons, _differing(samples, listed, pair), listed, count)))
    for warning in warnings(summary):
        say(warning)
    if html:
        compared = [it for it in summary.pairs if (it.method, it.against) in pairs]
        most = _most_changed([it for it in compared if score in {None, it.score}])
        by = _by_answer(most.score if most else "", compared)
        changed = (most.method, most.against, by) if most else (*pairs[0], by)
        summary = replace(summary, pairs=compared, baselines=[against for _, against in pairs])
        html.write_text(page(summary, changed), encoding="utf-8")


def _most_changed(comparisons: "Iterable[Comparison]") -> "Comparison | None":
    """Return the comparison with the largest mean difference."""
    return max(comparisons, key=lambda each: abs(each.difference.mean), default=None)


def _by_answer(score: str, comparisons: "Iterable[Comparison]") -> str:
    """Return the score by which single answers are listed: pass@1 for pass@5, or the same one."""
    single = re.sub(r"\Apass@\d+", "pass@1", score)
    return single if any(each.score == single for each in comparisons) else score


def _differing(
    samples: "Iterable[dict[str, Any]]", score: str, pair: tuple[str, str]
) -> list[tuple[float, float, dict[str, Any]]]:
    """Return both methods' scores on each sample where they differ, largest difference first."""
    from stepcraft.evals.votes import vote_scores

    differing: list[tuple[float, float, dict[str, Any]]] = []
    for sample in samples:
        judged = [each for run in sample["runs"] for each in run["judged"]]
        votes = vote_scores(judged, *pair).get(score, {})
        scores: list[float] = [run["scores"].get(score, math.nan) for run in sample["runs"]]
        ours, theirs = votes.get(sample["id"], scores)
        if abs(ours - theirs) > 0:
            differing.append((ours, theirs, sample))
    return sorted(differing, key=lambda each: -abs(each[0] - each[1]))


def _score_lines(
    comparisons: "Iterable[Comparison]",
    differing: "Sequence[tuple[float, float, dict[str, Any]]]",
    score: str,
    count: int,
) -> "Iterable[str]":
    """Yield the comparisons, and the samples that differ most in a score."""
    from stepcraft.evals.reports.tables import interval_text, p_text

    for each in comparisons:
        ties = each.samples - each.wins - each.losses
        yield (
            f"{each.score}: {interval_text(each.difference)}; p {p_text(each.p)}, "
            f"wins {each.wins}, losses {each.losses}, ties {ties}"
        )
    if not score:
        yield "both have no score in common"
    elif differing:
        yield f"where they differ most in {score}:"
    else:
        yield f"no sample differs in {score}"
    for ours, theirs, sample in differing[:count]:
        question = one_line(sample["question"])[:160]
        yield f"{ours:.3f}  {theirs:.3f}  {sample['id']}  {question}"


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
