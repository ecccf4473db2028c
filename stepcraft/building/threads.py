"""Agents' message threads, written as documents that a model can read.

A transcript contains the goal, the available resources, every tool call with its arguments and its
shortened result, and the answer. Secrets are masked before anything is shortened, so that no part
of one remains.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, count, takewhile
from operator import itemgetter
from typing import Any

from langchain_core.messages import BaseMessage, ToolCall, ToolMessage

from stepcraft.building.conversations import Conversation, conversations, left_out
from stepcraft.building.documents import Document, Listed, digest_of, key_of, listed
from stepcraft.building.messages import messages_of, unknown_kind
from stepcraft.errors import Failed, SourceFailure
from stepcraft.memory.credit import shown_ids
from stepcraft.secrets import MASK, excerpt, without_secrets
from stepcraft.text.clean import clean
from stepcraft.text.markdown import fenced

MAX_CHARACTERS = 30_000
"""The maximum length of a transcript, if shortening its results can achieve it."""

FEEDBACK = ("success", "thumbs_up")
"""The feedback keys that say whether a run reached its goal: 1 means it did, 0 that it did not. The
first one counts.

Other keys can use any scale and direction (0 is good for `toxicity`, and one star out of five is
bad). For these, and for scores between 0 and 1, a model is asked.
"""

_SECRET_NAME = re.compile(
    r"token(?!s|i[sz])|secret(?!ar)|passw|passphrase|pwd|credential|signature|jwt"
    r"|(?:api|access|private)[_.-]?key|^auth(?:orization)?$|^pass$",
    re.IGNORECASE,
)
"""Matches the names of arguments whose values are secret, whatever the values look like."""
_SCHEME = re.compile(r"^(?:basic|bearer|token)\s+", re.IGNORECASE)
"""The scheme before a secret in a header."""
_BEFORE = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Matches before a secret: no letter, unless it belongs to an escape, as in JSON or a URL."""
_PAIR = re.compile(
    r"""(?<!\\)(?P<mark>\\*+["'])(?P<name>[\w.-]{1,60})(?P=mark)\s*:\s*(?P<quote>\\*+["'])"""
    r"(?P<value>(?:(?!(?<!\\)(?P=quote)).)+)(?=(?P=quote))"
)
"""Matches a named string as in JSON, even if its quotes are escaped."""
_CONTEXT = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|command-|local-command|system-reminder)"
    r"|# AGENTS\.md instructions)"
)
"""Matches messages that coding agents insert as if they came from the user."""
_SPEAKERS = {"human": "The user said:", "ai": "The agent said:"}


def list_threads(path: str, failed: list[Failed]) -> Iterator[Listed]:
    """Yield the threads in a JSON Lines file.

    If there are several states of a thread, the one with the most messages is used, with the
    feedback on all of them. A thread without an id is identified by its content.

    Args:
        path: The file; see `conversations`.
        failed: Receives the records that are not threads.

    Raises:
        BadInput: The file cannot be read.
    """
    longest: dict[str, tuple[int, Document, Conversation]] = {}
    feedback: dict[str, list[tuple[int, tuple[str, ...], dict[str, Any]]]] = {}
    for conversation in conversations(path, failed):
        messages = _messages(conversation.state)
        source = f"threads:{path}?thread={conversation.id or digest_of(messages)}"
        try:
            document = _document(conversation, source, conversation.feedback)
        except SourceFailure as error:
            failed.append(Failed(conversation.place, str(error)))
            continue
        length = len(messages)
        feedback.setdefault(source, []).append((length, document.shown, conversation.feedback))
        if source not in longest or length >= longest[source][0]:
            longest[source] = length, document, conversation
    for source, (_, document, conversation) in longest.items():
        # Feedback on an earlier turn is about the procedures that were shown by then.
        states = sorted(feedback[source], key=itemgetter(0))
        scores = {
            name: score
            for _, shown, each in states
            if shown == document.shown
            for name, score in each.items()
            if score is not None
        }
        judged = _document(conversation, source, scores) if len(states) > 1 else document
        noted = replace(judged, note=conversation.note or judged.note)
        yield replace(listed(noted), key=key_of(source))


def _document(conversation: Conversation, source: str, feedback: Mapping[str, Any]) -> Document:
    state, error, last = conversation.state, conversation.error, conversation.last
    return thread_of(state, source, feedback, error, last=last)


def thread_of(
    state: Mapping[str, Any],
    source: str,
    feedback: Mapping[str, Any],
    error: str = "",
    *,
    last: bool = False,
) -> Document:
    """Return the thread in a state as a document; see `transcript`.

    Args:
        state: A state with `messages` in a form accepted by `messages_of`, or a `question` with its
            `answer`.
        source: The origin of the thread.
        feedback: The scores by key.
        error: The error that ended the run, if any.
        last: Whether to start at the last request, leaving out earlier runs in the same thread.

    Raises:
        SourceFailure: It has no messages.
    """
    try:
        values = _messages(state)
        thread = messages_of(values)
        kinds = (unknown_kind(each) for each in values if isinstance(each, Mapping))
        note = left_out(source, [*filter(None, kinds)])
        if last:
            requests = (place for place, each in enumerate(thread) if each.type == "human")
            start = max(requests, default=0)
            thread = [each for each in thread[:start] if each.type == "system"] + thread[start:]
        document = transcript(thread, source, feedback, error)
        return replace(document, shown=(*shown_ids(state),), note=note)
    except Exception as problem:  # data written by others may have any form
        reason = f"{type(problem).__name__}: {excerpt(str(problem))}"
        raise SourceFailure(f"it is no thread with messages: {reason}") from problem


def transcript(
    messages: Sequence[BaseMessage],
    source: str,
    feedback: Mapping[str, Any] | None = None,
    error: str = "",
) -> Document:
    """Return a thread as a document.

    Args:
        messages: The messages. The first request is taken as the goal, and the agent's last text as
            the answer if no calls follow.
        source: The origin of the messages.
        feedback: The scores by key.
        error: The error that ended the run, if any.
    """
    calls = [call["args"] for each in messages for call in _calls(each)]
    found = [*_secrets([*calls, *(message.text for message in messages)])]
    found += [json.dumps(secret, ensure_ascii=False)[1:-1] for secret in found]  # as in a call
    secrets = sorted(found, key=len, reverse=True)  # one may contain another
    any_secret = "|".join(map(re.escape, secrets)) or "(?!)"
    # In scripts that use no spaces, letters may be directly next to it.
    pattern = re.compile(rf"{_BEFORE}(?:{any_secret})(?![A-Za-z0-9_])")

    def masked(text: str) -> str:
        return without_secrets(_PAIR.sub(_masked_pair, pattern.sub(MASK, clean(text)))).strip()

    entries = [(label, masked(text), least) for label, text, least in _entries(messages)]

    def length(limit: int) -> int:
        kept = (min(len(text), max(limit, least)) for _, text, least in entries)
        labels = (len(label) + 40 for label, _, _ in entries)  # with its fence and the note
        return sum(kept) + sum(labels)

    limits = range(1_500, 100, -20)
    limit = next((each for each in limits if length(each) <= MAX_CHARACTERS), 100)
    text = "\n".join(  # in code blocks, so that no line of an entry looks like a heading
        f"{label}\n\n{fenced(shortened(entry, max(limit, least)))}\n"
        for label, entry, least in entries
    )
    succeeded, outcome = None, ""
    for key in FEEDBACK:
        if (score := (feedback or {}).get(key)) in (0, 1):
            succeeded, outcome = score == 1, f"its feedback {key} is {score:g}"
            break
    judged = succeeded
    if error:
        succeeded, outcome = False, f"it ended with an error: {masked(error)[:300]}"
    elif not calls:
        succeeded, outcome = False, "it called no tool"
    title = " ".join(entries[0][1].split())[:100]
    return Document(
        source,
        title,
        text,
        "transcript",
        succeeded=succeeded,
        outcome=outcome,
        judged=judged,
    )


def _messages(state: Mapping[str, Any]) -> Sequence[Any]:
    """Return the messages in a state, or a question and answer if a run has no messages."""
    if "messages" in state or not {"question", "answer"} <= state.keys():
        return state.get("messages") or []
    return [("human", str(state["question"])), ("ai", str(state["answer"]))]


def _calls(message: BaseMessage) -> list[ToolCall]:
    return getattr(message, "tool_calls", [])


def _secrets(value: object, *, is_secret: bool = False) -> Iterator[str]:
    """Yield the strings stored under names that mark them as secret, including in JSON strings."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):  # not JSON
            nested = _secrets(json.loads(value), is_secret=is_secret)
            # Words without a digit could be ordinary ones in other text.
            yield from (each for each in nested if any(map(str.isdigit, each)))
    if isinstance(value, dict):
        label = str(value.get("name") or value.get("key"))  # as in a list of environment variables
        for name, item in value.items():
            is_named = _SECRET_NAME.search(label if name == "value" else str(name)) is not None
            yield from _secrets(item, is_secret=is_secret or is_named)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item, is_secret=is_secret)
    elif is_secret and isinstance(value, str):
        bare = _SCHEME.sub("", value)
        is_word = len(bare) < 16 and bare.isalpha() and bare[1:].islower()  # "Bearer token"
        yield from (each for each in (value, "" if is_word else bare) if len(each) > 3)


def _masked_pair(pair: re.Match[str]) -> str:
    if not _SECRET_NAME.search(pair["name"]):
        return pair[0]
    return pair[0].removesuffix(pair["value"]) + MASK


def _entries(messages: Sequence[BaseMessage]) -> Iterator[tuple[str, str, int]]:
    """Yield transcript entries: a label, a text, and the minimum number of characters to keep."""
    replies: dict[str, list[ToolMessage]] = {}  # some agents reuse call ids
    for each in messages:
        if isinstance(each, ToolMessage):
            replies.setdefault(each.tool_call_id, []).append(each)
    begin = takewhile(lambda each: each.type != "ai", messages)
    asked = (each for each in begin if each.type == "human" and not _CONTEXT.match(each.text))
    requests = (each for each in messages if each.type == "human")
    goal = next(chain(asked, requests), None)
    yield "# Goal", goal.text if goal else "", 4_000
    system = [each.text for each in messages if each.type == "system"]
    tools = dict.fromkeys(f"- `{call['name']}`" for each in messages for call in _calls(each))
    yield "# At hand", "\n".join([*system, *tools]), 1_500
    # The answer may be followed by thanks, but not by more work.
    worked = [each for each in messages if each.type not in ("human", "system")]
    answer = worked[-1] if worked and worked[-1].type == "ai" and not _calls(worked[-1]) else None
    numbers = count(1)
    later = Counter(call["id"] or "" for each in messages for call in _calls(each))
    for message in messages:
        calls = _calls(message)
        if isinstance(message, ToolMessage) and message.tool_call_id not in later:
            yield _result(message)
        if message is answer:
            yield "# Answer", message.text, 4_000
        elif message.text and message.type in _SPEAKERS and message is not goal:
            yield _SPEAKERS[message.type], message.text, 0
        for call in calls:
            arguments = (
                f"{name}: {json.dumps(value, ensure_ascii=False)}"
                for name, value in call["args"].items()
            )
            label = f"# Call {next(numbers)}: `{call['name'].replace('`', '')}`"
            yield label, "\n".join(arguments) or "(no arguments)", 0
            id_ = call["id"] or ""
            later[id_] -= 1
            waiting = replies.get(id_, [])
            own = 1 if later[id_] else len(waiting)  # so that no result is lost
            yield from map(_result, waiting[:own])
            del waiting[:own]


def _result(reply: ToolMessage) -> tuple[str, str, int]:
    return "It failed:" if reply.status == "error" else "Result:", reply.text, 0


def shortened(text: str, limit: int) -> str:
    """Return the text, with a note in place of its middle if it is too long."""
    if len(text) <= limit:
        return text
    start, end = limit * 2 // 3, limit // 4
    return f"{text[:start]} […{len(text) - start - end:,} characters…] {text[-end:]}"
