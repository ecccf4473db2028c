"""The judges' verdicts on an evaluation's outputs, one per line in a file, and their totals."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NotRequired, TypeVar

from typing_extensions import TypedDict

from stepcraft.evals.directory import Outcome, is_unanswered, read_outcomes
from stepcraft.evals.kinds import READINGS, Kind, criteria
from stepcraft.evals.samples import Sample
from stepcraft.journal import read_lines

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

VOTES = "votes.jsonl"
VERDICTS = ("win", "tie", "loss")


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
    verdict: NotRequired[Literal["win", "loss", "tie"]]
    """For a vote, the verdict on the method; absent without a readable reply."""
    shown_first: NotRequired[bool]
    """For a vote, whether the method's answer was shown before the other."""
    items: NotRequired[list[Item]]
    """For a reading, the items with their verdicts; absent without a readable reply."""
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
    readings = [each for each in read_judgements(directory) if each["kind"] in READINGS]
    by_answer = grouped(readings, itemgetter("method", "id"))
    graded: dict[tuple[Kind, str], set[str]] = {
        key: {each["id"] for each in group}
        for key, group in grouped(readings, itemgetter("kind", "judge")).items()
    }
    for outcome in read_outcomes(directory):
        judged = {
            f"{name} by {reading['judge']}": value
            for reading in by_answer.get((outcome["method"], outcome["id"]), [])
            if _is_of(reading, outcome["sample"])
            for name, value in reading_scores(reading).items()
        }
        if is_unanswered(outcome):
            judged = {
                f"{READINGS[kind].grade} by {judge}": 0.0
                for (kind, judge), ids in graded.items()
                if READINGS[kind].grade
                and (outcome["id"] in ids or criteria(kind, outcome["sample"]))
            }
        yield {**outcome, "scores": {**outcome["scores"], **judged}}


def _is_of(reading: Judgement, sample: Sample) -> bool:
    """Return whether a reading used the facts that the sample has now."""
    texts = [item["text"] for item in reading.get("items") or ()]
    return reading["kind"] != "facts" or texts == criteria("facts", sample)


def reading_scores(reading: Judgement) -> dict[str, float]:
    """Return the scores that a reading gives its answer, or none if it could not be read.

    "support" is RAGAS's faithfulness, computed sentence by sentence: the share of claims that the
    passages support. "citation recall" is ALCE's: the share of claims that are supported by the
    passages they cite.
    """
    names, verdicts = READINGS[reading["kind"]][1:3]
    claims = [each for each in reading.get("items") or () if verdicts.get(each["verdict"])]
    if not claims:
        return {}
    weights = zip(*(verdicts[each["verdict"]] for each in claims), strict=True)
    scores = dict(zip(names, map(fmean, weights), strict=True))
    if "support" in scores:
        supported = [each["is_cited"] and each["verdict"] == "supported" for each in claims]
        scores["citation recall"] = fmean(supported)
    return scores


def verdicts(judgements: Iterable[Judgement]) -> dict[tuple[str, str, str, str], str]:
    """Return the majority verdict on each sample for which there are readable votes.

    Its key is the judge, the method, the method it is compared with, and the sample.
    """
    votes = [each for each in judgements if "verdict" in each]
    return {
        key: verdict
        for key, group in grouped(votes, itemgetter("judge", "method", "against", "id")).items()
        if (verdict := majority(Counter(vote["verdict"] for vote in group)))
    }


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by their keys, in order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def majority(votes: Mapping[str, int]) -> str | None:
    """Return the leading verdict, "tie" if none leads, or None without a readable vote."""
    counts = Counter({verdict: votes.get(verdict, 0) for verdict in VERDICTS})
    (leading, most), (_, second), _ = counts.most_common()
    return None if not most else leading if most > second else "tie"
