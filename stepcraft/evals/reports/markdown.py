"""The report of an evaluation as Markdown, and its sentences, which the page has, too."""

import math
from collections.abc import Iterator, Sequence

from stepcraft.evals.published import published
from stepcraft.evals.stats import Interval
from stepcraft.evals.summary import LEVEL, Comparison, Summary
from stepcraft.evals.votes import Agreement, Alike, Preference

KEYLESS = "The keyless model wrote these answers: the scores try the evaluation and say nothing of a method."


def markdown(summary: Summary, title: str = "Evaluation") -> str:
    """The summary as Markdown: a paragraph for whoever decides, and the tables behind it."""
    return "\n".join(_lines(summary, title)) + "\n"


def _lines(summary: Summary, title: str) -> Iterator[str]:
    yield from (f"# {title}", "")
    for warning in warnings(summary):
        yield from (f"**{warning}**", "")
    yield from (verdict(summary), "")
    names = score_names(summary)
    priced = ["USD"] if any(method.usd is not None for method in summary.methods) else []
    columns = ["method", *names, "calls", "tokens", "seconds", *priced, "samples", "failed"]
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for method in summary.methods:
        scores = [
            interval_text(method.scores[name]) if name in method.scores else "" for name in names
        ]
        costs = [f"{method.calls:.1f}", f"{method.tokens:,.0f}", f"{method.seconds:.1f}"]
        costs += ["" if method.usd is None else f"{method.usd:.4f}" for _ in priced]
        cells = [method.name, *scores, *costs, str(method.samples), str(method.failed)]
        yield "| " + " | ".join(map(_cell, cells)) + " |"
    if figures := published(summary.benchmark.get("name", "")):
        yield from (
            "",
            "What the papers report:",
            "",
            "| paper | method | model | score | value |",
            "|---" * 5 + "|",
        )
        for figure in figures:
            cells = [figure.paper, figure.method, figure.model, figure.score, f"{figure.value:.3f}"]
            yield "| " + " | ".join(cells) + " |"
    if summary.comparisons:
        yield from (
            "",
            f"Against {summary.comparisons[0].against}, on the same samples ({LEVEL:.0%} intervals):",
            "",
        )
        yield "| method | score | difference | p | McNemar | wins / losses / ties | samples | tokens |"
        yield "|---" * 8 + "|"
        for one in summary.comparisons:
            cells = [
                one.method,
                one.score,
                difference_text(one),
                p_text(one.p),
                "" if one.mcnemar_p is None else p_text(one.mcnemar_p),
                " / ".join(map(str, one.record)),
                str(one.samples),
                f"× {one.factor:.1f}",
            ]
            yield "| " + " | ".join(map(_cell, cells)) + " |"
    if summary.mauves:
        yield from ("", mauve_line(summary))
    yield from _judged(summary)
    if origin := origin_line(summary):
        yield from ("", origin)


def origin_line(summary: Summary) -> str:
    """The source, licence and paper of the benchmark; "" for questions of one's own."""
    told = {"source": "from", "licence": "licence:", "citation": "paper:"}
    known = [
        f"{words} {summary.benchmark[key]}"
        for key, words in told.items()
        if summary.benchmark.get(key)
    ]
    return f"{summary.benchmark['name']}: {'; '.join(known)}." if known else ""


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def warnings(summary: Summary) -> list[str]:
    """What a reader must know before the figures: answers of the keyless model, judges of their own answers, failures."""
    found: list[str] = []
    if summary.is_keyless:
        found.append(KEYLESS)
    found += [
        f"{judge} wrote answers of {method} and judges them: a model may favour its own text; take another judge."
        for judge, method in summary.own_judges
    ]
    found += [
        f"{method.name} failed on {method.failed:,} of {method.failed + method.samples:,} samples; what failed has no score."
        for method in summary.methods
        if method.failed
    ]
    found += [
        f"{one.unreadable:,} of {one.votes + one.unreadable:,} replies of {one.judge} on {one.method} and {one.against} "
        "could not be read and do not count."
        for one in summary.preferences
        if one.unreadable
    ]
    return [*found, *summary.missing]


def score_names(summary: Summary) -> list[str]:
    """The names of the scores, in the order in which the methods have them."""
    return list(dict.fromkeys(score for method in summary.methods for score in method.scores))


def _judged(summary: Summary) -> Iterator[str]:
    if summary.preferences:
        yield from ("", "Votes of judges, by majority on each sample:", "")
        yield "| judge | method | against | wins | losses | ties | undecided | p | for the first | for the longer | votes | unreadable | failed |"
        yield "|---" * 13 + "|"
        for one in summary.preferences:
            counts = [one.wins, one.losses, one.ties, one.undecided]
            biases = [
                _share(one.order_bias),
                "" if one.length_bias is None else f"{one.length_bias:+.2f}",
            ]
            cells = [one.judge, one.method, one.against, *map(str, counts), p_text(one.p), *biases]
            yield (
                "| "
                + " | ".join([*cells, *map(str, (one.votes, one.unreadable, one.failed))])
                + " |"
            )
        yield from (
            "",
            "*For the first* is the share of the votes for the answer that was shown first (without bias 0.50), *for the "
            "longer* the correlation of the votes with the difference in length (without bias about 0).",
        )
    if summary.judge_pairs:
        yield from ("", "Agreement of judges, by majority on each sample and in single votes:", "")
        yield "| judges | method | against | samples | same | kappa | alpha | votes | same | kappa | alpha |"
        yield "|---" * 11 + "|"
        for pair in summary.judge_pairs:
            cells = [" and ".join(pair.judges), pair.method, pair.against]
            yield (
                "| "
                + " | ".join([*cells, *alike_cells(pair.majorities), *alike_cells(pair.votes)])
                + " |"
            )
        yield from (
            "",
            "Cohen's *kappa* and Krippendorff's *alpha* are 1 where judges always agree and 0 where they do by chance.",
        )
    if summary.supports:
        yield from ("", f"Sentences that their passages bear out ({LEVEL:.0%} intervals):", "")
        yield "| judge | method | support | answers | shortened | unreadable | failed |"
        yield "|---" * 7 + "|"
        for read in summary.supports:
            share = interval_text(read.share) if read.share else ""
            counts = [read.answers, read.shortened, read.unreadable, read.failed]
            yield "| " + " | ".join([read.judge, read.method, share, *map(str, counts)]) + " |"
    if summary.ratings:
        yield from (
            "",
            f"TrueSkill from the majority votes ({LEVEL:.0%} intervals; a rating starts at 25):",
            "",
        )
        yield from ("| judge | method | TrueSkill |", "|---" * 3 + "|")
        for rated in summary.ratings:
            yield f"| {rated.judge} | {rated.method} | {interval_text(rated.rating, 1)} |"
    for agreement in summary.agreements:
        yield from ("", agreement_line(agreement))


def agreement_line(one: Agreement) -> str:
    """A judge's agreement with the sentences that were marked by hand, in a sentence."""
    left_out = f"; {one.unreadable} sentences had no readable reply" if one.unreadable else ""
    if one.accuracy is None:
        return f"{one.judge} gave no readable reply on the sentences that were marked by hand{left_out}."
    kappa = "none" if one.kappa is None else f"{one.kappa:.2f}"
    return (
        f"{one.judge} agrees with {one.accuracy:.0%} of {one.sentences} sentences that were marked by hand "
        f"(Cohen's kappa {kappa}){left_out}."
    )


def mauve_line(summary: Summary) -> str:
    """The MAUVE of the methods, in a sentence."""
    told = ", ".join(
        f"{one.method} {one.score:.3f} ({one.samples:,} samples)" for one in summary.mauves
    )
    return f"MAUVE with the features {summary.mauves[0].features}: {told}."


def alike_cells(one: Alike) -> list[str]:
    """How far two judges agree: on how many units, the share, kappa and alpha."""
    return [
        str(one.units),
        f"{one.share:.0%}" if one.units else "",
        *("" if value is None else f"{value:.2f}" for value in (one.kappa, one.alpha)),
    ]


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.2f}"


def verdict(summary: Summary) -> str:
    """The result in one paragraph: which method beats the cheapest, by how much, and at what cost."""
    told = [*_compared(summary), *map(_preferred, summary.preferences)]
    if told:
        return " ".join(told)
    scored = any(method.scores for method in summary.methods)
    return (
        "There is one method, so nothing is compared."
        if scored
        else "No sample says what is right, so no score could be compared; add 'answer', 'contains' or 'steps'."
    )


def _preferred(one: Preference) -> str:
    counts = f"{one.wins} wins, {one.losses} losses, {one.ties} ties, p {p_text(one.p)}"
    told = f"No preference of the judge {one.judge} between {one.method} and {one.against} could be shown ({counts})."
    if one.p < 1 - LEVEL:
        better, worse = (
            (one.method, one.against) if one.wins > one.losses else (one.against, one.method)
        )
        told = f"The judge {one.judge} prefers {better} to {worse} ({one.method}: {counts})."
    if one.order_bias is not None and one.is_order_biased:
        place, share = (
            ("first", one.order_bias) if one.order_bias > 0.5 else ("second", 1 - one.order_bias)
        )
        told += f" **{share:.0%} of its votes are for the answer that is shown {place}: do not rely on it.**"
    if one.unreadable > one.votes:
        total = one.unreadable + one.votes
        told += (
            f" **{one.unreadable:,} of its {total:,} replies were no vote: take another judge.**"
        )
    return told


def _compared(summary: Summary) -> Iterator[str]:
    """Of each method a sentence on its first score, one on the others, and one on its costs."""
    for name in dict.fromkeys(one.method for one in summary.comparisons):
        own = [one for one in summary.comparisons if one.method == name]
        yield _sentence(own[0])
        if len(own) > 1:
            yield _others(own[1:])
        factors = [
            f"{factor:.1f} times the {'price' if kind == 'usd' else kind}"
            for kind, factor in own[0].factors.items()
        ]
        if factors:
            yield f"{name} takes {_listed(factors)} of {own[0].against}."


def _others(comparisons: Sequence[Comparison]) -> str:
    clauses = [
        f"{word} in {_listed([f'{one.score} ({one.difference.mean:+.3f})' for one in found])}"
        for word, sign in (("better", 1), ("worse", -1))
        if (
            found := [
                one for one in comparisons if _is_shown(one) and one.difference.mean * sign > 0
            ]
        )
    ]
    rest = [one.score for one in comparisons if not _is_shown(one)]
    if not clauses:
        return f"No difference could be shown in {_listed(rest)}."
    more = f"; no difference could be shown in {_listed(rest)}" if rest else ""
    return f"{comparisons[0].method} is {' and '.join(clauses)}{more}."


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _is_shown(one: Comparison) -> bool:
    return one.p < 1 - LEVEL and bool(one.difference.mean)


def _sentence(one: Comparison) -> str:
    if _is_shown(one):
        better = "better" if one.difference.mean > 0 else "worse"
        return (
            f"{one.method} is {better} than {one.against} by {abs(one.difference.mean):.3f} in {one.score} "
            f"({LEVEL:.0%} interval {one.difference.low:+.3f} to {one.difference.high:+.3f}, {one.samples} samples)."
        )
    more = (
        f"; about {one.needed:,} samples would show the difference seen ({one.difference.mean:+.3f})"
        if one.needed and one.needed > one.samples
        else ""
    )
    return f"No difference in {one.score} could be shown between {one.method} and {one.against} ({one.samples} samples){more}."


def interval_text(score: Interval, digits: int = 3) -> str:
    """A mean with its interval; of a single sample the mean alone."""
    if math.isinf(score.low):
        return f"{score.mean:.{digits}f}"
    return f"{score.mean:.{digits}f} ({score.low:.{digits}f}–{score.high:.{digits}f})"


def difference_text(one: Comparison) -> str:
    """A difference with its sign and interval; of a single sample the difference alone."""
    mean, low, high = one.difference.mean, one.difference.low, one.difference.high
    return f"{mean:+.3f}" if math.isinf(low) else f"{mean:+.3f} ({low:+.3f} to {high:+.3f})"


def p_text(p: float) -> str:
    """A p value with three digits."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"
