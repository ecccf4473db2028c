"""The results of an evaluation: each method's scores and costs, and which methods are better."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, permutations
from operator import attrgetter, itemgetter
from pathlib import Path
from statistics import fmean, median
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.calls import total_tokens
from stepcraft.evals.directory import Outcome, answered, is_unanswered, read_configuration
from stepcraft.evals.prices import Prices, bare_name
from stepcraft.evals.samples import Sample, asked, right_answer
from stepcraft.evals.scores import pass_at_k
from stepcraft.evals.scoring import REFERENCE, gold_scores
from stepcraft.evals.stats import (
    LEVEL,
    Difference,
    Interval,
    holm,
    mean_interval,
    paired,
    share,
    sign_test,
)
from stepcraft.evals.votes import (
    Judgement,
    common_criteria,
    grouped,
    is_shown_first,
    judged_outcomes,
    read_judgements,
    vote_scores,
)
from stepcraft.models.resolve import EXTRACTIVE

_PASSED = "pass@1"
"""The prefix of the names of scores that indicate whether a program is right."""
_SIZES = (5, 10, 100)
"""The values of k for which pass@k is reported if every task has that many answers."""
_TOKENS = {
    "tokens in": "input_tokens",
    "cached": "cached_input_tokens",
    "tokens out": "output_tokens",
}
_VARIANTS = {
    "exact match": "answer",
    "F1": "answer",
    "occurs": "answer",
    "gold sentences": "gold passages",
    "facts not contradicted": "facts covered",
    "citation recall": "support",
}
"""Scores that measure the same thing as another score, with the name that they share."""


@dataclass(frozen=True)
class MethodSummary:
    """The scores and costs of a method."""

    method: str
    """The method's name, prefixed with its directory's name if there are several directories."""
    directory: str
    name: str
    outcomes: Sequence[Outcome]
    """The outcomes of its samples."""
    judgements: Sequence[Judgement]
    """The judgements of its answers, including votes between them and those of other methods."""
    model: str
    about: Mapping[str, Any]
    """Its entry in the configuration, with what it `searched` and its `limits`."""
    scores: Mapping[str, Interval]
    """The mean of each score over the tasks; a run without an answer counts as 0."""
    costs: Mapping[str, float]
    """The mean costs per sample, including failed samples (for seconds, the median); unknown
    costs are omitted.

    The costs are `calls`, `tokens in`, `cached` (input tokens read from the provider's cache),
    `tokens out`, `seconds` and `USD`.
    """
    samples: int
    """The number of finished samples, including failed ones."""
    unanswered: int
    """The number of runs that ended without an answer, which count as wrong."""
    failed: int
    """The number of other failed runs, which have no score."""
    reason: str
    """The most common reason for unanswered and failed runs."""
    from_cache: int
    """The number of replies from LangChain's cache, which cost nothing."""
    warnings: Mapping[str, int]
    """The warnings from the runs, each with the number of samples on which it occurred."""


@dataclass(frozen=True)
class Comparison:
    """A score of one method compared with that of another, on the tasks that both have."""

    method: str
    against: str
    score: str
    samples: int
    difference: Difference
    """The difference, with an interval that is not adjusted for the other comparisons."""
    wins: int
    losses: int
    p: float
    """The p-value of the paired t-test, or of the exact sign test (McNemar's) for scores of 0 or 1.

    It is adjusted for all pairs of methods and all scores (Holm). Scores that measure the same
    thing, such as exact match and F1, count as one.
    """
    factors: Mapping[str, float]
    """The ratio of the methods' costs, on the samples that both have answered."""
    is_change: bool
    """Whether the other method is from an earlier directory."""

    @property
    def is_significant(self) -> bool:
        """Whether the difference is statistically significant."""
        return self.p < 1 - LEVEL


@dataclass(frozen=True)
class Judged:
    """Statistics about one judge's votes and readings of one method's answers."""

    judge: str
    method: str
    judgements: int
    unread: int
    """The number of judgements that failed or could not be read, and do not count."""
    cut: int
    """The number of answers for which passages were left out because they were too long."""
    position_bias: Interval | None
    """The share of votes for the answer shown first, ignoring ties; 0.5 means no bias."""
    criteria: frozenset[frozenset[str]]
    """The sets of criteria by which answers were graded, apart from those of their samples."""
    kin: str
    """"model" if the judge also wrote the answers, "family" if a model from its family did, or else
    "".
    """


@dataclass(frozen=True)
class Summary:
    """The result of one or several evaluations."""

    directories: Mapping[str, Path]
    """The directories by name."""
    methods: list[MethodSummary]
    pairs: list[Comparison]
    """Comparisons of each method with every other method in its directory, and with the method of
    the same name in earlier directories. If no name occurs in two directories, each method is
    compared with all those in earlier ones.
    """
    baselines: list[str]
    """The method in each directory that the others are compared with."""
    judges: list[Judged] = field(default_factory=list[Judged])
    benchmarks: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])

    @property
    def is_keyless(self) -> bool:
        """Whether the keyless model wrote answers, which say nothing about a method."""
        return any(method.model == EXTRACTIVE for method in self.methods)

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons with earlier directories, and with the baseline of the same directory."""
        shown = [each for each in self.pairs if each.is_change or each.against in self.baselines]
        return sorted(shown, key=lambda each: not each.is_change)


def summarise(
    directories: Path | Mapping[str, Path],
    baseline: str | None = None,
    prices: Prices | None = None,
) -> Summary:
    """Read an evaluation's directory, or several by name, and compare the methods.

    Args:
        directories: The directory, or several directories by name.
        baseline: The method to compare the others with, or None for the first.
        prices: The prices of tokens. None means those in STEPCRAFT_PRICES or, if there are none,
            the costs recorded when the samples were run.

    Raises:
        BadInput: A directory contains no evaluation, nothing in it is finished, or the baseline is
            not one of its methods.
    """
    named = {str(directories): directories} if isinstance(directories, Path) else directories
    prices = prices or Prices.of(None)
    summary = Summary(named, [], [], [])
    is_found = baseline is None
    for home, directory in named.items():
        about = read_configuration(directory)
        done = _outcomes(directory, about["methods"], prices)
        if not done:
            raise BadInput(f"nothing in {directory} is finished yet; start the evaluation")
        prefix = f"{home}: " if len(named) > 1 else ""
        judgements = grouped(read_judgements(directory), itemgetter("method"))
        here = [
            _method(
                about["methods"][name],
                outcomes,
                judgements.get(name, []),
                method=prefix + name,
                directory=home,
                name=name,
            )
            for name, outcomes in done.items()
        ]
        wanted = baseline.removeprefix(prefix) if baseline else None
        chosen = wanted if len(named) == 1 or wanted in done else None
        is_found = is_found or chosen is not None
        summary.baselines.append(prefix + baseline_of(done, chosen))
        summary.methods.extend(here)
        judges = dict.fromkeys(it["judge"] for each in judgements.values() for it in each)
        summary.judges.extend(_judged(judge, method) for judge in judges for method in here)
        if origin := about.get("benchmark"):
            summary.benchmarks.append(origin)
    if not is_found:
        baseline_of([each.method for each in summary.methods], baseline)
    summary.pairs.extend(_pairs(summary.methods))
    return summary


def _outcomes(
    directory: Path, methods: Mapping[str, Any], prices: Prices
) -> dict[str, list[Outcome]]:
    last: dict[str, dict[str, Outcome]] = {name: {} for name in methods}
    for outcome in judged_outcomes(directory):
        if prices.by_model:
            model = methods[outcome["method"]]["model"]
            outcome["usd"] = prices.cost(outcome["usage"], model)
        last[outcome["method"]][outcome["id"]] = outcome
    done = {name: list(each.values()) for name, each in last.items() if each}
    for outcomes in done.values():
        # Whether a method has evidence is not known from a run that ended without an answer.
        if any("gold passages" in each["scores"] for each in outcomes):
            for each in filter(is_unanswered, outcomes):
                each["scores"] |= gold_scores(each["sample"].get("gold", ()), ())
    return done


def baseline_of(methods: Iterable[str], chosen: str | None) -> str:
    """Return the method that the others are compared with: the chosen one, or else the first.

    Raises:
        BadInput: There is no such method.
    """
    names = list(methods)
    if chosen is not None and chosen not in names:
        raise BadInput(f"there is no method {chosen!r:.80} here; there is {', '.join(names)}")
    return names[0] if chosen is None else chosen


def family(model: str) -> str:
    """Return a model's family, such as "gpt" for `openai:gpt-5-mini-2025-08-07`, or ""."""
    name = re.split(r"[/.](?=[a-z])", bare_name(model))[-1].removeprefix("chat")
    return "gpt" if re.match(r"o\d", name) else re.split(r"[^a-z]", name)[0]


def _judged(judge: str, method: MethodSummary) -> Judged:
    judgements = [each for each in method.judgements if each["judge"] == judge]
    decided = [each for each in judgements if each.get("verdict") in {"win", "loss"}]
    first = sum(
        (each.get("verdict") == "win") == is_shown_first(each["number"]) for each in decided
    )
    samples = {each["id"]: each["sample"] for each in method.outcomes}
    kin = "model" if bare_name(judge) == bare_name(method.model) else "family"
    return Judged(
        judge,
        method.method,
        judgements=len(judgements),
        unread=sum(not {"items", "verdict"} & each.keys() for each in judgements),
        cut=sum(bool(each.get("left_out")) for each in judgements),
        criteria=frozenset(
            frozenset(common_criteria(each, samples[each["id"]]))
            for each in judgements
            if each["kind"] == "rubric" and "items" in each and each["id"] in samples
        ),
        position_bias=share(first, len(decided)) if decided else None,
        kin=kin if family(judge) == family(method.model) != "" else "",
    )


def _pairs(methods: Sequence[MethodSummary]) -> list[Comparison]:
    """Compare the methods in each directory with each other, and with those in earlier ones."""
    comparisons: list[Comparison] = []
    for _, here in groupby(methods, attrgetter("directory")):
        comparisons += _compare(permutations(here, 2))
    changes = [(b, a) for a, b in combinations(methods, 2) if a.directory != b.directory]
    same = [(ours, theirs) for ours, theirs in changes if ours.name == theirs.name]
    return comparisons + _compare(same or changes)


def _compare(pairs: Iterable[tuple[MethodSummary, MethodSummary]]) -> list[Comparison]:
    """Compare methods on all scores that both have, adjusting the p-values for all comparisons.

    A pair that occurs in both orders counts as one comparison.
    """
    comparisons = [
        _comparison(score, scores, ours, theirs)
        for ours, theirs in pairs
        for score, scores in _paired_scores(ours, theirs).items()
    ]
    families = [(frozenset((it.method, it.against)), _family(it.score)) for it in comparisons]
    adjusted = holm([each.p for each in comparisons], families)
    return [replace(each, p=p) for each, p in zip(comparisons, adjusted, strict=True)]


def _paired_scores(
    ours: MethodSummary, theirs: MethodSummary
) -> dict[str, list[tuple[float, float]]]:
    """Return each score of both methods, task by task."""
    pairs: dict[str, dict[Any, tuple[float, float]]] = {}
    is_change = ours.directory != theirs.directory
    their_scores = _task_scores(theirs.outcomes, by_question=is_change)
    for score, tasks in _task_scores(ours.outcomes, by_question=is_change).items():
        other = their_scores.get(score, {})
        for task, value in tasks.items():
            if task in other:
                pairs.setdefault(score, {})[task] = value, other[task]
    if not is_change:
        both = [*ours.judgements, *theirs.judgements]
        task_ids = {each["id"]: _task(each["sample"]) for each in ours.outcomes}
        for score, votes in vote_scores(both, ours.name, theirs.name).items():
            by_task = grouped(votes, lambda id_: task_ids.get(id_, id_))
            for task, ids in by_task.items():
                first, second = zip(*(votes[id_] for id_ in ids), strict=True)
                pairs.setdefault(score, {})[task] = fmean(first), fmean(second)
    return {score: list(each.values()) for score, each in pairs.items()}


def _family(score: str) -> tuple[str, str]:
    """Return the metric that a score measures and the judge that assigned it."""
    name, _, judge = score.partition(" by ")
    return "pass" if name.startswith("pass@") else _VARIANTS.get(name, name), judge


def _task_scores(
    outcomes: Iterable[Outcome], *, by_question: bool = False
) -> dict[str, dict[object, float]]:
    """Return scores by name and task, averaged over the answers to each task.

    Samples of a task have the same task id (or question, if `by_question`) and the same right
    answers, as far as the score depends on them. For each score whose name begins with `pass@1`,
    unbiased estimates of pass@k are added.
    """
    answers: dict[str, dict[object, list[float]]] = {}
    for outcome in outcomes:
        sample = outcome["sample"]
        question, resources, _seed = asked(sample)
        task = (question, resources) if by_question else _task(sample)
        for name, value in outcome["scores"].items():
            key = task, right_answer(sample, REFERENCE.get(name.partition(" by ")[0]))
            answers.setdefault(name, {}).setdefault(key, []).append(value)
    scores: dict[str, dict[object, float]] = {}
    for name, tasks in answers.items():
        scores[name] = {task: fmean(values) for task, values in tasks.items()}
        fewest = min(map(len, tasks.values())) if name.startswith(_PASSED) else 0
        for size in sorted({*_SIZES, fewest}):
            if 1 < size <= fewest:
                scores[f"pass@{size}{name.removeprefix(_PASSED)}"] = {
                    task: pass_at_k(len(values), round(sum(values)), size)
                    for task, values in tasks.items()
                }
    return scores


def _task(sample: Sample) -> str:
    """Return the id of the question that a sample repeats, or its own."""
    return sample.get("task", sample["id"])


def _method(
    about: Mapping[str, Any],
    outcomes: Sequence[Outcome],
    judgements: Sequence[Judgement],
    **names: str,
) -> MethodSummary:
    unanswered = sum(map(is_unanswered, outcomes))
    errors = Counter(each["error"] for each in outcomes if each["error"])
    scores = _task_scores(outcomes)
    return MethodSummary(
        **names,
        outcomes=outcomes,
        judgements=judgements,
        model=about["model"]
        or ", ".join(
            sorted({name for each in outcomes for name in each["usage"].get("models", ())})
        ),
        about=about,
        scores={score: mean_interval(list(values.values())) for score, values in scores.items()},
        costs=_costs(outcomes),
        samples=len(outcomes),
        unanswered=unanswered,
        failed=errors.total() - unanswered,
        reason=errors.most_common(1)[0][0] if errors else "",
        from_cache=sum(each["usage"].get("from_cache", 0) for each in outcomes),
        warnings=Counter(warning for each in outcomes for warning in {*each["warnings"]}),
    )


def _comparison(
    score: str, scores: Sequence[tuple[float, float]], ours: MethodSummary, theirs: MethodSummary
) -> Comparison:
    difference = paired(*zip(*scores, strict=True))
    wins = sum(a - b > 1e-9 for a, b in scores)
    losses = sum(b - a > 1e-9 for a, b in scores)
    # With few binary scores, the t-test finds differences too easily.
    is_binary = {value for pair in scores for value in pair} <= {0, 1}
    costs, their_costs = map(_costs, _shared(ours.outcomes, theirs.outcomes))
    return Comparison(
        method=ours.method,
        against=theirs.method,
        score=score,
        samples=len(scores),
        difference=difference,
        wins=wins,
        losses=losses,
        p=sign_test(wins, losses) if is_binary else difference.p,
        factors={
            kind: costs[kind] / cost
            for kind, cost in their_costs.items()
            if cost and kind in costs and kind != "cached"
        },
        is_change=ours.directory != theirs.directory,
    )


def _costs(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the mean costs per sample, omitting any cost that is unknown for some sample."""
    usages = [outcome["usage"] for outcome in outcomes]
    costs: dict[str, float] = {}
    # A method may make calls that LangChain does not see, and some calls report no tokens.
    if is_seen := any(usage.get("calls") or total_tokens(usage) for usage in usages):
        costs["calls"] = fmean(usage.get("calls", 0) for usage in usages)
    if is_seen and all(map(_has_tokens, usages)):
        for name, key in _TOKENS.items():
            costs[name] = fmean(usage.get(key, 0) for usage in usages)
    if outcomes:  # median, since the first ones also wait for models and sources to open
        costs["seconds"] = median(outcome["seconds"] for outcome in outcomes)
    prices = [usd for outcome in outcomes if (usd := outcome.get("usd")) is not None]
    if is_seen and len(prices) == len(outcomes):
        costs["USD"] = fmean(prices)
    return costs


def _has_tokens(usage: Mapping[str, Any]) -> bool:
    """Return whether the tokens of all calls are known."""
    return not usage.get("uncounted") and bool(total_tokens(usage) or not usage.get("calls"))


def _shared(*sides: Sequence[Outcome]) -> list[list[Outcome]]:
    """Return, for each side, the outcomes of the questions that both have answered."""
    by_question = [
        {asked(each["sample"]): each for each in side if answered(each)} for side in sides
    ]
    shared = by_question[0].keys() & by_question[1].keys()
    return [[each[question] for question in shared] for each in by_question]
