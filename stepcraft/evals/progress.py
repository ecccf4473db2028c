"""How far an evaluation is, what it used, how long it takes yet, and when its budget ends it."""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Generic, NotRequired, TypeVar

from typing_extensions import TypedDict

from stepcraft.errors import BadInput, RunStopped

_LAST = 50
"""How many of a method's last samples the time left is told by."""


class Finished(TypedDict):
    """What is counted of a finished sample."""

    method: str
    id: str
    output: dict[str, Any]
    """Empty where it failed."""
    error: str
    """Why it failed, "" where it did not."""
    usage: dict[str, Any]
    seconds: float
    models: NotRequired[list[str]]
    """The models as their providers named them."""
    usd: NotRequired[float | None]
    """What it cost; None where a price is unknown."""


F = TypeVar("F", bound=Finished)


@dataclass(frozen=True)
class Budget:
    """When an evaluation or a build stops; samples or documents that are running are finished."""

    calls: int | None = None
    """Model calls of all of them together."""
    tokens: int | None = None
    """Tokens read and written by all of them together."""
    usd: float | None = None
    """The cost of all of them together."""


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is."""

    done: int
    failed: int
    total: int
    seconds: float
    calls: int
    tokens: int
    running: int = 0
    rate: float = 0.0
    """Samples a second, of those that this process finished."""
    usd: float | None = None
    """The cost so far; None where a price is unknown."""
    seconds_left: float | None = None
    """By the median time of a method's last samples; None before the first."""


def tokens_of(outcome: Finished) -> int:
    """The tokens that a sample read and wrote."""
    return _tokens(outcome["usage"])


def _tokens(usage: Mapping[str, Any]) -> int:
    return int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))


class Tally(Generic[F]):
    """What is finished of an evaluation, and why no further sample is begun.

    Args:
        counts: The number of samples of each method.
        slots: The most samples that run at the same time.
        budget: When to stop.
        cost: What an outcome cost in USD; None where a price is unknown.
        tell: Is told of the progress.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        *,
        slots: int,
        budget: Budget,
        cost: Callable[[F], float | None],
        tell: Callable[[Progress], object],
    ) -> None:
        self.total = sum(counts.values())
        self.slots = slots
        self.budget = budget
        self.cost = cost
        self.tell = tell
        self.began = time.monotonic()
        self.stopped = ""
        self.failed: dict[tuple[str, str], bool] = {}
        """Whether a method failed on a sample; nothing for what is not finished."""
        self.unscored: dict[tuple[str, str], F] = {}
        """The outcomes that have an output whose scoring failed."""
        self.failures = self.calls = self.tokens = 0
        self.usd: float | None = 0.0
        self.running = self.asking = 0
        """How many samples are begun and not ended, and for how many of these a model may be asked."""
        self.refused = 0
        """Samples that the budget left out."""
        self.finished = 0
        self.remaining = dict(counts)
        """How many samples each method has left."""
        self.last_seconds = {name: deque[float](maxlen=_LAST) for name in counts}

    def count(self, outcome: F) -> None:
        """Count an outcome, also one that an earlier process wrote."""
        key, known = (outcome["method"], outcome["id"]), _known(outcome)
        if key not in self.failed:
            self.remaining[key[0]] -= 1
        self.failures += bool(outcome["error"]) - self.failed.get(key, False)
        self.failed[key] = bool(outcome["error"])
        self.last_seconds[key[0]].append(outcome["seconds"])
        if not self.unscored.pop(key, None):
            usd = known.get("usd")
            self.add(outcome["usage"], self.cost(outcome) if usd is None else usd)
        if outcome["error"] and outcome["output"]:
            self.unscored[key] = outcome

    def add(self, usage: Mapping[str, Any], usd: float | None) -> None:
        """Count what was used."""
        self.calls += int(usage.get("calls", 0))
        self.tokens += _tokens(usage)
        self.usd = None if usd is None or self.usd is None else self.usd + usd

    def begin(self, *, is_free: bool = False) -> bool:
        """Whether another sample may be begun, which counts it; one that asks no model may be after the budget is used up."""
        if not is_free and not self.asks():
            return False
        self.running += 1
        self.tell(self.progress())
        return True

    def asks(self) -> bool:
        """Whether a model may be asked for a sample; until the sample ends, a call of it is taken as used."""
        for most, used, unit in (
            (self.budget.calls, self.calls + self.asking, "calls"),
            (self.budget.tokens, self.tokens, "tokens"),
            (self.budget.usd, self.usd or 0.0, "USD"),
        ):
            if most is not None and used >= most:
                self.stopped = f"the budget of {most:,} {unit} is used up"
                self.refused += 1
                return False
        self.asking += 1
        return True

    def end(self, outcome: F, *, is_free: bool = False) -> None:
        """Count an outcome of this process.

        Args:
            outcome: The outcome.
            is_free: Whether no model was to be asked for it.

        Raises:
            BadInput: The budget is in USD, and a price is unknown.
        """
        self.asking -= not is_free
        self.running -= 1
        self.finished += 1
        self.count(outcome)
        self.tell(self.progress())
        if self.budget.usd is not None and self.usd is None:
            raise BadInput(
                unpriced(outcome["method"], ", ".join(_known(outcome).get("models") or []))
            )

    def check_finished(self, done: int, what: str) -> None:
        """Check that nothing was left out.

        Args:
            done: How many are done.
            what: What is counted, in the plural.

        Raises:
            RunStopped: The budget is used up.
        """
        if self.stopped:
            raise RunStopped(
                f"{self.stopped}: {done:,} of {self.total:,} {what} are done; raise it and start the same command again"
            )

    def progress(self) -> Progress:
        """How far it is now."""
        seconds = time.monotonic() - self.began
        return Progress(
            done=len(self.failed),
            failed=self.failures,
            total=self.total,
            seconds=seconds,
            calls=self.calls,
            tokens=self.tokens,
            running=self.running,
            rate=self.finished / seconds if seconds else 0.0,
            usd=self.usd,
            seconds_left=self._seconds_left(),
        )

    def _seconds_left(self) -> float | None:
        known = {name: median(seconds) for name, seconds in self.last_seconds.items() if seconds}
        if not known:
            return None
        usual = median(known.values())
        work = sum(known.get(name, usual) * count for name, count in self.remaining.items())
        return work / max(1, min(self.slots, sum(self.remaining.values())))


def _known(outcome: Finished) -> Finished:
    """The outcome as what is counted of it: of a type variable mypy does not know the optional keys."""
    return outcome


def unpriced(method: str, model: str) -> str:
    """Why a budget in USD cannot be kept."""
    return (
        f"a budget in USD needs the price of every model, and that of {model or 'the model'} of {method} is unknown; name "
        "it with --price READ/WRITTEN, in USD per million tokens"
    )
