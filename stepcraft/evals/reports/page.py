"""The page of one or more evaluations: figures, plots and a browser of the samples, in one HTML file.

It fetches nothing; its one script shows the samples, and tables and plots are there without it. All text of samples and
models is escaped by the templates, or set as text by the script.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from stepcraft.evals.directory import SAMPLES
from stepcraft.evals.published import Figure, published
from stepcraft.evals.reports._plots import WIDTH, Plot, Value, rows, scatter
from stepcraft.evals.reports._samples import packed
from stepcraft.evals.reports.markdown import (
    agreement_line,
    alike_cells,
    difference_text,
    interval_text,
    mauve_line,
    origin_line,
    p_text,
    score_names,
    verdict,
    warnings,
)
from stepcraft.evals.stats import Interval
from stepcraft.evals.summary import LEVEL, Comparison, MethodSummary, Summary
from stepcraft.report.rendering import counted, rendered

_HERE = files("stepcraft.evals.reports")
_COLOURS = 8
_PLOTTED_SCORES = 4
"""For so many scores there are plots against the costs."""


@dataclass(frozen=True)
class _Row:
    """A method in the tables and plots."""

    number: int
    label: str
    """The name of the method; with several directories after that of its directory."""
    model: str
    summary: MethodSummary


@dataclass(frozen=True)
class _Group:
    """What the page shows of one directory."""

    name: str
    verdict: str
    rows: Sequence[_Row]
    figures: Sequence[Figure]
    summary: Summary


def page(
    directories: Mapping[str, Path],
    summaries: Mapping[str, Summary],
    *,
    most_packed: int = 18_500_000,
) -> str:
    """Return the page of evaluations, side by side.

    Args:
        directories: Their directories by name.
        summaries: What `summarise` makes of each.
        most_packed: The size of the samples, compressed, in bytes of the page; their texts are cut until they fit.

    Raises:
        BadInput: A directory is damaged.
    """
    groups = _groups(summaries)
    methods = [row for group in groups for row in group.rows]
    names = list(dict.fromkeys(score for one in summaries.values() for score in score_names(one)))
    samples = packed(
        directories,
        {(group.name, row.summary.name): row.label for group in groups for row in group.rows},
        most_packed,
    )
    has_judges = any(
        one.preferences or one.supports or one.agreements for one in summaries.values()
    )
    comparisons = [(group.name, one) for group in groups for one in group.summary.comparisons]
    told = [
        f"{name}: {text}" if len(groups) > 1 else text
        for name, one in summaries.items()
        for text in warnings(one)
    ]
    if samples.note:
        told.append(samples.note)
    sections = [
        *([("warnings", "Warnings")] if told else []),
        ("result", "Result"),
        ("scores", "Scores and costs"),
        *([("plots", "Quality and cost")] if names else []),
        *([("differences", "Differences")] if comparisons else []),
        *([("judges", "Judges")] if has_judges else []),
        ("samples", "Samples"),
        ("notes", "How to read it"),
    ]
    return rendered(
        "evaluation.html.j2",
        folder=_HERE,
        style=(_HERE / "evaluation.css").read_text("utf-8"),
        script=(_HERE / "evaluation.js").read_text("utf-8"),
        title="Evaluation",
        heading=" · ".join(
            dict.fromkeys(one.benchmark.get("name", name) for name, one in summaries.items())
        ),
        facts=[
            counted(len(methods), "method"),
            counted(samples.count, "sample"),
            *(
                [counted(len(groups), "directory").replace("directorys", "directories")]
                if len(groups) > 1
                else []
            ),
            *sorted({row.model for row in methods if row.model}),
        ],
        sections=sections,
        warnings=told,
        groups=groups,
        names=names,
        is_priced=any(row.summary.usd is not None for row in methods),
        tests=[(name, one, difference_text(one)) for name, one in comparisons],
        has_exact=any(one.mcnemar_p is not None for _, one in comparisons),
        has_judges=has_judges,
        score_plots=[(name, _cost_plots(name, methods)) for name in names[:_PLOTTED_SCORES]],
        difference_plots=_difference_plots(groups, methods),
        judge_plots=_judge_plots(groups),
        agreements=[agreement_line(one) for group in groups for one in group.summary.agreements],
        alike=alike_cells,
        mauve=mauve_line,
        interval=interval_text,
        p=p_text,
        level=f"{LEVEL:.0%}",
        origins=list(filter(None, map(origin_line, summaries.values()))),
        samples=samples,
        samples_file=SAMPLES,
        width=WIDTH,
        colour=_colour,
    )


def _colour(number: int) -> int:
    return (number - 1) % _COLOURS + 1


def _groups(summaries: Mapping[str, Summary]) -> list[_Group]:
    groups: list[_Group] = []
    number = 0
    for name, summary in summaries.items():
        found: list[_Row] = []
        for method in summary.methods:
            number += 1
            label = f"{name}: {method.name}" if len(summaries) > 1 else method.name
            found.append(_Row(number, label, summary.models.get(method.name, ""), method))
        groups.append(
            _Group(
                name, verdict(summary), found, published(summary.benchmark.get("name", "")), summary
            )
        )
    return groups


def _cost_plots(score: str, methods: Sequence[_Row]) -> list[Plot]:
    known = [row for row in methods if score in row.summary.scores and row.summary.samples]
    return [
        scatter(
            f"{score} against {cost} a sample",
            f"{cost} a sample",
            [
                Value(row.number, row.label, row.summary.scores[score], row.summary.costs[cost])
                for row in known
            ],
        )
        for cost in ("tokens", "calls", "seconds")
    ]


def _difference_plots(groups: Sequence[_Group], methods: Sequence[_Row]) -> list[Plot]:
    """For each score the differences from the cheapest method, around 0."""
    numbers = {row.label: row.number for row in methods}
    found: dict[str, list[Value]] = {}
    for group in groups:
        for one in group.summary.comparisons:
            label = f"{group.name}: {one.method}" if len(groups) > 1 else one.method
            told = f"{label} − {one.against}"
            found.setdefault(one.score, []).append(Value(numbers[label], told, _as_interval(one)))
    return [
        rows(f"Difference in {score}", f"difference in {score}", values, base=0.0)
        for score, values in found.items()
    ]


def _as_interval(one: Comparison) -> Interval:
    return Interval(one.difference.mean, one.difference.low, one.difference.high)


def _judge_plots(groups: Sequence[_Group]) -> list[Plot]:
    """For each judge the support of the methods and their TrueSkill."""
    supports: dict[str, list[Value]] = {}
    ratings: dict[str, list[Value]] = {}
    for group in groups:
        rows_of = {row.summary.name: row for row in group.rows}
        for read in group.summary.supports:
            if read.share and (row := rows_of.get(read.method)):
                supports.setdefault(read.judge, []).append(Value(row.number, row.label, read.share))
        for rated in group.summary.ratings:
            if row := rows_of.get(rated.method):
                where = f"{rated.judge}, {group.name}" if len(groups) > 1 else rated.judge
                ratings.setdefault(where, []).append(Value(row.number, row.label, rated.rating))
    return [
        *(
            rows(f"TrueSkill, judge {judge}", "TrueSkill", values, base=25.0)
            for judge, values in ratings.items()
        ),
        *(
            rows(f"Support, judge {judge}", "share of the sentences", values)
            for judge, values in supports.items()
        ),
    ]
