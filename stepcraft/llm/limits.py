"""The limits of a run: `max_calls` and `deadline_s`, in one counter that its branches share.

A counter lives in the process. Where a run is resumed in another one, it begins with the calls in
the state's `usage`, and the deadline counts from the resumption: time that waited for a person does
not count.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from stepcraft.contexts.base import Settings

_MOST_RUNS = 10_000
"""Counters that are kept; the least recently used is dropped first, and seeded anew where its run
goes on."""


class RunLimits:
    """The calls of one run and its clock. Thread-safe.

    Args:
        calls: The calls that the run has made before.
    """

    def __init__(self, calls: int = 0) -> None:
        self.calls = calls
        self.answered = bool(calls)
        """Whether a model has replied, so that it does not refuse every call."""
        self._started = time.monotonic()
        self._lock = Lock()

    def take_call(self, settings: Settings, keep_back: int = 0) -> str:
        """Count a call that is about to be made; return why it may not be made, "" if it may.

        Args:
            settings: The settings of the run.
            keep_back: Calls that are left to later nodes, which the answer needs.
        """
        with self._lock:
            if settings.max_calls is not None and self.calls + 1 + keep_back > settings.max_calls:
                return (
                    f"the run stopped early: max_calls={settings.max_calls} was not enough; "
                    "raise it for a complete answer"
                )
            if self.seconds_left(settings) == 0:
                return too_late(settings)
            self.calls += 1
            return ""

    def seconds_left(self, settings: Settings) -> float | None:
        """Return the seconds until the deadline, not below 0; None without one."""
        if settings.deadline_s is None:
            return None
        return max(0.0, self._started + settings.deadline_s - time.monotonic())


def too_late(settings: Settings) -> str:
    """Return the warning of a run whose deadline has passed."""
    return (
        f"the run stopped early: the deadline of {settings.deadline_s or 0:g} s has passed; "
        "raise deadline_s for a complete answer"
    )


_runs: OrderedDict[str, RunLimits] = OrderedDict()
_lock = Lock()


def limits_of(state: Mapping[str, Any]) -> RunLimits:
    """Return the counter of the run that a state belongs to."""
    with _lock:
        limits = _runs.pop(state["run"], None) or RunLimits(
            (state.get("usage") or {"calls": 0})["calls"]
        )
        _runs[state["run"]] = limits
        if len(_runs) > _MOST_RUNS:
            _runs.popitem(last=False)
        return limits


def forget(state: Mapping[str, Any]) -> None:
    """Drop the counter of a run that ends, or that waits for a person."""
    with _lock:
        _runs.pop(state["run"], None)
