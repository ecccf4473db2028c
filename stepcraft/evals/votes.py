"""What judges said of an evaluation's outputs, line by line in a file, and what it comes to."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from stepcraft.evals.stats import Interval, holm, mean_interval, share, sign_test
from stepcraft.journal import read_lines

VOTES = "votes.jsonl"
_VERDICTS = ("win", "tie", "loss")


class Judgement(TypedDict):
    """One call of a judge: a vote on two answers, or a reading of one against its passages."""

    kind: Literal["vote", "support"]
    judge: str
    """The name of the model."""
    method: str
    against: str
    """Of a vote: the method that was compared with."""
    id: str
    """The sample."""
    number: int
    """Of a vote: its number, from 0, which is also its seed."""
    reply: str
    """The end of what the judge said."""
    error: str
    """Why there is no reply, "" where there is one."""
    usage: dict[str, Any]
    verdict: NotRequired[Literal["win", "loss", "tie", "unreadable"]]
    """Of a vote, for the method; absent without a reply."""
    shown_first: NotRequired[bool]
    """Of a vote: whether the method's answer was shown before the other."""
    sentences: NotRequired[list[int]]
    """Of a reading: the numbers of the sentences that count."""
    unsupported: NotRequired[list[int] | None]
    """Of a reading: the sentences that are not borne out; None where the reply is unreadable."""
    left_out: NotRequired[int]
    """Of a reading: how many passages were too long to be shown."""


key_of = itemgetter("kind", "judge", "method", "against", "id", "number")
"""What tells a call of a judge from any other."""


def read_judgements(directory: Path) -> list[Judgement]:
    """Return what the judges said so far, of each call the last.

    Raises:
        BadInput: A line is damaged.
    """
    return list({key_of(each): each for each in every_judgement(directory)}.values())


def every_judgement(directory: Path) -> Iterator[Judgement]:
    """Yield every call of a judge, those that failed and were made again among them.

    Raises:
        BadInput: A line is damaged.
    """
    if (directory / VOTES).exists():
        yield from read_lines(directory / VOTES)


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
    order_bias: Interval | None
    """The share of the votes for the answer that was shown first, ties apart; 0.5 is none."""


@dataclass(frozen=True)
class Support:
    """How much of a method's answers their passages bear out, as a judge sees it."""

    judge: str
    method: str
    share: Interval | None
    """The mean over the answers; None without a readable reply."""
    answers: int
    unreadable: int
    failed: int
    cut: int
    """Answers of which passages were left out because they were too long."""


def preferences(judgements: Iterable[Judgement]) -> list[Preference]:
    """Return what the votes say of each pair of methods, by judge."""
    votes: dict[tuple[str, str, str], list[Judgement]] = {}
    for vote in judgements:
        if vote["kind"] == "vote":
            votes.setdefault((vote["judge"], vote["method"], vote["against"]), []).append(vote)
    by_judge: dict[str, list[Preference]] = {}
    for names, each in votes.items():
        by_judge.setdefault(names[0], []).append(_preference(*names, each))
    return [
        replace(preference, p=p)
        for each in by_judge.values()
        for preference, p in zip(each, holm([other.p for other in each]), strict=True)
    ]


def _preference(judge: str, method: str, against: str, votes: Sequence[Judgement]) -> Preference:
    by_sample: dict[str, Counter[str]] = {}
    for vote in votes:
        by_sample.setdefault(vote["id"], Counter())[vote.get("verdict", "failed")] += 1
    samples = Counter(map(majority, by_sample.values()))
    readable = [vote for vote in votes if vote.get("verdict") in _VERDICTS]
    decided = [vote for vote in readable if vote.get("verdict") != "tie"]
    first = sum((vote.get("verdict") == "win") == vote.get("shown_first") for vote in decided)
    return Preference(
        judge=judge,
        method=method,
        against=against,
        wins=samples["win"],
        losses=samples["loss"],
        ties=samples["tie"],
        undecided=samples[None],
        p=sign_test(samples["win"], samples["loss"]),
        votes=len(readable),
        unreadable=sum(vote.get("verdict") == "unreadable" for vote in votes),
        failed=sum(bool(vote["error"]) for vote in votes),
        order_bias=share(first, len(decided)) if decided else None,
    )


def majority(votes: Mapping[str, int]) -> str | None:
    """Return the verdict with most votes, "tie" where none has, None without a readable vote."""
    counts = Counter({verdict: votes.get(verdict, 0) for verdict in _VERDICTS})
    (leading, most), (_, second), _ = counts.most_common()
    return None if not most else leading if most > second else "tie"


def supports(judgements: Iterable[Judgement]) -> list[Support]:
    """Return the support of each method's answers, by judge."""
    readings: dict[tuple[str, str], list[Judgement]] = {}
    for reading in judgements:
        if reading["kind"] == "support":
            readings.setdefault((reading["judge"], reading["method"]), []).append(reading)
    return [_support(*names, each) for names, each in readings.items()]


def _support(judge: str, method: str, readings: Sequence[Judgement]) -> Support:
    shares = [
        1 - len({*counted} & {*flagged}) / len(counted)
        for reading in readings
        if (counted := reading.get("sentences"))
        and (flagged := reading.get("unsupported")) is not None
    ]
    failed = sum(bool(reading["error"]) for reading in readings)
    return Support(
        judge=judge,
        method=method,
        share=mean_interval(shares) if shares else None,
        answers=len(shares),
        unreadable=len(readings) - failed - len(shares),
        failed=failed,
        cut=sum(bool(reading.get("left_out")) for reading in readings),
    )
