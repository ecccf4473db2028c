"""Transcripts: what an agent did in one run or thread, written as a document that a model reads.

A transcript holds the goal, what was at hand, every call of a tool with its arguments and its shortened result, and the
answer. Secrets are masked before anything is shortened, so that no half of one stays.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from stepcraft.building.documents import Document
from stepcraft.secrets import MASK, without_secrets
from stepcraft.text.clean import clean

MAX_CHARACTERS = 30_000
"""The length that a transcript is shortened to, as far as shortening results does it."""

NO_CALL = "it called no tool"
"""Why a run without calls shows no procedure."""

_LIMITS = ((1_500, 1_000, 600), (800, 400, 200), (300, 120, 80))
"""The most characters of an argument, of a result, and of what the agent says; tried in order until the length fits."""
_MAX_GOAL = 4_000
_MAX_INSTRUCTIONS = 1_500
_MAX_DESCRIPTION = 160
_MAX_ANSWER = 2_000
_MAX_TITLE = 100
_MAX_NAME = 200
_MAX_OUTCOME = 300
_READ = 10_000
"""The most characters of a result that are looked at, from its beginning and from its end each."""
_SECRET_NAME = re.compile(
    r"token(?!s|i[sz])|secret|passw|passphrase|pwd|credential|signature|api[_.-]?key|access[_.-]?key"
    r"|private[_.-]?key|jwt|^auth(?:orization)?$|^pass$",
    re.IGNORECASE,
)
"""Names of arguments whose values are secrets, whatever these look like."""
_LEAST_SECRET = 4
"""The fewest characters of a secret that is masked wherever it recurs."""
_FENCE = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


@dataclass
class Call:
    """A call of a tool."""

    tool: str
    arguments: Any
    """JSON; a mapping from names to values as a rule."""
    result: Any = None
    error: str = ""
    """Why it failed; "" if it did not."""


@dataclass
class Said:
    """What the agent or its user said between calls."""

    speaker: str
    text: str


@dataclass
class Transcript:
    """What an agent did in one run or thread."""

    source: str
    goal: str = ""
    before: list[str] = field(default_factory=list[str])
    """What was asked earlier in the same thread."""
    instructions: str = ""
    """What the agent is told in every run: its system message."""
    tools: dict[str, str] = field(default_factory=dict[str, str])
    """The names of the tools at hand, with what they do."""
    events: list[Call | Said] = field(default_factory=list["Call | Said"])
    answer: str = ""
    succeeded: bool | None = None
    """Whether the goal was reached; None where nothing says so."""
    outcome: str = ""
    """What `succeeded` rests on, a clause whose subject is the run."""

    @property
    def calls(self) -> list[Call]:
        """The calls of tools in order."""
        return [event for event in self.events if isinstance(event, Call)]

    def document(self) -> Document:
        """The transcript as a document, with secrets masked and results shortened."""
        masked, text = self._masked(), ""
        succeeded, outcome = masked.succeeded, masked.outcome
        if succeeded is not False and not self.calls:
            succeeded, outcome = False, NO_CALL
        for limits in _LIMITS:
            text = masked._written(*limits)
            if len(text) <= MAX_CHARACTERS:
                break
        return Document(
            self.source,
            _cut(masked.goal, _MAX_TITLE),
            text,
            kind="transcript",
            succeeded=succeeded,
            outcome=_shortened(outcome, _MAX_OUTCOME),
        )

    def _masked(self) -> "Transcript":
        """The same without secrets; arguments are mappings or texts, results are texts."""
        mask = _Masking(self.calls)
        events: list[Call | Said] = [
            Said(event.speaker, mask.text(event.text).strip())
            if isinstance(event, Said)
            else Call(
                mask.name(event.tool),
                mask.value(event.arguments),
                mask.text(as_text(mask.value(event.result))).strip(),
                mask.text(event.error).strip(),
            )
            for event in self.events
        ]
        called = dict.fromkeys((event.tool for event in events if isinstance(event, Call)), "")
        described = {mask.name(name): mask.text(what) for name, what in self.tools.items()}
        return replace(
            self,
            goal=mask.text(self.goal).strip(),
            before=[mask.text(text) for text in self.before if text.strip()],
            instructions=mask.text(self.instructions).strip(),
            tools={**called, **described},
            events=events,
            answer=mask.text(self.answer).strip(),
            outcome=mask.text(self.outcome),
        )

    def _written(self, argument: int, result: int, said: int) -> str:
        """The text of a masked transcript.

        Args:
            argument: The most characters of an argument.
            result: The most characters of a result.
            said: The most characters of what was said between calls.
        """
        goal = _shortened(self.goal, _MAX_GOAL)
        parts = ["# Goal", _fenced(goal) if "#" in goal or "`" in goal else goal]
        if self.before:
            parts += ["Asked before:", _fenced("\n".join(_cut(text, said) for text in self.before))]
        parts.append("# At hand")
        if self.instructions:
            parts += [
                "Told in every run:",
                _fenced(_shortened(self.instructions, _MAX_INSTRUCTIONS)),
            ]
        listed = {name: _cut(what, _MAX_DESCRIPTION) for name, what in self.tools.items()}
        parts.append(
            "\n".join(
                f"- `{name}`" + (f": {what}" if what else "") for name, what in listed.items()
            )
        )
        number = 0
        for event in self.events:
            if isinstance(event, Said):
                if event.text:
                    parts += [f"The {event.speaker} said:", _fenced(_shortened(event.text, said))]
                continue
            number += 1
            parts += [
                f"# Call {number}: `{event.tool}`",
                _fenced(_arguments(event.arguments, argument)),
            ]
            if event.error:
                parts += ["It failed:", _fenced(_shortened(event.error, result))]
            elif event.result:
                parts += ["Result:", _fenced(_shortened(event.result, result))]
        if self.answer:
            parts += ["# Answer", _fenced(_shortened(self.answer, _MAX_ANSWER))]
        return "\n\n".join(filter(None, parts)) + "\n"


def parsed(value: object) -> Any:  # noqa: ANN401 - JSON
    """What a text holds that is written as JSON or as Python writes a dict or a list; any other value as it is."""
    if not isinstance(value, str) or value.strip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        if len(value) > _READ:
            return value
    try:
        return ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


class _Masking:
    """Masks secrets: by what they look like, by the names of the arguments that hold them, and wherever such values recur.

    Args:
        calls: The calls whose arguments say what is secret.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        values = {value for call in calls for value in _secret_values(call.arguments)}
        secrets = sorted((value for value in values if len(value) >= _LEAST_SECRET), key=len)
        words = "|".join(map(re.escape, reversed(secrets)))  # one may contain another
        self._values = re.compile(rf"(?<!\w)(?:{words})(?!\w)" if words else r"(?!)")

    def text(self, text: str) -> str:
        """The text with its secrets masked, cleaned, and without the middle if it is very long."""
        if len(text) > 2 * _READ:
            text = f"{text[:_READ]}\n…\n{text[-_READ:]}"
        return self._values.sub(MASK, without_secrets(clean(text)))

    def name(self, name: str) -> str:
        """The name of a tool on one line, without backticks."""
        return _cut(self.text(name).replace("`", ""), _MAX_NAME)

    def value(self, value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        """A value of JSON with the secrets in its texts masked, and all below a name that says that it is secret."""
        value = parsed(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            items = cast("Mapping[object, object]", value).items()
            return {
                self.text(str(name)): MASK
                if item and _SECRET_NAME.search(str(name))
                else self.value(item)
                for name, item in items
            }
        if isinstance(value, list | tuple):
            return [self.value(item) for item in cast("Sequence[object]", value)]
        return value


def _secret_values(arguments: object, *, secret: bool = False) -> Iterator[str]:
    """The texts below names that say that they are secret."""
    arguments = parsed(arguments)
    if isinstance(arguments, str) and secret:
        yield arguments
    elif isinstance(arguments, Mapping):
        for name, item in cast("Mapping[object, object]", arguments).items():
            yield from _secret_values(item, secret=secret or bool(_SECRET_NAME.search(str(name))))
    elif isinstance(arguments, list | tuple):
        for item in cast("Sequence[object]", arguments):
            yield from _secret_values(item, secret=secret)


def _arguments(masked: object, limit: int) -> str:
    """The arguments, a line each, their values shortened."""
    if not isinstance(masked, Mapping):
        return _shortened(as_text(masked), limit)
    lines = [
        f"{name}: {_shortened(json.dumps(value, ensure_ascii=False, default=str), limit)}"
        for name, value in cast("Mapping[str, object]", masked).items()
    ]
    return "\n".join(lines) or "(no arguments)"


def as_text(value: object) -> str:
    """A value of JSON as a text: a text as it is, "" for None, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _shortened(text: str, limit: int) -> str:
    """The text, or its beginning and its end with what is left out between them."""
    if len(text) <= limit:
        return text
    start, end = limit * 2 // 3, limit // 4
    return f"{text[:start]} […{len(text) - start - end:,} characters…] {text[len(text) - end :]}"


def _cut(text: str, limit: int) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def _fenced(text: str) -> str:
    """The text as a block of code, so that no line of it reads as a heading of the transcript."""
    longest = max((len(run) for run in _FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
