"""The geometry of the plots on an evaluation's page; the templates draw it as SVG.

A plot is 340 units wide, which is about the width of a phone, so that its text is as large everywhere.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepcraft.evals.stats import Interval

WIDTH = 340
_SCATTER_HEIGHT = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 12, 10, 38
_ROW = 40
_INDENT = 14
_LABEL = 46
"""How many characters of a name stand above its row."""


@dataclass(frozen=True)
class Value:
    """What a plot shows of one method."""

    number: int
    """The number of the method on the page, from 1; it decides the colour."""
    label: str
    y: Interval
    x: Interval | None = None


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis."""

    at: float
    text: str


@dataclass(frozen=True)
class Point:
    """A method's place in a plot, with the ends of its intervals."""

    number: int
    label: str
    told: str
    """The values in words."""
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
    told: str
    """All of it in words."""
    x_name: str
    height: int
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    points: Sequence[Point]
    base: float | None = None
    """Where a line marks what there is without an effect."""


def scatter(title: str, x_name: str, values: Sequence[Value]) -> Plot:
    """Plot a quality against a cost, both with intervals; the cost begins at 0."""
    shown = [(one, one.x) for one in values if one.x is not None]
    x_range = _range([0.0, *(end for _, x in shown for end in _ends(x))])
    y_range = _range([end for one, _ in shown for end in _ends(one.y)])
    bottom = _SCATTER_HEIGHT - _BOTTOM

    def across(value: float) -> float:
        return _placed(value, x_range, _LEFT, WIDTH - _RIGHT)

    def up(value: float) -> float:
        return _placed(value, y_range, bottom, _TOP)

    points = [
        Point(
            number=one.number,
            label=one.label,
            told=f"{one.label}: {_told(one.y)} at {_told(x)}",
            x=across(x.mean),
            y=up(one.y.mean),
            left=across(_ends(x)[0]),
            right=across(_ends(x)[1]),
            top=up(_ends(one.y)[1]),
            bottom=up(_ends(one.y)[0]),
        )
        for one, x in shown
    ]
    return Plot(
        title=title,
        told=f"{title}. " + "; ".join(point.told for point in points),
        x_name=x_name,
        height=_SCATTER_HEIGHT,
        x_ticks=[Tick(across(at), text) for at, text in _ticks(x_range)],
        y_ticks=[Tick(up(at), text) for at, text in _ticks(y_range)],
        points=points,
    )


def rows(title: str, x_name: str, values: Sequence[Value], base: float | None = None) -> Plot:
    """Plot a value of each method with its interval, a row each.

    Args:
        title: What the values are.
        x_name: The name of the axis.
        values: The values (`y`).
        base: The value that no effect has.
    """
    known = [] if base is None else [base]
    x_range = _range([*known, *(end for one in values for end in _ends(one.y))])

    def across(value: float) -> float:
        return _placed(value, x_range, _INDENT, WIDTH - _RIGHT)

    points: list[Point] = []
    for place, one in enumerate(values):
        low, high = _ends(one.y)
        y = float(_ROW * place + 32)
        label = one.label if len(one.label) <= _LABEL else f"{one.label[: _LABEL - 1]}…"
        told = f"{one.label}: {_told(one.y)}"
        points.append(
            Point(one.number, label, told, across(one.y.mean), y, across(low), across(high), y, y)
        )
    return Plot(
        title=title,
        told=f"{title}. " + "; ".join(point.told for point in points),
        x_name=x_name,
        height=_ROW * len(values) + _BOTTOM + 4,
        x_ticks=[Tick(across(at), text) for at, text in _ticks(x_range)],
        y_ticks=[],
        points=points,
        base=None if base is None else across(base),
    )


def _ends(one: Interval) -> tuple[float, float]:
    """The ends of an interval; of a single sample there are none."""
    return (one.low, one.high) if math.isfinite(one.low) else (one.mean, one.mean)


def _range(values: Sequence[float]) -> tuple[float, float]:
    """The range of an axis, from one tick to another."""
    low, high = min(values), max(values)
    if high - low < 1e-9:
        low, high = low - abs(low) * 0.1 - 0.05, high + abs(high) * 0.1 + 0.05
    step = _step(high - low)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _step(width: float) -> float:
    """The distance of about four ticks: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width / 4))
    return power * min(
        (factor for factor in (1, 2, 5, 10) if factor * power >= width / 4 - 1e-12), default=10
    )


def _ticks(ends: tuple[float, float]) -> Iterator[tuple[float, str]]:
    low, high = ends
    step = _step(high - low)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    for number in range(round((high - low) / step) + 1):
        value = low + number * step
        yield value, f"{value if abs(value) > step / 1e6 else 0.0:,.{digits}f}"


def _placed(value: float, ends: tuple[float, float], first: float, last: float) -> float:
    return round(first + (value - ends[0]) / (ends[1] - ends[0]) * (last - first), 1)


def _told(one: Interval) -> str:
    digits = 3 if abs(one.mean) < 10 else 0
    low, high = _ends(one)
    mean = f"{one.mean:,.{digits}f}"
    return mean if low == high else f"{mean} ({low:,.{digits}f} to {high:,.{digits}f})"
