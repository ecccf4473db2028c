"""The judges' verdicts on an evaluation's outputs, one per line in a file, and their totals."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, NotRequired, TypeVar

from typing_extensions import TypedDict

from stepcraft.evals.directory import Outcome, is_unanswered, lines, read_outcomes
from stepcraft.evals.kinds import READINGS, Kind, criteria
from stepcraft.evals.samples import RIGHT, Sample, fingerprint

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

VOTES = "votes.jsonl"
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "vote": RIGHT,
    "reference": RIGHT,
    "facts": ("facts",),
    "rubric": ("rubric",),
}
"""The fields of a sample that each kind of judgement depends on."""
_OPPOSITE = {"win": "loss", "loss": "win"}


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
    """For a vote, the other method in the comparison."""
    id: str
    """The id of the sample."""
    number: int
    """For a vote, its zero-based number, which is also its seed."""
    reply: str
    """The judge's reply, or only its end if it is long."""
    error: str
    """Why there is no reply, or "" if there is one."""
    usage: dict[str, Any]
    verdict: NotRequired[Literal["win", "loss", "tie"]]
    """For a vote, the verdict on the method; absent without a readable reply."""
    items: NotRequired[list[Item]]
    """For a reading, the items with their verdicts; absent without a readable reply."""
    left_out: NotRequired[int]
    """For a reading, the number of passages that were left out because they were too long."""
    basis: NotRequired[str]
    """A fingerprint of the judged answers and the right answers."""


key_of = itemgetter("judge", "kind", "method", "against", "id", "number")
"""Returns the key that identifies a call to a judge."""


def is_shown_first(number: int) -> bool:
    """Return whether a vote shows the method's answer before the other one."""
    return number % 2 == 0


def basis_of(kind: Kind, *outcomes: Outcome) -> str:
    """Return a fingerprint of the answers and right answers that a judgement depends on."""
    sample: Mapping[str, Any] = outcomes[0]["sample"]
    answers = [{name: it["output"].get(name) for name in ("answer", "steps")} for it in outcomes]
    return fingerprint([*answers, {name: sample.get(name) for name in _FIELDS.get(kind, ())}])


def read_judgements(directory: Path) -> list[Judgement]:
    """Return the judgements of the current answers: for each call, the latest such judgement.

    Judgements of earlier answers, or of answers whose right answer has changed, are left out.

    Raises:
        BadInput: A line is damaged.
    """
    outcomes = {(each["method"], each["id"]): each for each in read_outcomes(directory)}

    def is_current(judgement: Judgement) -> bool:
        names = filter(None, (judgement["method"], judgement["against"]))
        judged = [outcomes.get((name, judgement["id"])) for name in names]
        known = [each for each in judged if each]
        if len(known) < len(judged):
            return True
        basis = basis_of(judgement["kind"], *known)
        return judgement.get("basis", basis) == basis

    current = filter(is_current, every_judgement(directory))
    return [*{key_of(each): each for each in current}.values()]


def every_judgement(directory: Path) -> Iterator[Judgement]:
    """Yield every call to a judge, including those that failed and were repeated.

    Raises:
        BadInput: A line is damaged.
    """
    return lines(directory / VOTES)


def judged_outcomes(directory: Path) -> Iterator[Outcome]:
    """Yield the outcomes as `read_outcomes` does, with the judges' scores added.

    Raises:
        BadInput: There are no outcomes, or a line is damaged.
    """
    readings = [each for each in read_judgements(directory) if each["kind"] != "vote"]
    by_answer = grouped(readings, itemgetter("method", "id"))
    samples = {each["id"]: each["sample"] for each in read_outcomes(directory)}
    graded: dict[tuple[str, str], set[str]] = {}
    for each in readings:
        sample = samples.get(each["id"])
        is_common = each["kind"] == "rubric" and sample and common_criteria(each, sample)
        ids = graded.setdefault((each["kind"], each["judge"]), set())
        ids.update(samples if is_common else [each["id"]])
    for outcome in read_outcomes(directory):
        sample = outcome["sample"]
        judged = {
            f"{name} by {reading['judge']}": value
            for reading in by_answer.get((outcome["method"], outcome["id"]), [])
            for name, value in reading_scores(reading).items()
        }
        if is_unanswered(outcome):
            judged = {
                f"{READINGS[kind].scores[0]} by {judge}": 0.0
                for (kind, judge), ids in graded.items()
                if kind != "support" and (outcome["id"] in ids or criteria(kind, sample))
            }
        yield {**outcome, "scores": {**outcome["scores"], **judged}}


def common_criteria(reading: Judgement, sample: Sample) -> list[str]:
    """Return the criteria of a reading that are not the sample's own but were given for all."""
    own = Counter(criteria(reading["kind"], sample))
    return [*(Counter(it["text"] for it in reading.get("items", ())) - own)]


def reading_scores(reading: Judgement) -> dict[str, float]:
    """Return the scores that a reading gives its answer, or none if it could not be read.

    "support" is RAGAS's faithfulness, computed sentence by sentence: the share of claims that the
    passages support. "citation recall" is ALCE's: the share of claims that are supported by the
    passages they cite.
    """
    names, verdicts = READINGS[reading["kind"]][1:]
    claims = [each for each in reading.get("items", ()) if verdicts.get(each["verdict"])]
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

    Each key is the judge, two methods in alphabetical order, and the sample; the verdict is on the
    first method. It does not matter which of the two was compared with the other.
    """
    votes: dict[tuple[str, str, str, str], list[str]] = {}
    for each in judgements:
        if "verdict" in each:
            first, second, verdict = ordered(each["method"], each["against"], each["verdict"])
            votes.setdefault((each["judge"], first, second, each["id"]), []).append(verdict)
    return {key: majority(cast) for key, cast in votes.items()}


def ordered(method: str, against: str, verdict: str) -> tuple[str, str, str]:
    """Return a verdict on two methods as the verdict on the alphabetically first one."""
    if method < against:
        return method, against, verdict
    return against, method, _OPPOSITE.get(verdict, verdict)


def vote_scores(
    judgements: Iterable[Judgement], ours: str, theirs: str
) -> dict[str, dict[str, tuple[float, float]]]:
    """Return two methods' scores by sample, from each judge's votes.

    The answer with more votes scores 1, and the other 0.
    """
    scores: dict[str, dict[str, tuple[float, float]]] = {}
    for (judge, method, against, id_), verdict in verdicts(judgements).items():
        if {method, against} == {ours, theirs}:
            better = "win" if method == ours else "loss"
            pair = float(verdict == better), float(verdict not in {better, "tie"})
            scores.setdefault(f"votes of {judge}", {})[id_] = pair
    return scores


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by their keys, in order."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def majority(votes: Iterable[str]) -> str:
    """Return the verdict with the most votes, or "tie" if none leads."""
    (leading, most), *others = Counter(votes).most_common(2)
    return "tie" if others and others[0][1] == most else leading
