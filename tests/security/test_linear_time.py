"""No text stalls the interpreter: every regular expression and every reader takes linear time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import pytest

from stepcraft.errors import UnreadableReply
from stepcraft.secrets import without_secrets
from stepcraft.text.diff import word_diff
from tests.security.expressions import USES, Expression, expressions, worst_units
from tests.security.readers import READERS, UNITS

SECONDS = 1.0
"""Three times what the slowest reader takes for the longest text; quadratic time would be a hundred times as much."""
LONG = 200_000
SHORT = (1_000, 10_000)
"""The lengths at which all cases are tried, before the slowest are at full length: it would take minutes otherwise."""
SLOWEST = 3

REPEATED = [
    " ", "\n", "\t", "\r\n", "#", "*", "_", "-", "=", "~", "`", "[", "]", "(", "<", "\"", "'", ".", ",", "/", ":", "|", "\\",
    "1", "1.", "a", "A", "a ", "A b", "a\n", "中", "。", "\u201c", "\u0301\u0316", "\u200b", " #", "- ", "[1]", "# a\n", "=\n",
]  # fmt: skip
"""What any expression is repeated on; each is tried on what its own parts repeat as well."""

Case = tuple[str, str, str]
"""What a text begins with, what is repeated, and what it ends with."""


def trap(function: Callable[[str], object], cases: Iterable[Case]) -> str:
    """The first case that takes too long, "" if none does."""
    slowest = list(dict.fromkeys(cases))
    for size in (*SHORT, LONG):
        timed = [(seconds(function, case, size), case) for case in slowest]
        for taken, case in timed:
            # Any of three tries will do: a machine that runs other things takes up to twice the time.
            if taken > SECONDS and all(seconds(function, case, size) > SECONDS for _ in range(2)):
                return f"{size:,} characters of {case}: {taken:.1f} s"
        slowest = (
            [case for _, case in sorted(timed, reverse=True)[:SLOWEST]] if size == SHORT[-1] else slowest
        )
    return ""


def seconds(function: Callable[[str], object], case: Case, size: int) -> float:
    """The time that the thread itself takes."""
    head, unit, tail = case
    text = head + unit * ((size - len(head)) // len(unit)) + tail
    begun = time.thread_time()
    with suppress(UnreadableReply):
        function(text)
    return time.thread_time() - begun


@pytest.fixture(scope="module", autouse=True)
def _few_objects() -> Iterator[None]:
    """A collection of all the objects that pytest and the package hold takes a tenth of a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_every_expression_takes_linear_time() -> None:
    found = list(expressions())
    assert len(found) > 100
    traps = {
        f"{one.name}.{method}": trap(USES[method](one.pattern), cases(one))
        for one in found
        for method in sorted(one.methods)
    }
    assert {name: case for name, case in traps.items() if case} == {}


def cases(expression: Expression) -> Iterator[Case]:
    """The usual repetitions, and what the expression itself repeats after what precedes it there."""
    yield from (("", unit, "x") for unit in REPEATED)
    for head, unit in worst_units(expression.pattern):
        yield from ((head, unit, "\x01"), (head, unit, "\n\x01"), ("", head + unit, "\x01"))


@pytest.mark.parametrize("unit", ["]", "a ", "\u7b2c"])
def test_a_diff_ends_with_its_deadline(unit: str) -> None:
    def of_half(text: str) -> object:
        return word_diff(text, text[1 : len(text) // 2] + "new " + text[len(text) // 2 :])

    assert seconds(of_half, ("- a\n\n", unit, "x"), LONG) < 2 + SECONDS


def test_addresses_before_a_late_at_sign_take_linear_time() -> None:
    assert not trap(without_secrets, [("", unit, "'@") for unit in ("//a:1", "://a:1", "//a:b", "//a")])


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_every_reader_takes_linear_time(reader: Callable[[str], object]) -> None:
    assert not trap(reader, (("- a\n\n", unit, "x") for unit in UNITS))
