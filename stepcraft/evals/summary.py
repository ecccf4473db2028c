"""What an evaluation found: the scores and costs of each method, and which are better."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from stepcraft.errors import BadInput, NoAnswer
from stepcraft.evals.directory import Outcome, read_configuration, read_outcomes
from stepcraft.evals.progress import total_tokens
from stepcraft.evals.scores import pass_at_k
from stepcraft.evals.stats import (
    LEVEL,
    Difference,
    Interval,
    holm,
    mean_interval,
    paired,
    sign_test,
)
from stepcraft.evals.votes import Preference, Support, preferences, read_judgements, supports

_PASSED = "pass@1"
"""What the name of a score begins with that says whether a program is right."""
_SIZES = (5, 10, 100)
"""The k of pass@k that are reported where every task has as many answers."""


@dataclass(frozen=True)
class MethodSummary:
    """The scores and costs of a method."""

    method: str
    model: str
    scores: Mapping[str, Interval]
    """The mean of each score over the tasks; what failed has none, but no answer fails pass@k."""
    costs: Mapping[str, float]
    """`calls`, `tokens`, `seconds` and, where all prices are known, `USD` a sample, also failed."""
    samples: int
    """Those that are finished, the failed ones among them."""
    failed: int


@dataclass(frozen=True)
class Comparison:
    """A score of a method against the same score of another, on the tasks that both have."""

    method: str
    against: str
    score: str
    samples: int
    difference: Difference
    wins: int
    losses: int
    p: float
    """Of the paired t-test, of scores that are 0 or 1 of the exact sign test (McNemar's).

    It is adjusted for the number of comparisons (Holm).
    """
    sign_p: float
    """Of the exact sign test on wins and losses, adjusted in the same way."""
    factors: Mapping[str, float]
    """Each cost of the method over that of the other, on the samples that both have."""

    @property
    def is_shown(self) -> bool:
        """Whether the difference is beyond chance."""
        return self.p < 1 - LEVEL


@dataclass(frozen=True)
class Summary:
    """The result of an evaluation."""

    methods: Sequence[MethodSummary]
    comparisons: Sequence[Comparison]
    """Each method against the one with the fewest tokens."""
    is_keyless: bool
    """Whether an output was written without a language model, which says nothing of a method."""
    preferences: Sequence[Preference] = ()
    supports: Sequence[Support] = ()
    self_judged: Sequence[tuple[str, str]] = ()
    """The judges that also wrote answers, each with such a method."""
    benchmark: Mapping[str, str] = field(default_factory=dict[str, str])


def summarise(directory: Path) -> Summary:
    """Read an evaluation's directory and compare its methods.

    Raises:
        BadInput: It is no directory of an evaluation, or nothing in it is finished.
    """
    configuration = read_configuration(directory)
    last: dict[str, dict[str, Outcome]] = {name: {} for name in configuration["methods"]}
    for outcome in read_outcomes(directory):
        # The outputs of ten thousand samples would fill the memory.
        last[outcome["method"]][outcome["id"]] = {**outcome, "output": {}}
    outcomes = {name: list(each.values()) for name, each in last.items() if each}
    if not outcomes:
        raise BadInput(f"nothing in {directory} is finished yet; start the evaluation")
    models = {name: configuration["methods"][name]["model"] for name in outcomes}
    others = dict(outcomes)
    cheapest = others.pop(cheapest_of(outcomes), [])
    judgements = read_judgements(directory)
    return Summary(
        methods=[_method(models[name], each) for name, each in outcomes.items()],
        comparisons=compare([(each, cheapest) for each in others.values()]),
        is_keyless=is_keyless(outcome for each in outcomes.values() for outcome in each),
        preferences=preferences(judgements),
        supports=supports(judgements),
        self_judged=[
            (judge, name)
            for judge in dict.fromkeys(judgement["judge"] for judgement in judgements)
            for name, model in models.items()
            if model in {judge, judge.partition(":")[2]} - {""}
        ],
        benchmark=configuration.get("benchmark", {}),
    )


def is_keyless(outcomes: Iterable[Outcome]) -> bool:
    """Return whether an output was written without a language model."""
    return any("no language model" in text for each in outcomes for text in each["warnings"])


def cheapest_of(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """Return the method with the fewest tokens on the samples that all have answered, or ""."""
    answered = {name: done for name, each in outcomes.items() if (done := _answered(each))}
    shared = dict(zip(answered, _shared(*answered.values()), strict=True))
    return min(shared, key=lambda name: (_costs(shared[name])["tokens"], name), default="")


def compare(pairs: Sequence[tuple[Sequence[Outcome], Sequence[Outcome]]]) -> list[Comparison]:
    """Compare methods in all scores that both have; p is adjusted over all comparisons.

    Args:
        pairs: The outcomes of a method, and of the one that it is compared with.
    """
    comparisons: list[Comparison] = []
    for ours, theirs in pairs:
        their_scores = task_scores(theirs)
        for score, tasks in task_scores(ours).items():
            other = their_scores.get(score, {})
            scores = [(value, other[task]) for task, value in tasks.items() if task in other]
            if scores:
                comparisons.append(_comparison(score, scores, ours, theirs))
    adjusted = holm([each.p for each in comparisons]), holm([each.sign_p for each in comparisons])
    return [
        replace(each, p=p, sign_p=sign_p)
        for each, p, sign_p in zip(comparisons, *adjusted, strict=True)
    ]


def task_scores(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """Return the scores by name and task; of a task with several answers the mean.

    Beside a score that begins with `pass@1` stands pass@k, estimated without bias; there a run that
    ended without an answer counts as a wrong one.
    """
    answers: dict[str, dict[str, list[float]]] = {}
    unanswered: list[str] = []
    for outcome in outcomes:
        task = outcome["sample"].get("task", outcome["id"])
        if outcome["error"].startswith(NoAnswer.__name__):
            unanswered.append(task)
        for name, value in outcome["scores"].items():
            answers.setdefault(name, {}).setdefault(task, []).append(value)
    for name, tasks in answers.items():
        for task in unanswered if name.startswith(_PASSED) else ():
            tasks.setdefault(task, []).append(0.0)
    scores: dict[str, dict[str, float]] = {}
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


def _method(model: str, outcomes: Sequence[Outcome]) -> MethodSummary:
    tasks = task_scores(outcomes)
    return MethodSummary(
        method=outcomes[0]["method"],
        model=model,
        scores={score: mean_interval(list(values.values())) for score, values in tasks.items()},
        costs=_costs(outcomes),
        samples=len(outcomes),
        failed=len(outcomes) - len(_answered(outcomes)),
    )


def _comparison(
    score: str,
    scores: Sequence[tuple[float, float]],
    ours: Sequence[Outcome],
    theirs: Sequence[Outcome],
) -> Comparison:
    difference = paired(*zip(*scores, strict=True))
    wins = sum(a - b > 1e-9 for a, b in scores)
    losses = sum(b - a > 1e-9 for a, b in scores)
    sign_p = sign_test(wins, losses)
    ours, theirs = _shared(_answered(ours), _answered(theirs))
    costs, their_costs = _costs(ours), _costs(theirs)
    return Comparison(
        method=ours[0]["method"],
        against=theirs[0]["method"],
        score=score,
        samples=len(scores),
        difference=difference,
        wins=wins,
        losses=losses,
        # Of few answers that are right or wrong, the t-test finds differences too easily.
        p=sign_p if {value for pair in scores for value in pair} <= {0, 1} else difference.p,
        sign_p=sign_p,
        factors={kind: costs[kind] / cost for kind, cost in their_costs.items() if cost},
    )


def _costs(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return what a sample cost; in USD where all are known."""
    costs: dict[str, list[float | None]] = {
        "calls": [outcome["usage"].get("calls", 0) for outcome in outcomes],
        "tokens": [total_tokens(outcome["usage"]) for outcome in outcomes],
        "seconds": [outcome["seconds"] for outcome in outcomes],
        "USD": [outcome.get("usd") for outcome in outcomes],
    }
    return {
        kind: fmean(value for value in values if value is not None)
        for kind, values in costs.items()
        if None not in values
    }


def _answered(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [outcome for outcome in outcomes if not outcome["error"]]


def _shared(*sides: Sequence[Outcome]) -> list[Sequence[Outcome]]:
    """Return of each side the samples that all sides have; all of them where there is none."""
    if not sides:
        return []
    ids = set.intersection(*({outcome["id"] for outcome in side} for side in sides))
    return [
        [outcome for outcome in side if outcome["id"] in ids] if ids else side for side in sides
    ]
