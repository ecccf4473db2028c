"""The report of an evaluation as Markdown, including sentences that the HTML page also uses."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from stepcraft.evals.directory import answered
from stepcraft.evals.reports.tables import p_text, tables
from stepcraft.evals.samples import right_answer
from stepcraft.evals.summary import Comparison, MethodSummary, Summary
from stepcraft.evals.votes import grouped
from stepcraft.nodes.begin import KEYLESS as WRITTEN_BY_RULES

KEYLESS = (
    "The keyless model wrote these answers: the scores only show that the evaluation works, and "
    "say nothing about a method."
)
_KIN = {
    "model": "whose answers it wrote: a model may favour its own text; take another judge.",
    "family": (
        "whose model is of the same family: it may favour its own style; take a judge of another "
        "family."
    ),
}
"""Remarks about a judge that is the same model as the method's, or of the same family."""


def markdown(summary: Summary, title: str = "Evaluation") -> str:
    """Return the summary as Markdown: a paragraph for each pair of methods, and the tables."""
    parts = [f"# {title}", *(f"**{text}**" for text in warnings(summary)), *verdict(summary)]
    for table in tables(summary):
        lines = [table.columns, ["---"] * len(table.columns), *table.rows]
        rows = ["| " + " | ".join(map(_cell, line)) + " |" for line in lines]
        parts += [f"## {table.title}", "\n".join(rows), table.note]
    return "\n\n".join([*parts, *notes(summary)]) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def notes(summary: Summary) -> list[str]:
    """Return sentences about what was searched, the limits on runs, and the benchmarks."""
    words = {"source": "from", "licence": "licence:", "citation": "paper:"}
    searched = [
        f"{each.method} searched {_listed(searched)}"
        for each in summary.methods
        if (searched := each.about.get("searched"))
    ]
    limits = [
        f"{each.method} has {name} {most:,}"
        for each in summary.methods
        for name, most in each.about.get("limits", {}).items()
        if most
    ]
    parts = [f"{'; '.join(each)}." for each in (searched, limits) if each]
    for benchmark in summary.benchmarks:
        about = [f"{word} {text}" for key, word in words.items() if (text := benchmark.get(key))]
        if about:
            parts.append(f"{benchmark['name']}: {'; '.join(about)}.")
    return parts


def warnings(summary: Summary) -> list[str]:
    """Return what a reader must know before looking at the figures."""
    return [*_about_answers(summary), *_about_judgements(summary)]


def _about_answers(summary: Summary) -> Iterator[str]:
    if summary.is_keyless:
        yield KEYLESS
    kin = [each for each in summary.judges if each.kin]
    for (judge, how), group in grouped(kin, attrgetter("judge", "kin")).items():
        yield f"{judge} judges {_listed([each.method for each in group])}, {_KIN[how]}"
    for method in summary.methods:
        yield from _failures(method)
    for directory, methods in grouped(summary.methods, attrgetter("directory")).items():
        samples = (each["sample"] for method in methods for each in method.outcomes)
        right = {(each["id"], right_answer(each)) for each in samples}
        if changed := sum(count > 1 for count in Counter(id_ for id_, _ in right).values()):
            yield (
                f"{changed:,} questions in {directory} have other right answers for some methods "
                "than for others; run all methods again to have them scored alike."
            )
    for method in summary.methods:
        for warning, count in method.warnings.items():
            # KEYLESS already says this about all methods.
            if warning != WRITTEN_BY_RULES and 2 * count >= method.samples:
                yield f"{method.method}, {count:,} of {method.samples:,} samples: {warning}"


def _about_judgements(summary: Summary) -> Iterator[str]:
    graded = [each for each in summary.judges if each.criteria]
    for judge, group in grouped(graded, attrgetter("judge")).items():
        if len({given for each in group for given in each.criteria}) > 1:
            yield (
                f"{judge} graded some answers of {_listed([each.method for each in group])} by "
                "other criteria than others; have all judged with the same --rubric."
            )
    for each in summary.judges:
        if each.unread:
            yield (
                f"{each.unread:,} of {each.judgements:,} judgements of {each.judge} on "
                f"{each.method} failed or could not be read and do not count."
            )
        if each.cut:
            yield (
                f"{each.judge} was not shown all passages of {each.method}, which were too long "
                f"({each.cut:,} of {each.judgements:,} judgements); raise --passage-tokens."
            )
        bias = each.position_bias
        if bias and abs(bias.mean - 0.5) >= 0.2 and not bias.low <= 0.5 <= bias.high:
            yield (
                f"{max(bias.mean, 1 - bias.mean):.0%} of the votes of {each.judge} on "
                f"{each.method} are for the answer that is shown "
                f"{'first' if bias.mean > 0.5 else 'second'}: do not rely on them."
            )


def _failures(method: MethodSummary) -> Iterator[str]:
    if method.from_cache:
        yield (
            f"{method.from_cache:,} replies of {method.method} are from the cache: its costs and "
            "seconds are less than the method takes."
        )
    answers = sum(map(answered, method.outcomes))
    judged = Counter[str]()
    for each in method.outcomes:
        judged.update({name: answered(each) for name in each["scores"] if " by " in name})
    for count, name in {count: name for name, count in reversed(judged.items())}.items():
        if count < answers:
            yield (
                f"{name} rests on {count:,} of {answers:,} answers of {method.method}; have the "
                "others judged."
            )
    reason = f" Most often: {method.reason}" if method.reason else ""
    if method.unanswered:
        yield (
            f"{method.method} gave no answer to {method.unanswered:,} of {method.samples:,} "
            f"samples, which count as wrong; `--retry-errors` runs them again.{reason}"
        )
    if method.failed:
        yield (
            f"{method.method} failed on {method.failed:,} of {method.samples:,} samples, which "
            f"have no score.{reason}"
        )


def verdict(summary: Summary) -> list[str]:
    """Return a paragraph for each pair of methods: which is better, and at what cost."""
    if paragraphs := [*_compared(summary.comparisons)]:
        return paragraphs
    if any(method.scores for method in summary.methods):
        if len(summary.methods) == 1:
            return ["There is one method, so nothing is compared."]
        return ["The methods have no score of the same questions, so nothing is compared."]
    return [
        "There are no scores to compare; say in the samples what is right ('answer', 'contains', "
        "'steps', 'facts'), or have the answers judged."
    ]


def _compared(comparisons: Iterable[Comparison]) -> Iterator[str]:
    """Yield a paragraph for each pair, with the significant differences and the relative costs."""
    for (name, against), group in groupby(comparisons, attrgetter("method", "against")):
        pair = [*group]
        rest = [each.score for each in pair if not each.is_significant]
        sentences: list[str] = []
        for word, sign in (("better", 1), ("worse", -1)):
            shown = [
                f"{each.score} ({each.difference.mean:+.3f}, p {p_text(each.p)}, "
                f"{each.samples} samples)"
                for each in pair
                if each.is_significant and each.difference.mean * sign > 0
            ]
            if shown:
                sentences.append(f"{name} is {word} than {against} in {_listed(shown)}.")
        if rest:
            sentences.append(
                f"No difference in {_listed(rest)} could be shown between {name} and {against}."
            )
        factors = [
            f"{factor:.1f} times the {'price' if kind == 'USD' else kind}"
            for kind, factor in pair[0].factors.items()
        ]
        if factors:
            sentences.append(f"{name} takes {_listed(factors)} of {against}.")
        yield " ".join(sentences)


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
