"""What agents did, as threads of messages, written as documents that a model reads.

A transcript holds the goal, what was at hand, every call of a tool with its arguments and its
shortened result, and the answer. Secrets are masked before anything is shortened, so that no half
of one stays.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ToolMessage,
    convert_to_messages,
    messages_from_dict,
)

from stepcraft.building.documents import Document, Listed
from stepcraft.errors import Failed
from stepcraft.records import records
from stepcraft.secrets import MASK, excerpt, without_secrets
from stepcraft.text.clean import clean

MAX_CHARACTERS = 30_000
"""The length that a transcript is shortened to, as far as shortening results does it."""

FEEDBACK = ("success", "thumbs_up")
"""The keys of feedback that say whether a run reached its goal: with 1 it did, with 0 it did not.

Other keys may be of any scale and any sense (`toxicity` 0 is good, one star of five is bad), and so
may scores between: then a model is asked.
"""

_SECRET_NAME = re.compile(
    r"token(?!s|i[sz])|secret|passw|passphrase|pwd|credential|signature|jwt"
    r"|(?:api|access|private)[_.-]?key|^auth(?:orization)?$|^pass$",
    re.IGNORECASE,
)
"""Names of arguments whose values are secrets, whatever these look like."""
_FENCE = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def list_threads(path: str, spec: str, failed: list[Failed]) -> Iterator[Listed]:
    """Yield the threads of a file of JSON lines.

    A line is an object with `messages`, or the state of a LangGraph thread (`values.messages`), in
    LangChain's or OpenAI's form, with `thread_id` and `feedback` where there are any.

    Args:
        path: The file.
        spec: The source as it was named.
        failed: Takes the lines that are none.

    Raises:
        BadInput: The file cannot be read.
    """
    for record in records(Path(path)):
        values = record.values or {}
        source = f"{spec}?thread={values.get('thread_id') or f'line {record.line}'}"
        try:
            messages = messages_of(values.get("values") or values)
            document = transcript(messages, source, values.get("feedback") or [])
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            reason = f"it is no thread with messages: {type(error).__name__}: {excerpt(str(error))}"
            failed.append(Failed(f"{path}:{record.line}", record.reason or reason))
        else:
            yield Listed(source, partial(_same, document), spec)


def messages_of(state: Mapping[str, Any]) -> list[BaseMessage]:
    """Return the messages of a thread's state, in LangChain's or OpenAI's form.

    Raises:
        KeyError: It has none.
    """
    messages: Any = state["messages"]
    if messages and isinstance(messages[0], dict) and "data" in messages[0]:
        return messages_from_dict(messages)
    return convert_to_messages(messages)


def transcript(
    messages: Sequence[BaseMessage],
    source: str,
    feedback: Sequence[Mapping[str, Any]] = (),
    error: str = "",
) -> Document:
    """Return a thread as a document.

    Args:
        messages: The first request is the goal, a last text without calls the answer.
        source: Where they come from.
        feedback: Objects with `key` and `score`.
        error: Why the run ended with an error.
    """
    secrets = {secret for message in messages for secret in _secrets(message)}
    longest = sorted((each for each in secrets if len(each) > 3), key=len, reverse=True)
    pattern = "|".join(map(re.escape, longest)) or r"(?!)"  # one may contain another

    def masked(text: str) -> str:
        text = re.sub(rf"(?<!\w)(?:{pattern})(?!\w)", MASK, clean(text))
        return without_secrets(text).strip()

    for limit in (1_500, 800, 300, 100):
        parts = _parts(messages, masked, limit)
        text = "\n\n".join(filter(None, parts)) + "\n"
        if len(text) <= MAX_CHARACTERS:
            break
    succeeded, outcome = None, ""
    for key, score in ((each["key"], each["score"]) for each in feedback):
        if key in FEEDBACK and score in (0, 1):
            succeeded, outcome = score == 1, f"its feedback {key} is {score:g}"
    if error:
        succeeded, outcome = False, f"it ended with an error: {masked(error)[:300]}"
    elif "\n# Call 1:" not in text:
        succeeded, outcome = False, "it called no tool"
    goal = next((message.text for message in messages if message.type == "human"), "")
    title = " ".join(masked(goal).split())[:100]
    return Document(source, title, text, "transcript", succeeded=succeeded, outcome=outcome)


def _secrets(value: object, *, is_secret: bool = False) -> Iterator[str]:
    """Yield the texts below names that say that they are secret, in calls and results."""
    if isinstance(value, AIMessage):
        for call in value.tool_calls:
            yield from _secrets(call["args"])
    elif isinstance(value, ToolMessage):
        with suppress(ValueError):  # no JSON
            yield from _secrets(json.loads(value.text))
    elif isinstance(value, str) and is_secret:
        yield value
    elif isinstance(value, dict):
        for name, item in cast("dict[object, object]", value).items():
            named = is_secret or _SECRET_NAME.search(str(name)) is not None
            yield from _secrets(item, is_secret=named)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _secrets(item, is_secret=is_secret)


def _parts(
    messages: Sequence[BaseMessage], masked: Callable[[str], str], limit: int
) -> Iterator[str]:
    """Yield the parts of a transcript, in which texts have about so many characters at most."""
    calls = [call for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
    numbers = {id(call): number for number, call in enumerate(calls, 1)}
    replies = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
    system = [masked(each.text) for each in messages if each.type == "system"]
    requests = [each for each in messages if each.type == "human"]
    goal = shortened(masked(requests[0].text), 4_000) if requests else ""
    yield from ("# Goal", _fenced(goal) if "#" in goal or "`" in goal else goal, "# At hand")
    yield from ("Told in every run:", _fenced(shortened(system[0], 1_500))) if system else ()
    yield "\n".join(dict.fromkeys(f"- `{call['name']}`" for call in calls))
    for message in messages:
        text = masked(message.text)
        asked = message.tool_calls if isinstance(message, AIMessage) else []
        if message is messages[-1] and message.type == "ai" and not asked:
            yield from ("# Answer", _fenced(shortened(text, 2_000)))
        elif text and message.type in ("human", "ai") and message is not requests[0]:
            speaker = "user" if message.type == "human" else "agent"
            yield from (f"The {speaker} said:", _fenced(shortened(text, limit)))
        for call in asked:
            arguments = (
                f"{name}: {shortened(masked(json.dumps(value, ensure_ascii=False)), limit)}"
                for name, value in call["args"].items()
            )
            yield f"# Call {numbers[id(call)]}: `{call['name'].replace('`', '')}`"
            yield _fenced("\n".join(arguments) or "(no arguments)")
            if reply := replies.get(call["id"] or ""):
                yield "It failed:" if reply.status == "error" else "Result:"
                yield _fenced(shortened(masked(reply.text), limit))


def shortened(text: str, limit: int) -> str:
    """Return the text, or its beginning and its end with what is left out between them."""
    if len(text) <= limit:
        return text
    start, end = limit * 2 // 3, limit // 4
    return f"{text[:start]} […{len(text) - start - end:,} characters…] {text[-end:]}"


def _fenced(text: str) -> str:
    """Return the text as a block of code, so that no line of it reads as a heading."""
    fence = "`" * (max(map(len, _FENCE.findall(text)), default=2) + 1)
    return f"{fence}\n{text}\n{fence}"


def _same(document: Document) -> Document:
    return document
