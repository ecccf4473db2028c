"""What an evaluation found: scores and costs of each method, and whether it beats the cheapest one, in scores and before judges."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.directory import Outcome, read_configuration, read_outcomes
from stepcraft.evals.mauve import Mauve, mauve_scores
from stepcraft.evals.progress import tokens_of
from stepcraft.evals.stats import Difference, Interval, holm, mean_interval, paired_bootstrap, samples_needed
from stepcraft.evals.votes import (
    Agreement,
    Alike,
    JudgePair,
    Preference,
    Support,
    agreements,
    judge_pairs,
    preferences,
    read_judgements,
    supports,
)

_LEVEL = 0.95
_SEED = 0


@dataclass(frozen=True)
class MethodSummary:
    """The scores and costs of a method."""

    name: str
    samples: int
    failed: int
    scores: Mapping[str, Interval]
    """The mean of each score, with its interval."""
    calls: float
    """Model calls a sample."""
    tokens: float
    """Tokens read and written a sample."""
    seconds: float
    usd: float | None = None
    """What a sample cost; None where that of one is unknown."""


@dataclass(frozen=True)
class Comparison:
    """A score of a method against the same score of the cheapest, on the samples that both have."""

    method: str
    cheapest: str
    score: str
    samples: int
    difference: Difference
    p: float
    """Adjusted for the number of comparisons (Holm)."""
    needed: int | None
    """How many samples would show the difference seen; None where that cannot be said."""
    factor: float
    """Tokens of the method over those of the cheapest."""


@dataclass(frozen=True)
class Summary:
    """The result of an evaluation."""

    methods: Sequence[MethodSummary]
    comparisons: Sequence[Comparison]
    cheapest: str | None
    """The method that the others are compared with."""
    is_keyless: bool
    """Whether an output was written without a language model, so that the scores say nothing of a method."""
    preferences: Sequence[Preference] = ()
    """What the votes of judges come to."""
    supports: Sequence[Support] = ()
    """How much of the answers their passages bear out, as judges see it."""
    agreements: Sequence[Agreement] = ()
    """How far the judges agree with sentences that were marked by hand."""
    mauves: Sequence[Mauve] = ()
    """The MAUVE of each method, where it was asked for."""
    judge_pairs: Sequence[JudgePair] = ()
    """How far every two judges agree with each other."""
    own_judges: Sequence[tuple[str, str]] = ()
    """The judges that also wrote answers, each with such a method."""


def summarise(directory: Path, mauve: str | None = None) -> Summary:
    """Read an evaluation's directory and compare its methods.

    Args:
        directory: The directory.
        mauve: What makes the features of MAUVE: "gpt2-large" or the name of embeddings; None for no MAUVE.

    Raises:
        BadInput: It is no directory of an evaluation, nothing in it is finished, or MAUVE cannot be had.
    """
    configured = read_configuration(directory)["methods"]
    names = list(configured)
    last: dict[tuple[str, str], Outcome] = {
        (one["method"], one["id"]): {**one, "output": {}, "sample": {"id": one["id"], "question": ""}}
        for one in read_outcomes(directory)
    }
    outcomes = {name: [one for (method, _), one in last.items() if method == name] for name in names}
    outcomes = {name: known for name, known in outcomes.items() if known}
    if not outcomes:
        raise BadInput(f"nothing in {directory} is finished yet; start the evaluation")
    methods = [_method(name, known) for name, known in outcomes.items()]
    cheapest = cheapest_of(last.values())
    judgements = read_judgements(directory)
    return Summary(
        methods=methods,
        comparisons=_comparisons(methods, outcomes, cheapest),
        cheapest=cheapest,
        is_keyless=any("no language model" in text for one in last.values() for text in one["warnings"]),
        preferences=preferences(judgements),
        supports=supports(judgements),
        agreements=agreements(judgements),
        mauves=mauve_scores(directory, mauve) if mauve else (),
        judge_pairs=judge_pairs(judgements),
        own_judges=[
            (judge, name)
            for judge in dict.fromkeys(one["judge"] for one in judgements)
            for name, method in configured.items()
            if any(_is_same(judge, writer) for writer in _writers(method))
        ],
    )


def cheapest_of(outcomes: Iterable[Outcome]) -> str | None:
    """The method with the fewest tokens a sample; None where fewer than two methods have an output."""
    tokens: dict[str, list[int]] = {}
    for one in outcomes:
        if not one["error"]:
            tokens.setdefault(one["method"], []).append(tokens_of(one))
    return min(tokens, key=lambda name: (fmean(tokens[name]), name)) if len(tokens) > 1 else None


def _writers(method: Mapping[str, Any]) -> list[str]:
    return [method["model"], *dict(method["settings"].get("node_models") or {}).values()]


def _is_same(one: str, other: str) -> bool:
    """Whether two names are of one model; a provider may stand before either."""
    return one == other or one.endswith(f":{other}") or other.endswith(f":{one}")


def _method(name: str, outcomes: Sequence[Outcome]) -> MethodSummary:
    done = [one for one in outcomes if not one["error"]]
    names = dict.fromkeys(score for one in done for score in one["scores"])
    scores = {
        score: mean_interval([one["scores"][score] for one in done if score in one["scores"]], seed=_SEED)
        for score in names
    }
    return MethodSummary(
        name=name,
        samples=len(done),
        failed=len(outcomes) - len(done),
        scores=scores,
        calls=fmean([one["usage"].get("calls", 0) for one in done] or [0]),
        tokens=fmean([tokens_of(one) for one in done] or [0]),
        seconds=fmean([one["seconds"] for one in done] or [0]),
        usd=_mean_cost(done),
    )


def _mean_cost(outcomes: Sequence[Outcome]) -> float | None:
    known = [usd for one in outcomes if (usd := one.get("usd")) is not None]
    return fmean(known) if known and len(known) == len(outcomes) else None


def _comparisons(
    methods: Sequence[MethodSummary], outcomes: Mapping[str, Sequence[Outcome]], name: str | None
) -> list[Comparison]:
    """The scores of each method against those of the cheapest, which has this name."""
    cheapest = next((method for method in methods if method.name == name), None)
    if cheapest is None:
        return []
    others = [method for method in methods if method.samples and method is not cheapest]
    found = [
        (method, score, *_paired(outcomes[method.name], outcomes[cheapest.name], score))
        for method in others
        for score in method.scores
        if score in cheapest.scores
    ]
    found = [one for one in found if one[2]]
    differences = [paired_bootstrap(ours, theirs, seed=_SEED) for _, _, ours, theirs in found]
    adjusted = holm([difference.p for difference in differences])
    return [
        Comparison(
            method=method.name,
            cheapest=cheapest.name,
            score=score,
            samples=len(ours),
            difference=difference,
            p=p,
            needed=samples_needed([a - b for a, b in zip(ours, theirs, strict=True)]),
            factor=method.tokens / cheapest.tokens if cheapest.tokens else float("inf"),
        )
        for (method, score, ours, theirs), difference, p in zip(found, differences, adjusted, strict=True)
    ]


def _paired(
    ours: Sequence[Outcome], theirs: Sequence[Outcome], score: str
) -> tuple[list[float], list[float]]:
    """The scores on the samples that both methods have, in the same order."""
    known = {one["id"]: one["scores"][score] for one in theirs if score in one["scores"]}
    pairs = [
        (one["scores"][score], known[one["id"]])
        for one in ours
        if score in one["scores"] and one["id"] in known
    ]
    return [a for a, _ in pairs], [b for _, b in pairs]


def markdown(summary: Summary) -> str:
    """The summary as Markdown: a paragraph for whoever decides, and the tables behind it."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: Summary) -> Iterator[str]:
    yield from ("# Evaluation", "")
    if summary.is_keyless:
        yield from (
            "**The keyless model wrote these answers: the scores try the evaluation and say nothing of a method.**",
            "",
        )
    yield from (verdict(summary), "")
    names = list(dict.fromkeys(score for method in summary.methods for score in method.scores))
    priced = ["USD"] if any(method.usd is not None for method in summary.methods) else []
    yield (
        "| method | "
        + " | ".join([*names, "calls", "tokens", "seconds", *priced, "samples", "failed"])
        + " |"
    )
    yield "|---" * (len(names) + len(priced) + 6) + "|"
    for method in summary.methods:
        scores = [_interval(method.scores[name]) if name in method.scores else "" for name in names]
        costs = [f"{method.calls:.1f}", f"{method.tokens:,.0f}", f"{method.seconds:.1f}"]
        costs += ["" if method.usd is None else f"{method.usd:.4f}" for _ in priced]
        cells = [method.name, *scores, *costs, str(method.samples), str(method.failed)]
        yield "| " + " | ".join(cells) + " |"
    if summary.comparisons:
        yield from (
            "",
            f"Against {summary.comparisons[0].cheapest}, on the same samples ({_LEVEL:.0%} intervals):",
            "",
        )
        yield "| method | score | difference | p | samples | tokens |"
        yield "|---|---|---|---|---|---|"
        for one in summary.comparisons:
            told = f"{one.difference.mean:+.3f} ({one.difference.low:+.3f} to {one.difference.high:+.3f})"
            yield f"| {one.method} | {one.score} | {told} | {one.p:.3f} | {one.samples} | × {one.factor:.1f} |"
    if summary.mauves:
        told = ", ".join(f"{one.method} {one.score:.3f} ({one.samples:,} samples)" for one in summary.mauves)
        yield from ("", f"MAUVE with the features {summary.mauves[0].features}: {told}.")
    yield from _judged(summary)


def _judged(summary: Summary) -> Iterator[str]:
    for judge, method in summary.own_judges:
        yield from (
            "",
            f"**{judge} wrote answers of {method} and judges them: a model may favour its own text; take another judge.**",
        )
    if summary.preferences:
        yield from ("", "Votes of judges, by majority on each sample:", "")
        yield "| judge | method | against | wins | losses | ties | undecided | p | for the first | for the longer | votes | unreadable | failed |"
        yield "|---" * 13 + "|"
        for one in summary.preferences:
            counts = [one.wins, one.losses, one.ties, one.undecided]
            biases = [_share(one.order_bias), "" if one.length_bias is None else f"{one.length_bias:+.2f}"]
            cells = [one.judge, one.method, one.against, *map(str, counts), f"{one.p:.3f}", *biases]
            yield "| " + " | ".join([*cells, *map(str, (one.votes, one.unreadable, one.failed))]) + " |"
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
            yield "| " + " | ".join([*cells, *_alike(pair.majorities), *_alike(pair.votes)]) + " |"
        yield from (
            "",
            "Cohen's *kappa* and Krippendorff's *alpha* are 1 where judges always agree and 0 where they do by chance.",
        )
    if summary.supports:
        yield from ("", f"Sentences that their passages bear out ({_LEVEL:.0%} intervals):", "")
        yield "| judge | method | support | answers | shortened | unreadable | failed |"
        yield "|---" * 7 + "|"
        for read in summary.supports:
            share = _interval(read.share) if read.share else ""
            counts = [read.answers, read.shortened, read.unreadable, read.failed]
            yield "| " + " | ".join([read.judge, read.method, share, *map(str, counts)]) + " |"
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


def _alike(one: Alike) -> list[str]:
    return [
        str(one.units),
        f"{one.share:.0%}" if one.units else "",
        *("" if value is None else f"{value:.2f}" for value in (one.kappa, one.alpha)),
    ]


def _share(share: float | None) -> str:
    return "" if share is None else f"{share:.2f}"


def verdict(summary: Summary) -> str:
    """The result in one paragraph: which method beats the cheapest, by how much, and at what cost."""
    told = [*map(_sentence, summary.comparisons), *map(_preferred, summary.preferences)]
    if told:
        return " ".join(told)
    scored = any(method.scores for method in summary.methods)
    return (
        "There is one method, so nothing is compared."
        if scored
        else "No sample says what is right, so no score could be compared; add 'answer', 'contains' or 'steps'."
    )


def _preferred(one: Preference) -> str:
    counts = f"{one.wins} wins, {one.losses} losses, {one.ties} ties, p {one.p:.3f}"
    told = f"No preference of the judge {one.judge} between {one.method} and {one.against} could be shown ({counts})."
    if one.p < 1 - _LEVEL:
        better, worse = (one.method, one.against) if one.wins > one.losses else (one.against, one.method)
        told = f"The judge {one.judge} prefers {better} to {worse} ({one.method}: {counts})."
    if one.order_bias is not None and one.is_order_biased:
        place, share = ("first", one.order_bias) if one.order_bias > 0.5 else ("second", 1 - one.order_bias)
        told += f" **{share:.0%} of its votes are for the answer that is shown {place}: do not rely on it.**"
    if one.unreadable > one.votes:
        total = one.unreadable + one.votes
        told += f" **{one.unreadable:,} of its {total:,} replies were no vote: take another judge.**"
    return told


def _sentence(one: Comparison) -> str:
    cost = f"at {one.factor:.1f} times its tokens"
    if one.p < 1 - _LEVEL and one.difference.mean:
        better = "better" if one.difference.mean > 0 else "worse"
        return (
            f"{one.method} is {better} than {one.cheapest} by {abs(one.difference.mean):.3f} in {one.score} "
            f"({_LEVEL:.0%} interval {one.difference.low:+.3f} to {one.difference.high:+.3f}, {one.samples} samples), {cost}."
        )
    more = (
        f"; about {one.needed:,} samples would show the difference seen ({one.difference.mean:+.3f})"
        if one.needed and one.needed > one.samples
        else ""
    )
    return f"No difference in {one.score} could be shown between {one.method} and {one.cheapest} ({one.samples} samples, {cost}){more}."


def _interval(score: Interval) -> str:
    return f"{score.mean:.3f} ({score.low:.3f}–{score.high:.3f})"
