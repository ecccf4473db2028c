"""Reading a conversation: what is asked last, what was said before, and adding messages to it."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    convert_to_messages,
)
from langgraph.graph.message import add_messages

from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import clean, normalised, tokens

_MAX_TOKENS = 4_000
"""How much of a conversation the model is shown, the newest messages first."""
_MAX_MESSAGE_TOKENS = 300
"""How much of one message. What a later message refers to stands at the beginning as a rule."""

_PERSON = frozenset({"human", "user"})
_ASSISTANT = frozenset({"ai", "assistant", "agent"})


def join_messages(left: list[AnyMessage], right: Any) -> list[AnyMessage]:  # noqa: ANN401 - whatever a client sends
    """A reducer: `add_messages`, where messages with one id in what is added are the parts of one message.

    A2A servers send each part of a message as a message of its own, all with the same id, and `add_messages` would keep
    the last of them.

    Raises:
        BadInput: What is added is no message.
    """
    listed = right if isinstance(right, list) else [] if right is None else [right]
    try:
        given = convert_to_messages(listed)
    except (ValueError, KeyError, NotImplementedError) as error:
        missing = f"one has no {error}" if isinstance(error, KeyError) else str(error)
        why = without_secrets(missing).splitlines()[0]
        raise BadInput(
            f'the messages cannot be used: {why}; write each as {{"role": "user", "content": "…"}}'
        ) from error
    joined: list[BaseMessage] = []
    for message in given:
        last = joined[-1] if joined else None
        if last is not None and message.id and (message.id, message.type) == (last.id, last.type):
            parts = [last.content, message.content]
            both = [*_blocks(last), *_blocks(message)]
            texts = [part for part in parts if isinstance(part, str)]
            content = "\n".join(texts) if len(texts) == len(parts) else both
            joined[-1] = last.model_copy(update={"content": content})
        else:
            joined.append(message)
    return add_messages(left, joined)  # type: ignore[arg-type, return-value]  # its types are wider than what it takes


def last_question(messages: Sequence[BaseMessage]) -> tuple[str, list[str]]:
    """The text of the human message that a conversation ends with, and warnings about parts that are not read.

    Raises:
        BadInput: There is no message, the conversation ends with an AI's, or the message has no text.
    """
    spoken = [message for message in messages if _speaker(message)]
    if not spoken:
        raise BadInput("there is no message to answer; send a human message with a question or a goal")
    last = spoken[-1]
    if _speaker(last) == "assistant":
        raise BadInput("the conversation ends with an AI's message; add a human message to be answered")
    text, left_out = _text(last)
    kinds = " and ".join(f"{count} {kind}" for kind, count in left_out.items())
    if not normalised(text):
        why = f"it holds {kinds}, and only text is read" if kinds else "it is empty"
        raise BadInput(f"the last message cannot be answered: {why}; say in words what is wanted")
    warnings = [f"only the text of the message was read; left out: {kinds}"] if kinds else []
    if any(isinstance(message, SystemMessage) for message in messages):
        warnings.append("system messages are not followed; instructions are settings of the run")
    return text, warnings


def most_tokens(context: Context) -> int:
    """How much of a conversation a model with these settings is shown, in tokens."""
    return min(_MAX_TOKENS, (context.max_input_tokens or 2 * _MAX_TOKENS) // 2)


def said_before(messages: Sequence[BaseMessage], max_tokens: int) -> tuple[list[tuple[str, str]], int]:
    """What was said before the last message, and how many of its messages were left out because they do not fit.

    Args:
        messages: The conversation. Messages of tools and of the system, and those without text, are passed over.
        max_tokens: How much is taken, the newest first; of each message the beginning.

    Returns:
        The speaker ("person" or "assistant") and the text of each message, oldest first, and the number left out.
    """
    turns: list[tuple[str, str]] = []
    left_out, used = 0, 0
    for message in reversed([message for message in messages if _speaker(message)][:-1]):
        text = _beginning(_text(message)[0])
        if not text:
            continue
        used += tokens(text)
        if used > max_tokens:
            left_out += 1
        else:
            turns.append((_speaker(message), text))
    return turns[::-1], left_out


def _speaker(message: BaseMessage) -> str:
    """Who says a message: "person", "assistant", or "" for nobody in the conversation."""
    role = message.role.lower() if isinstance(message, ChatMessage) else ""
    if isinstance(message, HumanMessage) or role in _PERSON:
        return "person"
    said = isinstance(message, AIMessage) or role in _ASSISTANT
    return "assistant" if said and (role or message.text.strip()) else ""


def _text(message: BaseMessage) -> tuple[str, Counter[str]]:
    """The text of a message, and the kinds of its other parts with their numbers."""
    texts: list[str] = []
    left_out: Counter[str] = Counter()
    for block in _blocks(message):
        kind = str(block.get("type") or "unknown part")
        if isinstance(text := block.get("text"), str) and kind in {"text", "input_text", "output_text"}:
            texts.append(text)
        elif isinstance(message, HumanMessage):
            left_out[kind.removesuffix("_url")] += 1
    return clean("\n".join(texts)).strip(), left_out


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    parts = [message.content] if isinstance(message.content, str) else message.content
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _beginning(text: str) -> str:
    """The beginning of a text, of `_MAX_MESSAGE_TOKENS` at most."""
    if tokens(text) <= _MAX_MESSAGE_TOKENS:
        return text
    encoded = text.encode("utf-8")[: 4 * _MAX_MESSAGE_TOKENS].decode("utf-8", "ignore")
    return f"{encoded.rstrip()} …"
