"""The limits of a run, `max_calls` and `deadline_s`, with one counter and clock for all branches.

They are never saved. A run that is resumed, or forked from an earlier point, starts with the number
of calls counted in its state and with a new deadline, so that time spent waiting for a person does
not count.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from stepcraft.contexts.base import Settings

TOO_LATE = "the run stopped early: its deadline has passed; raise deadline_s for a complete answer"
_EARLY_S = 0.05
"""An event loop's timer may fire up to this many seconds early."""
_LOCK = Lock()


@dataclass
class RunLimits:
    """The call counter and the clock of one run. Thread-safe."""

    max_calls: int | None
    ends_at: float | None
    """The deadline on the monotonic clock."""
    calls: int = 0
    """The number of calls that the run has made."""
    has_reply: bool = False
    """Whether a model has replied, which shows that it does not refuse every call."""

    @classmethod
    def of(cls, settings: Settings, calls: int = 0) -> "RunLimits":
        """Return the limits for a run that starts or resumes now.

        Args:
            settings: The settings of the run.
            calls: The number of calls that the run has already made.
        """
        ends_at = settings.deadline_s and time.monotonic() + settings.deadline_s
        return cls(settings.max_calls, ends_at, calls, has_reply=calls > 0)

    def take_call(self, reserved: int = 0) -> str:
        """Count a call before it is made; return the reason if it is not allowed, or else "".

        Args:
            reserved: The number of calls that later nodes need for the answer.
        """
        with _LOCK:
            if self.max_calls is not None and self.calls + 1 + reserved > self.max_calls:
                return self.too_few_calls()
            if self.seconds_left() == 0:
                return TOO_LATE
            self.calls += 1
            return ""

    def too_few_calls(self) -> str:
        """Return the warning for a run that has no calls left."""
        return (
            f"the run stopped early: max_calls={self.max_calls} was not enough; "
            "raise it for a complete answer"
        )

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline, at least 0, or None without a deadline."""
        return None if self.ends_at is None else max(0.0, self.ends_at - time.monotonic())

    def has_ended(self, error: Exception) -> bool:
        """Return whether an error is a timeout at the deadline."""
        seconds = self.seconds_left()
        return isinstance(error, TimeoutError) and seconds is not None and seconds < _EARLY_S


def limits_of(state: Mapping[str, Any], settings: Settings) -> RunLimits:
    """Return the limits of the run that a state belongs to, or new ones if the run is resumed."""
    usage = state.get("usage")
    return state.get("limits") or RunLimits.of(settings, usage["calls"] if usage else 0)
