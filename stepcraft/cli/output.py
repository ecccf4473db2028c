"""The only module that prints; its output cannot control the terminal.

Answers, evidence, procedures and messages from servers are untrusted, so control characters other
than newline and tab, and text-direction overrides, are removed from text and escaped in JSON.
"""

import codecs
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

import typer

from stepcraft.errors import Failed
from stepcraft.text.clean import clean, one_line

if TYPE_CHECKING:
    from stepcraft.evals.progress import Progress

_TO_ESCAPE = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that JSON need not escape, but that can control a terminal or are invalid in UTF-8."""
_NOT_ASCII = re.compile("[^\0-\x7e]")

_COUNT_EVERY = 10_000
_SHOWN = 20
_LINE_EVERY_S = 5.0


def say(text: str, *, err: bool = False) -> None:
    """Print text, which may span several lines, to stdout or stderr."""
    typer.echo(clean(text), err=err)


def note(text: str) -> None:
    """Print a line to stderr."""
    say(one_line(text), err=True)


def print_json(value: object) -> None:
    """Print a value as JSON to stdout; a dataclass instance is printed as its fields."""
    print_data(json.dumps(value, ensure_ascii=False, indent=2, default=_plain))


def _plain(value: object) -> object:
    from stepcraft.memory.procedure import Procedure

    if isinstance(value, Procedure):
        return value.to_dict()
    return vars(value) if is_dataclass(value) else str(value)


def print_data(json_text: str) -> None:
    """Print JSON to stdout, as ASCII unless its encoding is UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    to_escape = _TO_ESCAPE if codecs.lookup(encoding).name == "utf-8" else _NOT_ASCII
    typer.echo(to_escape.sub(_escaped, json_text))


def _escaped(match: re.Match[str]) -> str:
    """Return a character as JSON escapes it, as a surrogate pair beyond U+FFFF."""
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return re.sub("....", r"\\u\g<0>", units)


def show_counts(report: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a report's numbers and the lengths of its lists, or all of it as JSON."""
    if as_json:
        print_json(report)
        return
    counts = {
        name: len(value) if isinstance(value, list) else value for name, value in report.items()
    }
    say(
        ", ".join(
            f"{value:,} {name.replace('_', ' ')}"
            for name, value in counts.items()
            if isinstance(value, int | float)
        )
    )


def show_warnings(warnings: Iterable[str], *, quiet: bool) -> None:
    """Print warnings to stderr, unless the user has turned them off."""
    for warning in () if quiet else warnings:
        note(f"warning: {warning}")


def show_diff(before: str, after: str, *, err: bool = False) -> None:
    """Print a word diff: removed words as [-…-], added words as {+…+}."""
    from stepcraft.text.diff import shortened, word_diff

    forms = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    pieces = shortened(word_diff(before, after))
    say("".join(forms[kind].format(text) for kind, text in pieces), err=err)


def show_failed(failed: Sequence[Failed]) -> None:
    """Print the first twenty failures to stderr; the JSON contains all of them."""
    for failure in failed[:_SHOWN]:
        note(f"{failure.where}: {failure.reason}")
    if len(failed) > _SHOWN:
        note(f"and {len(failed) - _SHOWN:,} more")


def counter(items: str) -> Callable[[int], None]:
    """Return a function that prints a line to stderr for every 10,000 items done."""
    shown = 0

    def count(done: int) -> None:
        nonlocal shown
        if done - shown >= _COUNT_EVERY:
            shown = done
            note(f"{done:,} {items}")

    return count


def progress_lines(*, quiet: bool) -> "Callable[[Progress], None]":
    """Return a function that prints the progress to stderr every five seconds."""
    due, last = 0.0, 0

    def show(progress: "Progress") -> None:
        nonlocal due, last
        now, usd = time.monotonic(), progress.usd
        if quiet or progress.done == last or (now < due and progress.done < progress.total):
            return
        due, last = now + _LINE_EVERY_S, progress.done
        note(
            f"{progress.done:,} of {progress.total:,} done, {progress.failed:,} failed, "
            f"{progress.calls:,} calls, {progress.tokens:,} tokens"
            + (f", {usd:,.4f} USD" if usd else "")
        )

    return show
