"""The judges' verdicts on an evaluation's outputs, one per line in a file, and their totals."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from stepcraft.evals.directory import Outcome, is_unanswered, read_outcomes
from stepcraft.evals.samples import Sample
from stepcraft.evals.stats import Interval, holm, share, sign_test
from stepcraft.journal import read_lines

VOTES = "votes.jsonl"
_VERDICTS = ("win", "tie", "loss")
Kind = Literal["vote", "support", "facts", "rubric", "reference"]


class Item(TypedDict):
    """A sentence, fact or criterion, and a judge's verdict on it."""

    text: str
    verdict: str
    reason: str
    is_cited: bool
    """Whether a sentence cites passages."""


class Judgement(TypedDict):
    """A single call to a judge: a vote on two answers, or a reading of one."""

    kind: Kind
    judge: str
    """The name of the judging model."""
    method: str
    against: str
    """For a vote, the method that it is compared with."""
    id: str
    """The id of the sample."""
    number: int
    """For a vote, its number from 0, which is also its seed."""
    reply: str
    """The judge's reply, cut to its end if it is long."""
    error: str
    """Why there is no reply, or "" if there is one."""
    usage: dict[str, Any]
    verdict: NotRequired[Literal["win", "loss", "tie", "unreadable"]]
    """For a vote, the verdict on the method; absent without a reply."""
    shown_first: NotRequired[bool]
    """For a vote, whether the method's answer was shown before the other."""
    items: NotRequired[list[Item] | None]
    """For a reading, the items with their verdicts, or None if the reply is unreadable."""
    left_out: NotRequired[int]
    """For a reading, the number of passages that were left out because they were too long."""


key_of = itemgetter("kind", "judge", "method", "against", "id", "number")
"""Returns the key that identifies a call to a judge."""


def read_judgements(directory: Path) -> list[Judgement]:
    """Return the judgements so far, using the last one for each call.

    Raises:
        BadInput: A line is damaged.
    """
    return list({key_of(each): each for each in every_judgement(directory)}.values())


def every_judgement(directory: Path) -> Iterator[Judgement]:
    """Yield every call to a judge, including those that failed and were repeated.

    Raises:
        BadInput: A line is damaged.
    """
    if (directory / VOTES).exists():
        yield from read_lines(directory / VOTES)


def judged_outcomes(directory: Path) -> Iterator[Outcome]:
    """Yield the outcomes as `read_outcomes` does, with the judges' scores added.

    Raises:
        BadInput: There are no outcomes, or a line is damaged.
    """
    readings: dict[tuple[str, str], list[Judgement]] = {}
    graded: dict[tuple[Kind, str], set[str]] = {}
    for reading in read_judgements(directory):
        readings.setdefault((reading["method"], reading["id"]), []).append(reading)
        graded.setdefault((reading["kind"], reading["judge"]), set()).add(reading["id"])
    for outcome in read_outcomes(directory):
        judged = {
            f"{name} by {reading['judge']}": value
            for reading in readings.get((outcome["method"], outcome["id"]), [])
            if _is_of(reading, outcome["sample"])
            for name, value in reading_scores(reading).items()
        }
        if is_unanswered(outcome):
            judged = {
                f"{name} by {judge}": 0.0
                for (kind, judge), ids in graded.items()
                for name, grade in _GRADES.items()
                if grade == kind and (outcome["id"] in ids or criteria(kind, outcome["sample"]))
            }
        yield {**outcome, "scores": {**outcome["scores"], **judged}}


def _is_of(reading: Judgement, sample: Sample) -> bool:
    """Return whether a reading used the facts that the sample has now."""
    texts = [item["text"] for item in reading.get("items") or ()]
    return reading["kind"] != "facts" or texts == criteria("facts", sample)


_SCORES: Mapping[str, tuple[Kind, Mapping[str, float]]] = {
    "support": ("support", {"supported": 1, "miscited": 1}),
    "facts covered": ("facts", {"covered": 1}),
    "facts not contradicted": ("facts", {"covered": 1, "missing": 1}),
    "rubric": ("rubric", {"met": 1}),
    "reference": ("reference", {"right": 1, "partly": 0.5}),
}
"""The kind of reading for each score, and the weights of its verdicts."""
_GRADES: Mapping[str, Kind] = {
    "facts covered": "facts",
    "rubric": "rubric",
    "reference": "reference",
}
"""The scores that are 0 if there is no answer, each with its kind of reading."""


def criteria(kind: str, sample: Sample) -> list[str]:
    """Return the sample's own criteria for grading an answer."""
    if kind == "facts":
        return sample.get("facts", [])
    if kind == "rubric":
        return sample.get("rubric", [])
    is_known = any(sample.get(name) for name in ("answers", "long_answers", "contains", "steps"))
    return ["The answer is right."] if is_known else []


def reading_scores(reading: Judgement) -> dict[str, float]:
    """Return the scores that a reading gives its answer, or none if it could not be read.

    "support" is RAGAS's faithfulness, computed sentence by sentence: the share of claims that the
    passages support. "citation recall" is ALCE's: the share of claims that are supported by the
    passages they cite.
    """
    items = [each for each in reading.get("items") or () if each["verdict"] != "no claim"]
    if not items:
        return {}
    scores = {
        name: fmean(weights.get(item["verdict"], 0) for item in items)
        for name, (kind, weights) in _SCORES.items()
        if kind == reading["kind"]
    }
    if "support" in scores:
        scores["citation recall"] = fmean(
            each["is_cited"] and each["verdict"] == "supported" for each in items
        )
    return scores


@dataclass(frozen=True)
class Preference:
    """The result of a judge's votes on two methods."""

    judge: str
    method: str
    against: str
    wins: int
    """The number of samples on which most votes are for the method."""
    losses: int
    ties: int
    """The number of samples on which most votes are ties, or no verdict leads."""
    undecided: int
    """The number of samples without a readable vote."""
    p: float
    """The p-value of the sign test, adjusted for the number of pairs that the judge compared
    (Holm).
    """
    votes: int
    """The number of readable votes."""
    unreadable: int
    failed: int
    position_bias: Interval | None
    """The share of votes for the answer shown first, ignoring ties; 0.5 means no bias."""


def preferences(judgements: Iterable[Judgement]) -> list[Preference]:
    """Return the result of the votes on each pair of methods, by judge."""
    by_judge: dict[str, list[Preference]] = {}
    for names, each in votes_on_pairs(judgements).items():
        by_judge.setdefault(names[0], []).append(_preference(*names, each))
    return [
        replace(preference, p=p)
        for each in by_judge.values()
        for preference, p in zip(each, holm([other.p for other in each]), strict=True)
    ]


def votes_on_pairs(
    judgements: Iterable[Judgement],
) -> dict[tuple[str, str, str], list[Judgement]]:
    """Return the votes, grouped by judge, method, and the method it is compared with."""
    votes: dict[tuple[str, str, str], list[Judgement]] = {}
    for vote in judgements:
        if vote["kind"] == "vote":
            votes.setdefault((vote["judge"], vote["method"], vote["against"]), []).append(vote)
    return votes


def _preference(judge: str, method: str, against: str, votes: Sequence[Judgement]) -> Preference:
    samples = Counter(verdicts(votes).values())
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
        position_bias=share(first, len(decided)) if decided else None,
    )


def verdicts(votes: Iterable[Judgement]) -> dict[str, str | None]:
    """Return the majority verdict on a pair of methods for each sample, by sample id."""
    by_sample: dict[str, Counter[str]] = {}
    for vote in votes:
        by_sample.setdefault(vote["id"], Counter())[vote.get("verdict", "failed")] += 1
    return {id_: majority(each) for id_, each in by_sample.items()}


def majority(votes: Mapping[str, int]) -> str | None:
    """Return the leading verdict, "tie" if none leads, or None without a readable vote."""
    counts = Counter({verdict: votes.get(verdict, 0) for verdict in _VERDICTS})
    (leading, most), (_, second), _ = counts.most_common()
    return None if not most else leading if most > second else "tie"
