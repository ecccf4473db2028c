"""Have chat models judge the answers in an evaluation.

Judgements are appended next to the outputs (`votes.jsonl`) call by call, so that a killed command
resumes where it stopped. Calls are repeated only if they failed or can now be shown more passages.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from stepcraft.concurrency import side_by_side
from stepcraft.errors import BadInput
from stepcraft.evals.directory import (
    Outcome,
    answered,
    is_unanswered,
    read_configuration,
    read_outcomes,
    run_directory,
)
from stepcraft.evals.judge import PASSAGE_TOKENS, Judge, Request, sentences_of
from stepcraft.evals.kinds import KINDS, Kind, criteria
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Key, Progress, Spending
from stepcraft.evals.summary import baseline_of
from stepcraft.evals.votes import VOTES, Judgement, every_judgement, grouped, key_of
from stepcraft.models.resolve import ChatModel
from stepcraft.text.clean import tokens

_Job = tuple[Judge, Request]


async def judge(
    directory: Path,
    models: Sequence[ChatModel | str],
    *,
    against: str | None = None,
    kinds: Sequence[Kind] = KINDS,
    rubric: Sequence[str] = (),
    votes: int = 10,
    passage_tokens: int = PASSAGE_TOKENS,
    concurrency: int = 4,
    budget: Budget | None = None,
    prices: Prices | None = None,
    on_estimate: Callable[[Progress], bool] = lambda _left: True,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> None:
    """Have judges compare every method with a baseline, and grade every answer.

    Judgements that already exist are not requested again unless they failed, or passages were left
    out of them that can now be shown. A run without an answer takes part in votes as an empty
    answer.

    Args:
        directory: The directory of the evaluation.
        models: The judges, or their names. All of them judge a sample before the next one, so that
            they can still be compared if the budget runs out.
        against: The method to compare the others with, or None for the first.
        kinds: The kinds of judgement to request: votes on pairs, readings on whether the passages
            support each sentence and, for samples that have them, readings on the facts, the rubric
            and the right answer.
        rubric: Criteria for every sample, in addition to its own.
        votes: The number of votes on a pair, half of them in each order.
        passage_tokens: The maximum total length of the passages shown to a judge with an answer, in
            tokens.
        concurrency: The maximum number of concurrent calls.
        budget: The limits at which to stop; these judges' earlier calls count towards them.
        prices: The prices of tokens; None for those in STEPCRAFT_PRICES.
        on_estimate: Called before any call is made, with the number of remaining calls and their
            estimated input, not including replies; if it returns False, no call is made.
        on_progress: Called with the progress after each call.

    Raises:
        BadInput: There is no evaluation or it is running, a judge, a method or `votes` is invalid,
            or the budget depends on an unknown price.
        RunStopped: The budget is used up, a judge fails on its first five calls for the same reason
            or on all calls, or the directory is not writable.
    """
    if "vote" in kinds and (votes < 2 or votes % 2):
        raise BadInput(f"{votes} votes cannot be half in each order; give 2, 4 or more")
    if not all(map(str.strip, rubric)):
        raise BadInput("a criterion of the rubric is empty; say what a good answer does")
    judges = {each.name: each for each in (Judge(model, passage_tokens) for model in models)}
    configuration = read_configuration(directory)
    opponent = baseline_of(configuration["methods"], against)
    with run_directory(directory, {**configuration, "methods": {}}, VOTES) as [file]:
        jobs = {
            key_of(judge.judgement(job)): (judge, job)
            for job in _requests(directory, opponent, votes, rubric)
            if job.kind in kinds
            for judge in judges.values()
        }
        spending = Spending(budget, prices, judges, len(jobs), on_progress, what="calls")
        _count(directory, jobs, spending)
        spending.check_priced()
        left = [key for key in jobs if key not in spending.errors]
        if not on_estimate(_estimate([jobs[key] for key in left], spending.prices)):
            return

        async def finish(key: Key) -> None:
            if spending.begin():
                judge, request = jobs[key]
                judgement = await judge.answer(request)
                file.add(judgement)
                spending.end(judgement["usage"], judge.name)
                spending.report(key, judgement["error"])
                if judgement["error"]:
                    spending.check_working(judge.name)

        await side_by_side(map(finish, left), concurrency)
        spending.check_finished()


def _count(directory: Path, jobs: Mapping[Key, _Job], spending: Spending) -> None:
    """Count the judges' earlier calls, and record those that need not be repeated."""
    names = {judge.name for judge, _ in jobs.values()}
    done: dict[Key, bool] = {}  # by the last judgement of the present answers
    for earlier in every_judgement(directory):
        if earlier["judge"] in names:
            spending.add(earlier["usage"], earlier["judge"])
        if job := jobs.get(key := key_of(earlier)):
            basis = job[1].basis
            if earlier.get("basis", basis) == basis:
                done[key] = not earlier["error"] and _is_complete(earlier, *job)
    for key in filter(done.get, done):
        spending.record(key, "")


def _is_complete(earlier: Judgement, judge: Judge, request: Request) -> bool:
    """Return whether an earlier judgement covers the requested items, or was unreadable.

    It is not complete if the judge would now be shown more passages.
    """
    left_out = earlier.get("left_out")
    if left_out and left_out > judge.left_out(request.outcome["output"]):
        return False
    items = [item["text"] for item in earlier.get("items", ())]
    return not items or items == [text for text, _ in request.items]


def _estimate(left: Sequence[_Job], prices: Prices) -> Progress:
    read = Counter[str]()
    for judge, request in left:
        read[judge.name] += sum(tokens(message.text) for message in judge.messages(request))
    usd = prices.cost({"models": {name: {"input_tokens": n} for name, n in read.items()}}, "")
    return Progress(0, 0, len(left), calls=len(left), tokens=read.total(), usd=usd)


def _requests(
    directory: Path, opponent: str, votes: int, rubric: Sequence[str]
) -> Iterator[Request]:
    """Yield the requests to the judges in an evaluation, output by output."""
    for group in grouped(read_outcomes(directory), itemgetter("id")).values():
        outcomes = {outcome["method"]: outcome for outcome in group}
        theirs = outcomes.get(opponent)
        for outcome in outcomes.values():
            if theirs and theirs is not outcome and _is_votable(outcome, theirs):
                for number in range(votes):
                    yield Request("vote", outcome, against=theirs, number=number)
            for kind in KINDS[1:] if answered(outcome) else ():
                if items := _items(kind, outcome, rubric):
                    yield Request(kind, outcome, items)


def _is_votable(*pair: Outcome) -> bool:
    """Return whether at least one of two outcomes has an answer, and neither is a failed run."""
    return any(map(answered, pair)) and all(answered(it) or is_unanswered(it) for it in pair)


def _items(kind: Kind, outcome: Outcome, rubric: Sequence[str]) -> list[tuple[str, set[int]]]:
    """Return the sentences, facts or criteria on which a judge gives verdicts."""
    if kind == "support":
        return sentences_of(outcome["output"]) if outcome["output"].get("evidence") else []
    texts = [*criteria(kind, outcome["sample"]), *(rubric if kind == "rubric" else ())]
    return [(text, set[int]()) for text in texts]
