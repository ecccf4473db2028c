"""The report of an evaluation as Markdown, and its sentences, which the page has, too."""

from collections.abc import Iterator, Sequence

from stepcraft.evals.reports.tables import difference_text, p_text, tables
from stepcraft.evals.stats import LEVEL
from stepcraft.evals.summary import Summary
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
            f"{method.method} failed on {method.failed:,} of {method.samples:,} samples; what "
            "failed has no score."
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
    sentences = [*filter(None, _compared(summary)), *map(_preferred, summary.preferences)]
    if sentences:
        return " ".join(sentences)
    if any(method.scores for method in summary.methods):
        return "There is one method, so nothing is compared."
    return (
        "No sample says what is right, so no score could be compared; add 'answer', 'contains' or "
        "'steps'."
    )


def _compared(summary: Summary) -> Iterator[str]:
    """Yield of each method what is shown of its scores, and what it costs."""
    for name in dict.fromkeys(each.method for each in summary.comparisons):
        comparisons = [each for each in summary.comparisons if each.method == name]
        against = comparisons[0].against
        rest = [each.score for each in comparisons if not each.is_shown]
        for word, sign in (("better", 1), ("worse", -1)):
            shown = [
                f"{each.score} ({difference_text(each.difference)}, {each.samples} samples)"
                for each in comparisons
                if each.is_shown and each.difference.mean * sign > 0
            ]
            if shown:
                yield f"{name} is {word} than {against} in {_listed(shown)}."
        if rest:
            yield f"No difference in {_listed(rest)} could be shown between {name} and {against}."
        factors = [
            f"{factor:.1f} times the {'price' if kind == 'USD' else kind}"
            for kind, factor in comparisons[0].factors.items()
        ]
        yield f"{name} takes {_listed(factors)} of {against}." if factors else ""


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
    bias = each.order_bias
    if bias and abs(bias.mean - 0.5) >= 0.2 and not bias.low <= 0.5 <= bias.high:
        text += (
            f" **{max(bias.mean, 1 - bias.mean):.0%} of its votes are for the answer that is shown "
            f"{'first' if bias.mean > 0.5 else 'second'}: do not rely on it.**"
        )
    if each.unreadable > each.votes:
        total = each.unreadable + each.votes
        text += (
            f" **{each.unreadable:,} of its {total:,} replies were no vote: take another judge.**"
        )
    return text
