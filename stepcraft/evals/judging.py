"""Have an evaluation judged, and a judge compared with sentences that were marked by hand.

What a judge says is appended beside the outputs (`votes.jsonl`) call by call, so that a killed command goes on from
there and asks nothing twice; calls that failed are made again.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from itertools import product
from pathlib import Path

from langchain_core.language_models import BaseChatModel

from stepcraft.errors import BadInput, RunStopped
from stepcraft.evals.directory import Outcome, RunDirectory, read_configuration, read_outcomes
from stepcraft.evals.evaluate import side_by_side
from stepcraft.evals.judge import PASSAGE_TOKENS, Judge, MarkedPassage, sentences_of
from stepcraft.evals.prices import Prices
from stepcraft.evals.progress import Budget, Progress, unpriced
from stepcraft.evals.summary import cheapest_of
from stepcraft.evals.votes import (
    VOTES,
    Agreement,
    Judgement,
    Key,
    agreements,
    every_judgement,
    key_of,
    read_judgements,
)
from stepcraft.evidence import Evidence
from stepcraft.journal import LineFile
from stepcraft.memory.procedure import Procedure
from stepcraft.records import records


async def judge(
    directory: Path,
    models: BaseChatModel | str | Sequence[BaseChatModel | str],
    *,
    votes: int = 10,
    passage_tokens: int = PASSAGE_TOKENS,
    concurrency: int = 4,
    budget: Budget | None = None,
    prices: Prices | None = None,
    calibrated: bool = False,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> None:
    """Have an evaluation judged: every method against the cheapest one, and every answer against its passages.

    What a judge said already is not asked again, except where it failed. Where another method is the cheapest by now,
    the one that earlier votes compare with stays.

    Args:
        directory: The directory of the evaluation.
        models: The judge or several, or their names. Several are asked sample by sample, so that a budget that is used
            up leaves samples on which they can be compared.
        votes: The number of votes on a pair, half of them in each order.
        passage_tokens: How many tokens of passages a judge is shown with an answer; longer ones are shortened.
        concurrency: The most calls that run at the same time.
        budget: When to stop; what these judges were asked before counts, too.
        prices: What the tokens of the judges cost; by default those of `STEPCRAFT_PRICES`.
        calibrated: Whether the judges read the sentences that are marked by hand, too.
        on_progress: Is told of the progress after each call.

    Raises:
        BadInput: There is no evaluation, it is running, a judge or `votes` cannot be used, or the budget needs a price
            that is unknown.
        RunStopped: The budget is used up, a judge refuses every call, or the directory cannot be written.
    """
    if votes < 2 or votes % 2:
        raise BadInput(f"{votes} votes cannot be half in each order; give an even number")
    named = [models] if isinstance(models, str | BaseChatModel) else models
    judges = {one.name: one for one in (Judge(model, passage_tokens) for model in named)}
    if not judges or len(judges) < len(named):
        raise BadInput(
            f"the judges {', '.join(judges) or '(none)'} cannot be compared; name each judge once"
        )
    budget, prices = budget or Budget(), Prices.of(None) if prices is None else prices
    for name in judges if budget.usd is not None else ():
        if prices.price(name) is None:
            raise BadInput(unpriced("the judges", name))
    configuration = read_configuration(directory)
    with RunDirectory(directory, configuration), LineFile(directory / VOTES) as lines:
        outcomes = {(one["method"], one["id"]): one for one in read_outcomes(directory)}
        judgements = read_judgements(directory)
        opponent = _opponent(outcomes.values(), judgements)
        jobs = list(_jobs(list(judges.values()), list(outcomes.values()), opponent, votes))
        if calibrated:
            jobs += [job for asked in judges.values() for job in _marked_jobs(asked)]
        known = {key_of(one) for one in judgements if not one["error"]}
        left = [job for key, job in jobs if key not in known]
        before = [one for one in every_judgement(directory) if one["judge"] in judges]
        run = _Run(len(jobs), len(jobs) - len(left), before, budget, prices, tell=on_progress)

        async def one(job: Callable[[], Awaitable[Judgement]]) -> None:
            if run.begin():
                judgement = await job()
                lines.add(judgement)
                run.add(judgement)

        await side_by_side([partial(one, job) for job in left], concurrency)
        if run.stopped:
            raise RunStopped(
                f"{run.stopped}: {run.done:,} of {run.total:,} calls to judges are done; raise it and start the same "
                "command again"
            )


async def calibrate(model: BaseChatModel | str, *, concurrency: int = 4) -> Agreement:
    """How far a judge agrees with 50 sentences that were marked by hand, in a call for each of their ten passages.

    Raises:
        BadInput: The judge cannot be used.
        RunStopped: The judge refuses every call.
    """
    made: list[Judgement] = []

    async def one(job: Callable[[], Awaitable[Judgement]]) -> None:
        made.append(await job())

    await side_by_side([partial(one, job) for _, job in _marked_jobs(Judge(model))], concurrency)
    return agreements(made)[0]


_Job = tuple[Key, Callable[[], Awaitable[Judgement]]]


def _opponent(outcomes: Iterable[Outcome], judgements: Iterable[Judgement]) -> str | None:
    """The method that the others are compared with: the one of earlier votes, which are not asked again, or the cheapest."""
    votes = (one["against"] for one in judgements if one["kind"] == "vote")
    return next(votes, None) or cheapest_of(outcomes)


def _jobs(
    judges: Sequence[Judge], outcomes: Sequence[Outcome], opponent: str | None, votes: int
) -> Iterator[_Job]:
    """The calls that an evaluation needs, output by output."""
    done = [one for one in outcomes if not one["error"]]
    others = {one["id"]: one for one in done if one["method"] == opponent}
    for one, asked in product(done, judges):
        other = others.get(one["id"])
        if other and one["method"] != opponent:
            for number in range(votes):
                key = ("vote", asked.name, one["method"], other["method"], one["id"], number)
                yield key, partial(asked.vote, one["sample"], one, other, number)
        if one["output"].get("evidence") and sentences_of(one["output"])[0]:
            yield ("support", asked.name, one["method"], "", one["id"], 0), partial(asked.read, one)


def _marked_jobs(asked: Judge) -> Iterator[_Job]:
    for passage in marked_passages():
        key = ("agreement", asked.name, "", "", passage.evidence["id"], 0)
        yield key, partial(asked.read_marked, passage)


class _Run:
    """Counts what is done, tells it, and says when the budget is used up."""

    def __init__(
        self,
        total: int,
        done: int,
        before: Sequence[Judgement],
        budget: Budget,
        prices: Prices,
        *,
        tell: Callable[[Progress], object],
    ) -> None:
        self.total, self.done, self.budget, self.prices, self.tell = (
            total,
            done,
            budget,
            prices,
            tell,
        )
        self.known = done
        self.failed = self.running = self.calls = self.tokens = 0
        self.stopped = ""
        self.spent_calls = sum(int(one["usage"].get("calls", 0)) for one in before)
        self.spent_tokens = sum(map(_tokens, before))
        self.usd = 0.0
        self.spent_usd = sum(map(self._cost, before))
        self.began = time.monotonic()

    def begin(self) -> bool:
        """Whether another call may be made; it counts as running then."""
        for name, most, used in (
            ("calls", self.budget.calls, self.spent_calls + self.calls + self.running),
            ("tokens", self.budget.tokens, self.spent_tokens + self.tokens),
            ("USD", self.budget.usd, self.spent_usd + self.usd),
        ):
            if most is not None and used >= most:
                self.stopped = f"the budget of {most:,} {name} is used up"
                return False
        self.running += 1
        return True

    def add(self, judgement: Judgement) -> None:
        self.running -= 1
        self.done += 1
        self.failed += bool(judgement["error"])
        self.calls += int(judgement["usage"].get("calls", 0))
        self.tokens += _tokens(judgement)
        self.usd += self._cost(judgement)
        seconds = time.monotonic() - self.began
        rate = (self.done - self.known) / seconds if seconds else 0.0
        self.tell(
            Progress(
                self.done,
                self.failed,
                self.total,
                seconds,
                self.calls,
                self.tokens,
                self.running,
                rate,
                usd=self.usd or None,
                seconds_left=(self.total - self.done) / rate if rate else None,
            )
        )

    def _cost(self, judgement: Judgement) -> float:
        return self.prices.cost(judgement["usage"], lambda _node: judgement["judge"]) or 0.0


def _tokens(judgement: Judgement) -> int:
    usage = judgement["usage"]
    return int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))


def marked_passages() -> list[MarkedPassage]:
    """The ten passages with the 50 sentences that ship as data."""
    bundled = Path(str(files("stepcraft.memory") / "lgstep.jsonl"))
    procedures = {one.values["id"]: one.values for one in records(bundled) if one.values}
    marked: dict[str, list[tuple[str, bool]]] = {}
    for one in records(Path(str(files("stepcraft.evals") / "data" / "marked.jsonl"))):
        values = one.values or {}
        marked.setdefault(values["passage"], []).append((values["sentence"], values["borne_out"]))
    found: list[MarkedPassage] = []
    for id_, sentences in marked.items():
        fields = procedures[id_]
        text = Procedure(
            input=fields["input"], output=fields["output"], steps=fields["steps"]
        ).text()
        evidence = Evidence(
            id=id_, title=fields["output"], text=text, source=fields["source"], score=1.0
        )
        unsupported = tuple(
            number for number, (_, borne_out) in enumerate(sentences, 1) if not borne_out
        )
        found.append(MarkedPassage(evidence, tuple(text for text, _ in sentences), unsupported))
    return found
