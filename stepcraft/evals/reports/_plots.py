"""Lay out the plots of scores against costs for an evaluation's page; templates draw them as SVG.

A plot is 340 units wide, about the width of a phone, so that its text has the same size everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepcraft.evals.reports.tables import interval_text
from stepcraft.evals.stats import Interval

_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 44


@dataclass(frozen=True)
class Value:
    """The data point of one method."""

    number: int
    """The number of the method on the page, from 1, which determines its colour."""
    label: str
    quality: Interval
    cost: float

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the interval, or the mean twice if there is only one sample."""
        quality = self.quality
        is_known = math.isfinite(quality.low)
        return (quality.low, quality.high) if is_known else (quality.mean, quality.mean)

    @property
    def words(self) -> str:
        """The value as text."""
        return f"{self.label}: {interval_text(self.quality)}"


class Axis:
    """A linear axis with about four ticks, at multiples of 1, 2 or 5 times a power of ten."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        low, high = min(values), max(values)
        if high - low < 1e-9:
            low, high = low - 0.1, high + 0.1
        power = 10.0 ** math.floor(math.log10((high - low) / 4))
        step = next(f * power for f in (1, 2, 5, 10) if f * power >= (high - low) / 4 - 1e-12)
        self.low = math.floor(low / step + 1e-9) * step
        self.steps = math.ceil((high - self.low) / step - 1e-9)
        self.step, self.first, self.last = step, first, last

    def at(self, value: float) -> float:
        """Return the position of a value."""
        part = (value - self.low) / (self.steps * self.step)
        return round(self.first + part * (self.last - self.first), 1)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the positions of the ticks with their labels."""
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        values = [self.low + number * self.step for number in range(self.steps + 1)]
        return [(self.at(value), f"{round(value, 9) + 0.0:,.{digits}f}") for value in values]


class Plot:
    """A plot of each method's score against a cost; the cost axis begins at 0."""

    width, height = 340, 240

    def __init__(self, score: str, cost: str, values: Sequence[Value]) -> None:
        self.title = f"{score} against {cost} a sample"
        self.x_name = f"{cost} a sample"
        self.values = values
        self.across = Axis([0.0, *(value.cost for value in values)], _LEFT, self.width - _RIGHT)
        ends = [end for value in values for end in value.ends]
        self.up = Axis(ends, self.height - _BOTTOM, _TOP)
