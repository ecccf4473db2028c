"""The page of one or more evaluations: figures, plots and the samples, in one HTML file.

It fetches nothing; its one script shows the samples, and tables and plots are there without it. All
text of samples and models is escaped by the templates, or set as text by the script.
"""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from stepcraft.evals.directory import SAMPLES as SAMPLES_FILE
from stepcraft.evals.reports._plots import WIDTH, Plot, Value, rows, scatter
from stepcraft.evals.reports._samples import CHARACTERS, SAMPLES, packed, samples_of
from stepcraft.evals.reports.markdown import origin, verdict, warnings
from stepcraft.evals.reports.tables import label, labelled, score_names, tables
from stepcraft.evals.summary import Summary
from stepcraft.report.rendering import counted, rendered

_HERE = files("stepcraft.evals.reports")
_COLOURS = 8
_PLOTTED_SCORES = 4
"""For so many scores there are plots against the costs."""


def page(directories: Mapping[str, Path], summaries: Mapping[str, Summary]) -> str:
    """Return the page of evaluations, side by side.

    Args:
        directories: Their directories by name.
        summaries: What `summarise` returns of each.

    Raises:
        BadInput: A directory is damaged.
    """
    methods = labelled(summaries, lambda summary: summary.methods)
    numbers = {method.method: number for number, method in enumerate(methods, 1)}
    labels = {
        (name, method.method): label(summaries, name, method.method)
        for name, summary in summaries.items()
        for method in summary.methods
    }
    samples = samples_of(directories, labels)
    plots: dict[str, list[Plot]] = {}
    for section, plot in _plots(summaries, numbers):
        plots.setdefault(section, []).append(plot)
    every = tables(summaries)
    titles = ["Result", *(table.title for table in every), "Samples"]
    facts = [counted(len(methods), "method"), counted(len(samples), "sample")]
    return rendered(
        "evaluation.html.j2",
        folder=_HERE,
        style=(_HERE / "evaluation.css").read_text("utf-8"),
        script=(_HERE / "evaluation.js").read_text("utf-8"),
        title="Evaluation",
        heading=" · ".join(
            dict.fromkeys(each.benchmark.get("name", name) for name, each in summaries.items())
        ),
        facts=facts + sorted({method.model for method in methods if method.model}),
        sections=[(title.lower().replace(" ", "-"), title) for title in titles],
        warnings=[
            label(summaries, name, text)
            for name, each in summaries.items()
            for text in warnings(each)
        ],
        verdicts=[
            label(summaries, name, verdict(each).replace("**", ""))
            for name, each in summaries.items()
        ],
        tables=every,
        plots=plots,
        numbers=numbers,
        colours=_COLOURS,
        origins=list(filter(None, map(origin, summaries.values()))),
        data=packed(samples),
        left_out=(
            f"Texts are cut after {CHARACTERS:,} characters, and samples after the first "
            f"{SAMPLES:,}; the whole is in {SAMPLES_FILE} of the directory."
        ),
        width=WIDTH,
    )


def _plots(
    summaries: Mapping[str, Summary], numbers: Mapping[str, int]
) -> Iterator[tuple[str, Plot]]:
    """Yield the plots, each with the title of its section."""
    methods = labelled(summaries, lambda summary: summary.methods)
    for score in score_names(summaries)[:_PLOTTED_SCORES]:
        for cost in ("tokens", "calls", "seconds"):
            values = [
                Value(numbers[each.method], each.method, each.scores[score], each.costs[cost])
                for each in methods
                if score in each.scores
            ]
            title = f"{score} against {cost} a sample"
            yield "Scores and costs", scatter(title, f"{cost} a sample", values)
    differences: dict[str, list[Value]] = {}
    for each in labelled(summaries, lambda summary: summary.comparisons):
        words = f"{each.method} − {each.against}"
        value = Value(numbers[each.method], words, each.difference)
        differences.setdefault(each.score, []).append(value)
    supports: dict[str, list[Value]] = {}
    for read in labelled(summaries, lambda summary: summary.supports):
        if read.share:
            value = Value(numbers[read.method], read.method, read.share)
            supports.setdefault(read.judge, []).append(value)
    for score, values in differences.items():
        title = f"difference in {score}"
        yield "Differences", rows(f"D{title[1:]}", title, values, has_base=True)
    for judge, values in supports.items():
        yield "Support", rows(f"Support, judge {judge}", "share of the sentences", values)
