"""The geometry of the plots on an evaluation's page; the templates draw it as SVG.

A plot is 340 units wide, about the width of a phone, so that its text is as large everywhere.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stepcraft.evals.stats import Interval

WIDTH = 340
_SCATTER_HEIGHT = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 38
_ROW, _INDENT, _LABEL_CHARACTERS = 40, 14, 46


@dataclass(frozen=True)
class Value:
    """What a plot shows of one method."""

    number: int
    """The number of the method on the page, from 1; it decides the colour."""
    label: str
    y: Interval
    x: float = 0.0


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Point:
    """A method's place in a plot, with the ends of its interval."""

    number: int
    label: str
    words: str
    x: float
    y: float
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Plot:
    """A plot, ready to be drawn."""

    title: str
    words: str
    """All of it in words."""
    x_name: str
    height: int
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    points: Sequence[Point]
    base: float | None = None
    """Where a line marks that there is no effect."""


class _Axis:
    """Values placed between two ends, with about four ticks at 1, 2 or 5 times a power of ten."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        low, high = min(values), max(values)
        if high - low < 1e-9:
            low, high = low - abs(low) * 0.1 - 0.05, high + abs(high) * 0.1 + 0.05
        power = 10.0 ** math.floor(math.log10((high - low) / 4))
        self.step = next(f * power for f in (1, 2, 5, 10) if f * power >= (high - low) / 4 - 1e-12)
        self.low = math.floor(low / self.step + 1e-9) * self.step
        self.count = math.ceil((high - self.low) / self.step - 1e-9)
        self.first, self.last = first, last

    def at(self, value: float) -> float:
        part = (value - self.low) / (self.count * self.step)
        return round(self.first + part * (self.last - self.first), 1)

    def ticks(self) -> list[Tick]:
        digits = max(0, -math.floor(math.log10(self.step) + 1e-9))
        values = [self.low + number * self.step for number in range(self.count + 1)]
        return [Tick(self.at(value), f"{value + 0.0:,.{digits}f}") for value in values]


def scatter(title: str, x_name: str, values: Sequence[Value]) -> Plot:
    """Plot a quality with its interval against a cost, which begins at 0."""
    bottom = _SCATTER_HEIGHT - _BOTTOM
    across = _Axis([0.0, *(value.x for value in values)], _LEFT, WIDTH - _RIGHT)
    up = _Axis([end for value in values for end in _ends(value.y)], bottom, _TOP)
    points: list[Point] = []
    for value in values:
        x, y, (low, high) = across.at(value.x), up.at(value.y.mean), map(up.at, _ends(value.y))
        words = f"{value.label}: {_words(value.y)} at {value.x:,.1f}"
        points.append(Point(value.number, value.label, words, x, y, x, x, high, low))
    return Plot(
        title,
        f"{title}. " + "; ".join(point.words for point in points),
        x_name,
        _SCATTER_HEIGHT,
        across.ticks(),
        up.ticks(),
        points,
    )


def rows(title: str, x_name: str, values: Sequence[Value], base: float | None = None) -> Plot:
    """Plot a value of each method with its interval, a row each.

    Args:
        title: What the values are.
        x_name: The name of the axis.
        values: The values (`y`).
        base: The value that no effect has.
    """
    ends = [end for value in values for end in _ends(value.y)]
    across = _Axis(ends if base is None else [base, *ends], _INDENT, WIDTH - _RIGHT)
    points: list[Point] = []
    for place, value in enumerate(values):
        y, (low, high) = float(_ROW * place + 32), map(across.at, _ends(value.y))
        label = value.label
        if len(label) > _LABEL_CHARACTERS:
            label = f"{label[: _LABEL_CHARACTERS - 1]}…"
        words = f"{value.label}: {_words(value.y)}"
        points.append(
            Point(value.number, label, words, across.at(value.y.mean), y, low, high, y, y)
        )
    return Plot(
        title,
        f"{title}. " + "; ".join(point.words for point in points),
        x_name,
        _ROW * len(values) + _BOTTOM + 4,
        across.ticks(),
        [],
        points,
        None if base is None else across.at(base),
    )


def _ends(interval: Interval) -> tuple[float, float]:
    if math.isfinite(interval.low):
        return interval.low, interval.high
    return interval.mean, interval.mean


def _words(interval: Interval) -> str:
    low, high = _ends(interval)
    ends = f" ({low:.3f} to {high:.3f})" if low < high else ""
    return f"{interval.mean:.3f}{ends}"
