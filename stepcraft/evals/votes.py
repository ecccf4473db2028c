"""What judges said of an evaluation's outputs, line by line in a file, and what their votes come to."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NotRequired

import numpy as np
from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evals.stats import (
    Interval,
    cohen_kappa,
    holm,
    krippendorff_alpha,
    mean_interval,
    sign_test,
    trueskill,
)
from stepcraft.journal import read_lines

VOTES = "votes.jsonl"
_SEED = 0
_RATED_VOTES = 10_000
"""So many votes are rated in all, in 1 to 100 orders."""
_PREFERENCE = {"win": 1, "tie": 0, "loss": -1}


class Judgement(TypedDict):
    """One call to a judge: a vote on a pair of answers, or a reading of one answer against its passages."""

    kind: Literal["vote", "support", "agreement"]
    judge: str
    """The name of the model."""
    method: str
    against: str
    """Of a vote: the method that was compared with."""
    id: str
    """The sample; of an agreement: the passage."""
    number: int
    """Of a vote: its number, from 0, which is also its seed."""
    reply: str
    """The end of what the judge said."""
    error: str
    """Why there is no reply, "" where there is one."""
    note: NotRequired[str]
    """What was done to the passages so that they fit; absent where they were shown whole."""
    usage: dict[str, Any]
    verdict: NotRequired[Literal["win", "loss", "tie", "unreadable"]]
    """Of a vote, for the method; absent without a reply."""
    shown_first: NotRequired[bool]
    """Of a vote: whether the method's answer was shown before the other."""
    longer: NotRequired[int]
    """Of a vote: by how many characters the method's answer is longer than the other."""
    sentences: NotRequired[list[int]]
    """The numbers of the sentences that count."""
    unsupported: NotRequired[list[int] | None]
    """The numbers of the sentences that are not borne out; None where the reply is unreadable."""
    by_hand: NotRequired[list[int]]
    """Of an agreement: the numbers of the sentences that are marked by hand as not borne out."""


Key = tuple[str, str, str, str, str, int]


def key_of(one: Judgement) -> Key:
    """What tells a call to a judge from any other."""
    return one["kind"], one["judge"], one["method"], one["against"], one["id"], one["number"]


def read_judgements(directory: Path) -> list[Judgement]:
    """What the judges said so far, of each call the last; nothing where no judge was asked.

    Raises:
        BadInput: A line is damaged, or the file cannot be read.
    """
    return list({key_of(one): one for one in every_judgement(directory)}.values())


def every_judgement(directory: Path) -> Iterator[Judgement]:
    """Every call to a judge in its order, those that failed and were made again among them.

    Raises:
        BadInput: A line is damaged, or the file cannot be read.
    """
    try:
        yield from read_lines(directory / VOTES)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadInput(f"{directory / VOTES} cannot be read: {error.strerror}") from error


@dataclass(frozen=True)
class Preference:
    """What a judge's votes on two methods come to."""

    judge: str
    method: str
    against: str
    wins: int
    """Samples on which most votes are for the method."""
    losses: int
    ties: int
    """Samples on which most votes say so, or no verdict has more votes than the others."""
    undecided: int
    """Samples without a readable vote."""
    p: float
    """Of the sign test, adjusted for the number of methods that the judge compared (Holm)."""
    votes: int
    """Readable votes."""
    unreadable: int
    failed: int
    """Votes that could not be had."""
    order_bias: float | None
    """The share of the votes for the answer that was shown first, without those for a tie; 0.5 is none."""
    is_order_biased: bool
    """Whether that share is at least 0.2 from 0.5, and not by chance (sign test, p < 0.01)."""
    length_bias: float | None
    """The correlation of the votes (1, 0, -1) with the difference in length; None where one of them is constant."""


@dataclass(frozen=True)
class Support:
    """How much of a method's answers their passages bear out, as a judge sees it."""

    judge: str
    method: str
    share: Interval | None
    """The mean over the answers; None without a readable reply."""
    answers: int
    shortened: int
    """Answers whose passages were too long to be shown whole."""
    unreadable: int
    failed: int


@dataclass(frozen=True)
class Rating:
    """The TrueSkill of a method from a judge's votes."""

    judge: str
    method: str
    rating: Interval
    """A rating starts at 25; averaged over orders of the votes."""


@dataclass(frozen=True)
class Agreement:
    """How far a judge agrees with sentences that were marked by hand."""

    judge: str
    sentences: int
    """Those that the judge gave a readable reply on."""
    accuracy: float | None
    """The share that the judge marked alike; None without a sentence."""
    kappa: float | None
    """Cohen's kappa; None where chance cannot be told."""
    unreadable: int
    """Sentences whose reply could not be read or had."""


@dataclass(frozen=True)
class Alike:
    """How far two judges agree on the same units."""

    units: int
    """Those that both have a verdict on."""
    share: float
    """Of the units, those with the same verdict."""
    kappa: float | None
    """Cohen's kappa; None where chance cannot be told."""
    alpha: float | None
    """Krippendorff's alpha for nominal verdicts; None where chance cannot be told."""


@dataclass(frozen=True)
class JudgePair:
    """How far two judges agree on a pair of methods."""

    judges: tuple[str, str]
    method: str
    against: str
    majorities: Alike
    """On the samples."""
    votes: Alike
    """On single votes, those of the same number on a sample, which show the answers in the same order."""


def preferences(judgements: Iterable[Judgement]) -> list[Preference]:
    """The pairs of methods that were compared, by judge."""
    pairs: dict[tuple[str, str, str], list[Judgement]] = {}
    for one in judgements:
        if one["kind"] == "vote":
            pairs.setdefault((one["judge"], one["method"], one["against"]), []).append(one)
    found = [_preference(*names, votes) for names, votes in pairs.items()]
    adjusted: dict[int, float] = {}
    for judge in {one.judge for one in found}:
        own = [place for place, one in enumerate(found) if one.judge == judge]
        ps = holm([sign_test(found[place].wins, found[place].losses) for place in own])
        adjusted.update(zip(own, ps, strict=True))
    return [replace(one, p=adjusted[place]) for place, one in enumerate(found)]


def _preference(judge: str, method: str, against: str, votes: Sequence[Judgement]) -> Preference:
    by_sample: dict[str, Counter[str]] = {}
    for one in votes:
        by_sample.setdefault(one["id"], Counter())[one.get("verdict", "failed")] += 1
    majorities = Counter(map(majority, by_sample.values()))
    readable = [one for one in votes if one.get("verdict") in _PREFERENCE]
    firsts = [
        (one.get("verdict") == "win") == one.get("shown_first")
        for one in readable
        if one.get("verdict") != "tie"
    ]
    bias = sum(firsts) / len(firsts) if firsts else None
    return Preference(
        judge=judge,
        method=method,
        against=against,
        wins=majorities["win"],
        losses=majorities["loss"],
        ties=majorities["tie"],
        undecided=majorities[None],
        p=1.0,
        votes=len(readable),
        unreadable=sum(one.get("verdict") == "unreadable" for one in votes),
        failed=sum(bool(one["error"]) for one in votes),
        order_bias=bias,
        is_order_biased=bias is not None
        and abs(bias - 0.5) >= 0.2
        and sign_test(sum(firsts), len(firsts) - sum(firsts)) < 0.01,
        length_bias=_correlation(
            [_PREFERENCE[one.get("verdict", "")] for one in readable],
            [one.get("longer", 0) for one in readable],
        ),
    )


def judge_pairs(judgements: Iterable[Judgement]) -> list[JudgePair]:
    """The agreement of every two judges on every pair of methods that both compared."""
    said: dict[tuple[str, str], dict[str, dict[tuple[str, int], str]]] = {}
    for one in judgements:
        if one["kind"] == "vote" and (verdict := one.get("verdict")) in _PREFERENCE:
            by_judge = said.setdefault((one["method"], one["against"]), {})
            by_judge.setdefault(one["judge"], {})[one["id"], one["number"]] = str(verdict)
    found: list[JudgePair] = []
    for (method, against), by_judge in said.items():
        for judges in combinations(sorted(by_judge), 2):
            votes = [by_judge[judge] for judge in judges]
            majorities = _alike(*map(_majorities, votes))
            found.append(JudgePair(judges, method, against, majorities, _alike(*votes)))
    return found


def _majorities(votes: Mapping[tuple[str, int], str]) -> dict[str, str]:
    by_sample: dict[str, Counter[str]] = {}
    for (sample, _), verdict in votes.items():
        by_sample.setdefault(sample, Counter())[verdict] += 1
    return {sample: str(majority(counts)) for sample, counts in by_sample.items()}


def _alike(one: Mapping[Any, str], other: Mapping[Any, str]) -> Alike:
    ratings = [[verdicts[unit] for unit in one if unit in other] for verdicts in (one, other)]
    same = sum(a == b for a, b in zip(*ratings, strict=True))
    count = len(ratings[0])
    return Alike(count, same / (count or 1), cohen_kappa(*ratings), krippendorff_alpha(ratings))


def majority(votes: Mapping[str, int]) -> str | None:
    """The verdict with most votes, "tie" where no verdict has more than the others, None without a readable vote."""
    counts = {verdict: votes.get(verdict, 0) for verdict in _PREFERENCE}
    most = max(counts.values())
    if not most:
        return None
    leading = [verdict for verdict, count in counts.items() if count == most]
    return leading[0] if len(leading) == 1 else "tie"


def _correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    if len(set(a)) < 2 or len(set(b)) < 2:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def ratings(judgements: Iterable[Judgement]) -> list[Rating]:
    """Rate the methods by each judge's votes (RAT section 4), one vote a sample: that of its majority.

    Raises:
        BadInput: There are votes, and `trueskill` is not installed.
    """
    counts: dict[str, dict[tuple[str, str, str], Counter[str]]] = {}
    for one in judgements:
        if one["kind"] == "vote" and "verdict" in one:
            pair = one["method"], one["against"], one["id"]
            counts.setdefault(one["judge"], {}).setdefault(pair, Counter())[one["verdict"]] += 1
    found: list[Rating] = []
    for judge, pairs in counts.items():
        votes = [
            (method, against, {"win": method, "loss": against}.get(verdict))
            for (method, against, _), counted in pairs.items()
            if (verdict := majority(counted))
        ]
        players = list(
            dict.fromkeys(player for method, against, _ in votes for player in (method, against))
        )
        if votes:
            orders = max(1, min(100, _RATED_VOTES // len(votes)))
            rated = trueskill(votes, players, orders, _SEED)
            found += [Rating(judge, player, rated[player]) for player in players]
    return found


def supports(judgements: Iterable[Judgement]) -> list[Support]:
    """The support of each method's answers, by judge."""
    readings: dict[tuple[str, str], list[Judgement]] = {}
    for one in judgements:
        if one["kind"] == "support":
            readings.setdefault((one["judge"], one["method"]), []).append(one)
    return [_support(*names, found) for names, found in readings.items()]


def _support(judge: str, method: str, readings: Sequence[Judgement]) -> Support:
    shares = list(_shares(readings))
    failed = sum(bool(one["error"]) for one in readings)
    return Support(
        judge=judge,
        method=method,
        share=mean_interval(shares, seed=_SEED) if shares else None,
        answers=len(shares),
        shortened=sum("note" in one for one in readings),
        unreadable=len(readings) - failed - len(shares),
        failed=failed,
    )


def _shares(readings: Iterable[Judgement]) -> Iterator[float]:
    for one in readings:
        counted, flagged = one.get("sentences") or [], one.get("unsupported")
        if flagged is not None and counted:
            yield 1 - len(set(counted) & set(flagged)) / len(counted)


def agreements(judgements: Iterable[Judgement]) -> list[Agreement]:
    """The agreement of each judge with the sentences that were marked by hand."""
    readings: dict[str, list[Judgement]] = {}
    for one in judgements:
        if one["kind"] == "agreement":
            readings.setdefault(one["judge"], []).append(one)
    return [_agreement(judge, found) for judge, found in readings.items()]


def _agreement(judge: str, readings: Sequence[Judgement]) -> Agreement:
    said: list[bool] = []
    right: list[bool] = []
    unreadable = 0
    for one in readings:
        numbers, flagged = one.get("sentences") or [], one.get("unsupported")
        if flagged is None:
            unreadable += len(numbers)
        else:
            said += [number in flagged for number in numbers]
            right += [number in one.get("by_hand", []) for number in numbers]
    alike = sum(a == b for a, b in zip(said, right, strict=True))
    return Agreement(
        judge=judge,
        sentences=len(said),
        accuracy=alike / len(said) if said else None,
        kappa=cohen_kappa(said, right),
        unreadable=unreadable,
    )
