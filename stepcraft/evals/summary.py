"""What an evaluation found: scores and costs of each method, and whether it beats the cheapest one, in scores and before judges."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.directory import Outcome, read_configuration, read_outcomes
from stepcraft.evals.mauve import Mauve, mauve_scores
from stepcraft.evals.progress import tokens_of
from stepcraft.evals.repeats import task_of, task_scores
from stepcraft.evals.stats import (
    Difference,
    Interval,
    Record,
    holm,
    mcnemar,
    mean_interval,
    paired_bootstrap,
    samples_needed,
    sign_test,
    wins_losses_ties,
)
from stepcraft.evals.votes import (
    Agreement,
    JudgePair,
    Preference,
    Rating,
    Support,
    agreements,
    judge_pairs,
    preferences,
    ratings,
    read_judgements,
    supports,
)

LEVEL = 0.95
"""The confidence of all intervals."""
_SEED = 0
_RANDOM_NUMBERS = 10_000_000
"""So many are drawn for an interval at most; of more than 1,000 samples there are fewer resamples than 10,000."""


@dataclass(frozen=True)
class MethodSummary:
    """The scores and costs of a method."""

    name: str
    samples: int
    failed: int
    scores: Mapping[str, Interval]
    """The mean of each score over the tasks, with its interval."""
    costs: Mapping[str, Interval]
    """`calls` to models, `tokens` read and written, `seconds` and, where the prices are known, `usd`, a sample."""

    @property
    def calls(self) -> float:
        """Model calls a sample."""
        return self.costs["calls"].mean

    @property
    def tokens(self) -> float:
        """Tokens read and written a sample."""
        return self.costs["tokens"].mean

    @property
    def seconds(self) -> float:
        """Seconds a sample."""
        return self.costs["seconds"].mean

    @property
    def usd(self) -> float | None:
        """What a sample cost in USD; None where that of one is unknown."""
        return self.costs["usd"].mean if "usd" in self.costs else None


@dataclass(frozen=True)
class Comparison:
    """A score of a method against the same score of another, on the samples that both have."""

    method: str
    against: str
    score: str
    samples: int
    difference: Difference
    p: float
    """Of the randomisation test, adjusted for the number of comparisons (Holm)."""
    record: Record
    """On how many samples the method is better, worse, or as good."""
    sign_p: float
    """Of the sign test on wins and losses, adjusted in the same way."""
    mcnemar_p: float | None
    """Of McNemar's test, where all scores are 0 or 1; adjusted in the same way."""
    needed: int | None
    """How many samples would show the difference seen; None where that cannot be said."""
    factors: Mapping[str, float]
    """Of each cost (see `MethodSummary.costs`): that of the method over that of the other, where the other has one."""

    @property
    def factor(self) -> float:
        """Tokens of the method over those of the other."""
        return self.factors.get("tokens", float("inf"))


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
    ratings: Sequence[Rating] = ()
    """The TrueSkill of the methods from the votes of each judge."""
    missing: Sequence[str] = ()
    """What could not be computed, and how it can."""
    benchmark: Mapping[str, str] = field(default_factory=dict[str, str])
    """The name, source, licence and paper of the benchmark; empty for questions of one's own."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """The model that writes the answers of each method."""
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
    configuration = read_configuration(directory)
    configured = configuration["methods"]
    last: dict[tuple[str, str], Outcome] = {
        (one["method"], one["id"]): {
            **one,
            "output": {},
            "sample": {"id": one["id"], "question": "", "task": task_of(one)},
        }
        for one in read_outcomes(directory)
    }
    outcomes = {
        name: [one for (method, _), one in last.items() if method == name] for name in configured
    }
    outcomes = {name: known for name, known in outcomes.items() if known}
    if not outcomes:
        raise BadInput(f"nothing in {directory} is finished yet; start the evaluation")
    methods = [_method(name, known) for name, known in outcomes.items()]
    cheapest = cheapest_of(last.values())
    judgements = read_judgements(directory)
    try:
        rated, missing = ratings(judgements), []
    except BadInput as error:  # an extra is not installed
        rated, missing = [], [str(error)]
    return Summary(
        methods=methods,
        comparisons=_against(cheapest, methods, outcomes) if cheapest else [],
        cheapest=cheapest,
        is_keyless=is_keyless(last.values()),
        preferences=preferences(judgements),
        supports=supports(judgements),
        agreements=agreements(judgements),
        mauves=mauve_scores(directory, mauve) if mauve else (),
        judge_pairs=judge_pairs(judgements),
        ratings=rated,
        missing=missing,
        benchmark=configuration.get("benchmark", {}),
        models={name: method["model"] for name, method in configured.items()},
        own_judges=[
            (judge, name)
            for judge in dict.fromkeys(one["judge"] for one in judgements)
            for name, method in configured.items()
            if any(_is_same(judge, writer) for writer in _writers(method))
        ],
    )


def is_keyless(outcomes: Iterable[Outcome]) -> bool:
    """Whether an output was written without a language model."""
    return any("no language model" in text for one in outcomes for text in one["warnings"])


def cheapest_of(outcomes: Iterable[Outcome]) -> str | None:
    """The method with the fewest tokens on the samples that all have; None where fewer than two have an output."""
    done: dict[str, list[Outcome]] = {}
    for one in outcomes:
        if not one["error"]:
            done.setdefault(one["method"], []).append(one)
    tokens = {
        name: fmean(map(tokens_of, shared))
        for name, shared in zip(done, _shared(*done.values()), strict=True)
    }
    return min(tokens, key=lambda name: (tokens[name], name)) if len(tokens) > 1 else None


def _shared(*sides: Sequence[Outcome]) -> list[list[Outcome]]:
    """Of each side the outcomes of the samples that all sides have; all of them where there is no such sample."""
    ids = (
        set[str].intersection(*({one["id"] for one in side} for side in sides))
        if sides
        else set[str]()
    )
    return [[one for one in side if one["id"] in ids or not ids] for side in sides]


def _writers(method: Mapping[str, Any]) -> list[str]:
    return [method["model"], *dict(method["settings"].get("node_models") or {}).values()]


def _is_same(one: str, other: str) -> bool:
    """Whether two names are of one model; a provider may stand before either."""
    return one == other or one.endswith(f":{other}") or other.endswith(f":{one}")


def _method(name: str, outcomes: Sequence[Outcome]) -> MethodSummary:
    done = [one for one in outcomes if not one["error"]]
    return MethodSummary(
        name=name,
        samples=len(done),
        failed=len(outcomes) - len(done),
        scores={
            score: _mean(list(tasks.values()), shares=True)
            for score, tasks in task_scores(done).items()
        },
        costs={kind: _mean(values) for kind, values in _costs(done).items()},
    )


def _costs(outcomes: Sequence[Outcome]) -> dict[str, list[float]]:
    """What each sample cost, by the kind of the cost; in USD where all are known."""
    usd = [usd for one in outcomes if (usd := one.get("usd")) is not None]
    return {
        "calls": [one["usage"].get("calls", 0) for one in outcomes],
        "tokens": [tokens_of(one) for one in outcomes],
        "seconds": [one["seconds"] for one in outcomes],
        **({"usd": usd} if usd and len(usd) == len(outcomes) else {}),
    }


def _factors(ours: Sequence[Outcome], theirs: Sequence[Outcome]) -> dict[str, float]:
    own, others = (
        {kind: fmean(values) for kind, values in _costs(side).items()}
        for side in _shared(ours, theirs)
    )
    return {kind: cost / others[kind] for kind, cost in own.items() if others.get(kind)}


def _mean(values: Sequence[float], *, shares: bool = False) -> Interval:
    resamples = _resamples(len(values))
    return mean_interval(values or [0.0], _SEED, resamples=resamples, level=LEVEL, shares=shares)


def _resamples(samples: int) -> int:
    return min(10_000, max(1_000, _RANDOM_NUMBERS // max(samples, 1)))


def _against(
    name: str, methods: Sequence[MethodSummary], outcomes: Mapping[str, Sequence[Outcome]]
) -> list[Comparison]:
    """The scores of each method against those of the one with this name."""
    others = [method.name for method in methods if method.samples and method.name != name]
    return compare([(outcomes[other], outcomes[name]) for other in others])


def compare(pairs: Sequence[tuple[Sequence[Outcome], Sequence[Outcome]]]) -> list[Comparison]:
    """Compare methods, each with another, in all scores that both have; p is adjusted over all comparisons.

    Args:
        pairs: The outcomes of a method, and of the one that it is compared with.
    """
    found: list[Comparison] = []
    for ours, theirs in pairs:
        done, others = ([one for one in side if not one["error"]] for side in (ours, theirs))
        known = task_scores(others)
        for score, tasks in task_scores(done).items():
            a, b = _paired(tasks, known.get(score, {}))
            if a:
                found.append(_comparison(score, a, b, done, others))
    exact = [one.mcnemar_p for one in found if one.mcnemar_p is not None]
    adjusted = iter(holm(exact))
    return [
        replace(one, p=p, sign_p=sign, mcnemar_p=None if one.mcnemar_p is None else next(adjusted))
        for one, p, sign in zip(
            found, holm([one.p for one in found]), holm([one.sign_p for one in found]), strict=True
        )
    ]


def _comparison(
    score: str,
    a: Sequence[float],
    b: Sequence[float],
    ours: Sequence[Outcome],
    theirs: Sequence[Outcome],
) -> Comparison:
    difference = paired_bootstrap(a, b, seed=_SEED, resamples=_resamples(len(a)), level=LEVEL)
    record = wins_losses_ties(a, b)
    return Comparison(
        method=ours[0]["method"],
        against=theirs[0]["method"],
        score=score,
        samples=len(a),
        difference=difference,
        p=difference.p,
        record=record,
        sign_p=sign_test(record.wins, record.losses),
        mcnemar_p=mcnemar(record.wins, record.losses) if {*a, *b} <= {0.0, 1.0} else None,
        needed=samples_needed([x - y for x, y in zip(a, b, strict=True)], level=LEVEL),
        factors=_factors(ours, theirs),
    )


def _paired(
    ours: Mapping[str, float], theirs: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    """The scores of the tasks that both methods have, in the same order."""
    pairs = [(value, theirs[task]) for task, value in ours.items() if task in theirs]
    return [a for a, _ in pairs], [b for _, b in pairs]
