"""The page for one or more evaluations: figures, plots and samples, in one HTML file.

The page loads no external resources. Its only script shows the samples; tables and plots work
without it. All text from samples and models is escaped by the templates, or set as text by the
script.
"""

from collections.abc import Mapping
from importlib.resources import files
from operator import attrgetter

from stepcraft.evals.compare import samples_of
from stepcraft.evals.directory import SAMPLES as SAMPLES_FILE
from stepcraft.evals.reports._plots import Plot, Value
from stepcraft.evals.reports._samples import CHARACTERS, SAMPLES, packed
from stepcraft.evals.reports.markdown import notes, verdict, warnings
from stepcraft.evals.reports.tables import differences, score_names, tables
from stepcraft.evals.summary import Summary
from stepcraft.evals.votes import grouped
from stepcraft.report.rendering import counted, rendered

_HERE = files("stepcraft.evals.reports")
_PLOTTED_SCORES = 4
"""The number of scores that are plotted against the costs."""


def page(summary: Summary, changed: tuple[str, str, str] = ("", "", "")) -> str:
    """Return a page that shows evaluations side by side.

    Args:
        summary: The result of `summarise` for the evaluations.
        changed: Two methods and a score; the page initially shows the samples on which they differ.

    Raises:
        BadInput: A directory is damaged.
    """
    numbers = {method.method: number for number, method in enumerate(summary.methods, 1)}
    samples = samples_of(summary)
    every = tables(summary)
    titles = ["Result", *(table.title for table in every), "Samples"]
    facts = [counted(len(summary.methods), "method"), counted(len(samples), "sample")]
    return rendered(
        "evaluation.html.j2",
        folder=_HERE,
        style=(_HERE / "evaluation.css").read_text("utf-8"),
        script=(_HERE / "evaluation.js").read_text("utf-8"),
        title="Evaluation",
        heading=" · ".join(
            dict.fromkeys(each["name"] for each in summary.benchmarks) or summary.directories
        ),
        facts=facts + sorted({method.model for method in summary.methods if method.model}),
        sections=[(title.lower().replace(" ", "-"), title) for title in titles],
        warnings=warnings(summary),
        verdict=verdict(summary),
        tables=every,
        others=[
            (name, differences(pairs, ""))
            for name, pairs in grouped(summary.pairs, attrgetter("against")).items()
            if len(numbers) > 2 and name not in summary.baselines
        ],
        plots=_plots(summary, numbers),
        numbers=numbers,
        notes=notes(summary),
        data=packed(samples),
        changed=changed,
        left_out=(
            f"Texts are cut after {CHARACTERS:,} characters, and samples after the first "
            f"{SAMPLES:,}; the whole is in {SAMPLES_FILE} of the directory."
        ),
    )


def _plots(summary: Summary, numbers: Mapping[str, int]) -> dict[str, list[Plot]]:
    """Return plots of the first few scores against each cost, by score."""
    is_priced = all("USD" in each.costs for each in summary.methods)
    plots: dict[str, list[Plot]] = {}
    for score in score_names(summary)[:_PLOTTED_SCORES]:
        for cost in ("USD" if is_priced else "tokens in", "tokens out", "seconds"):
            values = [
                Value(numbers[each.method], each.method, each.scores[score], each.costs[cost])
                for each in summary.methods
                if score in each.scores and cost in each.costs
            ]
            if values:
                plots.setdefault(score, []).append(Plot(score, cost, values))
    return plots
