"""The plots on an evaluation's page; the templates draw them as SVG.

A plot is 340 units wide, about the width of a phone, so that its text is as large everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepcraft.evals.stats import Interval

WIDTH = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 44
_SCATTER, _ROW, _INDENT = 240, 40, 14


@dataclass(frozen=True)
class Value:
    """What a plot shows of one method."""

    number: int
    """The number of the method on the page, from 1; it decides the colour."""
    label: str
    quality: Interval
    cost: float = 0.0

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval; of a single sample the mean."""
        quality = self.quality
        is_known = math.isfinite(quality.low)
        return (quality.low, quality.high) if is_known else (quality.mean, quality.mean)

    @property
    def words(self) -> str:
        """The value in words."""
        return f"{self.label}: {self.quality.mean:.3f} ({self.ends[0]:.3f} to {self.ends[1]:.3f})"


class Axis:
    """Values placed between two ends, with about four ticks at 1, 2 or 5 times a power of ten."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        low, high = min(values), max(values)
        if high - low < 1e-9:
            low, high = low - abs(low) * 0.1 - 0.05, high + abs(high) * 0.1 + 0.05
        power = 10.0 ** math.floor(math.log10((high - low) / 4))
        step = next(f * power for f in (1, 2, 5, 10) if f * power >= (high - low) / 4 - 1e-12)
        self.low = math.floor(low / step + 1e-9) * step
        self.steps = math.ceil((high - self.low) / step - 1e-9)
        self.step, self.first, self.last = step, first, last

    def at(self, value: float) -> float:
        """Return the place of a value."""
        part = (value - self.low) / (self.steps * self.step)
        return round(self.first + part * (self.last - self.first), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the places of the ticks with their texts."""
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        values = [self.low + number * self.step for number in range(self.steps + 1)]
        return [(self.at(value), f"{round(value, 9) + 0.0:,.{digits}f}") for value in values]


@dataclass(frozen=True)
class Plot:
    """A plot of qualities with their intervals: against costs, or a row for each method."""

    title: str
    x_name: str
    values: Sequence[Value]
    height: int
    across: Axis
    up: Axis | None = None
    """The axis of the qualities, where the costs are across."""
    has_base: bool = False
    """Whether a line marks 0, which is no effect."""


def scatter(title: str, x_name: str, values: Sequence[Value]) -> Plot:
    """Plot a quality against a cost, which begins at 0."""
    across = Axis([0.0, *(value.cost for value in values)], _LEFT, WIDTH - _RIGHT)
    up = Axis([end for value in values for end in value.ends], _SCATTER - _BOTTOM, _TOP)
    return Plot(title, x_name, values, _SCATTER, across, up)


def rows(title: str, x_name: str, values: Sequence[Value], *, has_base: bool = False) -> Plot:
    """Plot a quality of each method, a row each."""
    ends = [end for value in values for end in value.ends]
    across = Axis([0.0, *ends] if has_base else ends, _INDENT, WIDTH - _RIGHT)
    return Plot(title, x_name, values, _ROW * len(values) + 48, across, has_base=has_base)
