"""The report of an evaluation as Markdown, and its sentences, which the page has, too."""

import math
from collections.abc import Iterator, Sequence

from stepcraft.evals.reports.tables import difference_text, p_text, tables
from stepcraft.evals.stats import LEVEL
from stepcraft.evals.summary import Comparison, Summary
from stepcraft.evals.votes import Preference

KEYLESS = (
    "The keyless model wrote these answers: the scores try the evaluation and say nothing of a "
    "method."
)


def markdown(summary: Summary, title: str = "Evaluation") -> str:
    """Return the summary as Markdown: a paragraph for whoever decides, and the tables behind it."""
    parts = [f"# {title}", *(f"**{text}**" for text in warnings(summary)), verdict(summary)]
    for table in tables({title: summary}):
        lines = [table.columns, ["---"] * len(table.columns), *table.rows]
        rows = ["| " + " | ".join(map(_cell, line)) + " |" for line in lines]
        parts += [f"## {table.title}", "\n".join(rows), table.note]
    return "\n\n".join([*parts, *filter(None, [origin(summary)])]) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def origin(summary: Summary) -> str:
    """Return the source, licence and paper of the benchmark; "" for questions of one's own."""
    words = {"source": "from", "licence": "licence:", "citation": "paper:"}
    about = [
        f"{word} {text}" for key, word in words.items() if (text := summary.benchmark.get(key))
    ]
    return f"{summary.benchmark['name']}: {'; '.join(about)}." if about else ""


def warnings(summary: Summary) -> list[str]:
    """Return what a reader must know before the figures."""
    return [
        *([KEYLESS] if summary.is_keyless else []),
        *(
            f"{judge} wrote answers of {method} and judges them: a model may favour its own text; "
            "take another judge."
            for judge, method in summary.self_judged
        ),
        *(
            f"{method.name} failed on {method.failed:,} of {method.samples:,} samples; what failed "
            "has no score."
            for method in summary.methods
            if method.failed
        ),
        *(
            f"{each.unreadable:,} of {each.votes + each.unreadable:,} replies of {each.judge} on "
            f"{each.method} and {each.against} could not be read and do not count."
            for each in summary.preferences
            if each.unreadable
        ),
    ]


def verdict(summary: Summary) -> str:
    """Return in one paragraph which methods beat the cheapest, by how much, and at what cost."""
    sentences = [*_compared(summary), *map(_preferred, summary.preferences)]
    if sentences:
        return " ".join(sentences)
    if any(method.scores for method in summary.methods):
        return "There is one method, so nothing is compared."
    return (
        "No sample says what is right, so no score could be compared; add 'answer', 'contains' or "
        "'steps'."
    )


def _compared(summary: Summary) -> Iterator[str]:
    """Yield of each method a sentence on its first score, one on the others, one on its costs."""
    for name in dict.fromkeys(each.method for each in summary.comparisons):
        first, *others = [each for each in summary.comparisons if each.method == name]
        yield _sentence(first)
        if others:
            yield _others(others)
        factors = [
            f"{factor:.1f} times the {'price' if kind == 'usd' else kind}"
            for kind, factor in first.factors.items()
        ]
        if factors:
            yield f"{name} takes {_listed(factors)} of {first.against}."


def _sentence(each: Comparison) -> str:
    if each.is_shown:
        ends = ""
        if math.isfinite(each.difference.low):
            low, high = each.difference.low, each.difference.high
            ends = f"{LEVEL:.0%} interval {low:+.3f} to {high:+.3f}, "
        return (
            f"{each.method} is {_better(each)} than {each.against} by "
            f"{abs(each.difference.mean):.3f} in {each.score} ({ends}{each.samples} samples)."
        )
    return (
        f"No difference in {each.score} could be shown between {each.method} and {each.against} "
        f"({difference_text(each.difference)}, {each.samples} samples)."
    )


def _others(comparisons: Sequence[Comparison]) -> str:
    clauses: dict[str, list[str]] = {}
    for each in comparisons:
        if each.is_shown:
            clauses.setdefault(_better(each), []).append(
                f"{each.score} ({each.difference.mean:+.3f})"
            )
    rest = [each.score for each in comparisons if not each.is_shown]
    sentences = []
    if clauses:
        shown = [f"{word} in {_listed(scores)}" for word, scores in clauses.items()]
        sentences.append(f"{comparisons[0].method} is {' and '.join(shown)}.")
    if rest:
        sentences.append(f"No difference could be shown in {_listed(rest)}.")
    return " ".join(sentences)


def _better(each: Comparison) -> str:
    return "better" if each.difference.mean > 0 else "worse"


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _preferred(each: Preference) -> str:
    counts = f"{each.wins} wins, {each.losses} losses, {each.ties} ties, p {p_text(each.p)}"
    if each.p < 1 - LEVEL:
        better, worse = each.method, each.against
        if each.losses > each.wins:
            better, worse = worse, better
        text = f"The judge {each.judge} prefers {better} to {worse} ({each.method}: {counts})."
    else:
        text = (
            f"No preference of the judge {each.judge} between {each.method} and {each.against} "
            f"could be shown ({counts})."
        )
    if each.order_bias is not None and each.is_order_biased:
        place = "first" if each.order_bias > 0.5 else "second"
        text += (
            f" **{max(each.order_bias, 1 - each.order_bias):.0%} of its votes are for the answer "
            f"that is shown {place}: do not rely on it.**"
        )
    if each.unreadable > each.votes:
        total = each.unreadable + each.votes
        text += (
            f" **{each.unreadable:,} of its {total:,} replies were no vote: take another judge.**"
        )
    return text
