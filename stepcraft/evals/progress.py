"""Track the progress and usage of work on many samples, and stop it when its budget is used up."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stepcraft.errors import BadInput, RunStopped
from stepcraft.evals.calls import total_tokens
from stepcraft.evals.prices import Prices

Key = tuple[str | int, ...]
"""Identifies a part of the work: its method or judge, then details such as the sample id."""

_SAME_FAILURES = 5
"""The number of parts that must all fail for the same reason before all are assumed to fail."""


@dataclass(frozen=True)
class Budget:
    """The limits at which an evaluation stops, after finishing the samples in progress."""

    calls: int | None = None
    tokens: int | None = None
    """The number of tokens read and written."""
    usd: float | None = None


@dataclass(frozen=True)
class Progress:
    """The progress of the work, and its usage so far."""

    done: int
    failed: int
    total: int
    calls: int = 0
    tokens: int = 0
    usd: float | None = None
    """The cost, or None if a price is unknown."""


class Spending:
    """Tracks the usage of the work against its budget, and which of its parts are done.

    Args:
        budget: The limits at which to stop, or None.
        prices: The prices of tokens; None for those in STEPCRAFT_PRICES.
        models: The models that the work is known to use.
        total: The total number of parts.
        on_progress: Called with the progress after each part.
        what: The word for the parts in error messages, such as "samples".

    Raises:
        BadInput: The budget is in USD, and the price of a model, or of all models, is unknown.
    """

    def __init__(
        self,
        budget: Budget | None,
        prices: Prices | None,
        models: Iterable[str],
        total: int,
        on_progress: Callable[[Progress], object],
        *,
        what: str,
    ) -> None:
        self.what = what
        self.budget = budget or Budget()
        self.prices = prices or Prices.of(None)
        self.on_progress = on_progress
        self.errors: dict[Key, str] = {}
        """The reason for the failure of each finished part, or "" if it succeeded. Unfinished parts
        have no entry.
        """
        self.progress = Progress(0, 0, total, usd=0.0)
        self._working = set[object]()
        """The methods or judges that have succeeded on a part."""
        self._failed = 0
        self._running = 0
        self._stopped = ""
        self._unpriced = ""
        for model in filter(None, models):
            self._note_price(model, self.prices.price(model))
        self._note_price("", self.prices.by_model or None)
        self.check_priced()

    def begin(self) -> bool:
        """Return whether another part may call a model; it counts as one call until it ends."""
        if self._unpriced:
            return False
        progress = self.progress
        for limit, used, unit in (
            (self.budget.calls, progress.calls + self._running, "calls"),
            (self.budget.tokens, progress.tokens, "tokens"),
            (self.budget.usd, progress.usd or 0.0, "USD"),
        ):
            if limit is not None and used >= limit:
                self._stopped = f"the budget of {limit:,} {unit} is used up"
                return False
        self._running += 1
        return True

    def add(self, usage: Mapping[str, Any], model: str, usd: float | None = None) -> float | None:
        """Count usage, and return its cost in USD, or None if it is unknown.

        Args:
            usage: The token counts.
            model: The model to which tokens are attributed if no provider named one.
            usd: The cost if it was recorded.
        """
        usd = self.prices.cost(usage, model) if usd is None else usd
        before = self.progress
        self.progress = replace(
            before,
            calls=before.calls + usage.get("calls", 0),
            tokens=before.tokens + total_tokens(usage),
            usd=None if usd is None or before.usd is None else before.usd + usd,
        )
        used = usage.get("models") or {model: usage}
        is_counted = not usage.get("uncounted")
        names = [name for name in used if is_counted or used[name].get("uncounted")]
        self._note_price(", ".join(names), usd, is_counted=is_counted)
        return usd

    def end(self, usage: Mapping[str, Any], model: str) -> float | None:
        """Count the usage of a part that asked a model, as `add` does."""
        self._running -= 1
        return self.add(usage, model)

    def _note_price(self, model: str, price: object, *, is_counted: bool = True) -> None:
        """Note why the budget cannot be kept, if it depends on an unknown price."""
        if self.budget.usd is None or price is not None or self._unpriced:
            return
        model = model or "a model"
        if is_counted:
            self._unpriced = (
                f"a budget in USD needs the price of every model, and that of {model} is unknown; "
                "name it with --price READ/WRITTEN, in USD per million tokens"
            )
        else:
            self._unpriced = (
                f"a budget in USD needs the tokens of every reply, and {model} reports none; limit "
                "the calls with --max-calls instead"
            )

    def check_priced(self) -> None:
        """Check that all costs so far are known, if the budget depends on them.

        Raises:
            BadInput: A cost is unknown.
        """
        if self._unpriced:
            raise BadInput(self._unpriced)

    def record(self, key: Key, error: str) -> None:
        """Record, once for each part, that it is done, or why it failed."""
        self.errors[key] = error
        if error:
            self._failed += 1
        else:
            self._working.add(key[0])

    def report(self, key: Key, error: str) -> None:
        """Record that a part is done, or why it failed, and report the progress."""
        self.record(key, error)
        self.progress = replace(self.progress, done=len(self.errors), failed=self._failed)
        self.on_progress(self.progress)

    def check_working(self, name: object, *, is_done: bool = False) -> None:
        """Check that a method or judge has not failed on everything.

        Args:
            name: The method or judge.
            is_done: Whether all its parts have finished.

        Raises:
            RunStopped: It has failed on every part, or on the first few for the same reason.
        """
        if name in self._working:
            return
        reasons = [error for (owner, *_), error in self.errors.items() if owner == name]
        is_same = len(reasons) >= _SAME_FAILURES and len({*reasons}) == 1
        if is_done or is_same:
            raise RunStopped(
                f"{name} failed on {'all' if is_done else 'the first'} {len(reasons):,} "
                f"{self.what}: {max(reasons, key=reasons.count).rstrip('.')}. Mend it and start "
                "again; what is finished stays"
            )

    def check_finished(self) -> None:
        """Check that the work was not cut short.

        Raises:
            BadInput: The budget depends on a cost that turned out to be unknown.
            RunStopped: Parts are missing, or a method or judge has failed on every part.
        """
        self.check_priced()
        if len(self.errors) < self.progress.total:
            raise RunStopped(
                f"{self._stopped or 'the rest was cancelled'}: {len(self.errors):,} of "
                f"{self.progress.total:,} {self.what} are done; "
                f"{'raise it and ' * bool(self._stopped)}start the same command again"
            )
        for name in {key[0] for key in self.errors}:
            self.check_working(name, is_done=True)
