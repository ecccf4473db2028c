"""Have an evaluation judged.

What a judge says is appended beside the outputs (`votes.jsonl`) call by call, so that a killed
command goes on from there and asks nothing twice; calls that failed are made again.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from langchain_core.runnables import Runnable

from stepcraft.errors import BadInput
from stepcraft.evals.directory import Outcome, read_configuration, read_outcomes, run_directory
from stepcraft.evals.judge import PASSAGE_TOKENS, Judge, sentences_of
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Key, Progress, Spending, side_by_side, unpriced
from stepcraft.evals.summary import cheapest_of
from stepcraft.evals.votes import VOTES, Judgement, every_judgement, key_of
from stepcraft.models.resolve import ChatModel

_Job = Callable[[], Awaitable[Judgement]]


async def judge(
    directory: Path,
    models: ChatModel | str | Sequence[ChatModel | str],
    *,
    votes: int = 10,
    passage_tokens: int = PASSAGE_TOKENS,
    concurrency: int = 4,
    budget: Budget | None = None,
    prices: Prices | None = None,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> None:
    """Have every method compared with the cheapest, and every answer with its passages.

    What a judge said already is not asked again, except where it failed. Where another method is
    the cheapest by now, the one that earlier votes compare with stays.

    Args:
        directory: The directory of the evaluation.
        models: The judge or several, or their names. Several are asked sample by sample, so that a
            budget that is used up leaves samples on which they can be compared.
        votes: The number of votes on a pair, half of them in each order.
        passage_tokens: How many tokens of passages a judge is shown with an answer.
        concurrency: The most calls that run at the same time.
        budget: When to stop; what these judges were asked before counts, too.
        prices: What tokens cost; None for the prices in STEPCRAFT_PRICES.
        on_progress: Is told of the progress after each call.

    Raises:
        BadInput: There is no evaluation, it is running, a judge or `votes` cannot be used, or the
            budget needs a price that is unknown.
        RunStopped: The budget is used up, a judge refuses every call, or the directory cannot be
            written.
    """
    if votes < 2 or votes % 2:
        raise BadInput(f"{votes} votes cannot be half in each order; give an even number")
    budget, prices = budget or Budget(), Prices.of(None) if prices is None else prices
    judges = _judges(models, passage_tokens)
    for name in judges:
        if budget.usd is not None and prices.price(name) is None:
            raise BadInput(unpriced(name))
    with run_directory(directory, read_configuration(directory), VOTES) as [file]:
        jobs = dict(_jobs(directory, list(judges.values()), votes))
        spending = Spending(budget, len(jobs), on_progress)

        def usd(judgement: Judgement) -> float | None:
            return prices.cost(judgement["usage"], judgement["judge"])

        for judgement in every_judgement(directory):
            if judgement["judge"] in judges:
                spending.add(judgement["usage"], usd(judgement))
            if key_of(judgement) in jobs:
                spending.failed[key_of(judgement)] = bool(judgement["error"])

        async def finish(key: Key, job: _Job) -> None:
            if spending.begin():
                judgement = await job()
                file.add(judgement)
                spending.end(judgement["usage"], usd(judgement))
                spending.report(key, failed=bool(judgement["error"]))

        left = [partial(finish, *job) for job in jobs.items() if spending.failed.get(job[0], True)]
        await side_by_side(left, concurrency)
        spending.check_finished("calls to judges", retried=True)


def _judges(
    models: ChatModel | str | Sequence[ChatModel | str], passage_tokens: int
) -> dict[str, Judge]:
    several = [models] if isinstance(models, str | Runnable) else models
    judges = {each.name: each for each in (Judge(model, passage_tokens) for model in several)}
    if not judges or len(judges) < len(several):
        raise BadInput(
            f"the judges {', '.join(judges) or '(none)'} are not different; name each once"
        )
    return judges


def _jobs(directory: Path, judges: Sequence[Judge], votes: int) -> Iterator[tuple[Key, _Job]]:
    """Yield the calls that an evaluation needs, output by output."""
    by_method: dict[str, dict[str, Outcome]] = {}
    for outcome in read_outcomes(directory):
        if not outcome["error"]:
            by_method.setdefault(outcome["method"], {})[outcome["id"]] = outcome
    if not by_method:
        return
    earlier = (each["against"] for each in every_judgement(directory) if each["kind"] == "vote")
    opponent = next(earlier, None) or cheapest_of(
        {name: list(outcomes.values()) for name, outcomes in by_method.items()}
    )
    others = by_method.get(opponent, {})
    for method, outcomes in by_method.items():
        for id_, outcome in outcomes.items():
            for judge in judges:
                if method != opponent and id_ in others:
                    for number in range(votes):
                        key = ("vote", judge.name, method, opponent, id_, number)
                        yield key, partial(judge.vote, outcome, others[id_], number)
                if outcome["output"].get("evidence") and sentences_of(outcome["output"]):
                    key = ("support", judge.name, method, "", id_, 0)
                    yield key, partial(judge.read, outcome)
