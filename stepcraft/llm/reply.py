"""Read a provider's message: the text of the reply, or the reason why there is none."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage

from stepcraft.errors import UnreadableReply
from stepcraft.text.clean import normalised, unfenced
from stepcraft.text.markdown import outside_code
from stepcraft.text.reasoning import without_reasoning

_REASON_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "finishReason")
_CUT_OFF = re.compile(
    r"length|max_tokens|model_length|max_output_tokens|model_context_window_exceeded|incomplete"
)
_REFUSED = re.compile(
    r"refusal|content_filter(?:ed)?|guardrail_intervened|(?:image_)?(?:safety|prohibited_content)"
    r"|recitation|language|blocklist|spii|sensitive|blocked|error_toxic"
)
_WHOLE = re.compile(
    r"|(?:finish_reason_)?(?:stop|unspecified)|end_turn|stop_sequences?|stop_token|eos(?:_token)?"
    r"|tool_(?:calls?|use)|function_calls?|completed?|success|finished|done|null|none"
)
"""The finish reasons that indicate a complete reply."""
_TOOL_CALL = re.compile(
    r"""(?:[^\n]{0,200}\n\s*)??(?:
        <(?P<tag>(?:\w+:)?(?:tool_calls?|function_calls?|tool_use|invoke))\b.*</(?P=tag)>
        |<function=.*</function>
        |\[TOOL_CALLS\].*
        |call\s+\w+\s*\{.*\}
        |action:[^\n]+\n\s*action\ input:.*
        |\w+\.call\(\w+=.*\)
        |\[(?-i:[a-z_])\w*\(\w+=.*\)\]
        |```tool_code\b.*
    )""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
"""A call in a notation that the server did not parse, with at most one line before it."""
_SPECIAL = r"<[|\uff5c](?:tool|DSML|START_ACTION)[^<>\n]{0,60}>"
_BEGINS_CALL = re.compile(
    rf"^[ \t]*{_SPECIAL}|{_SPECIAL}(?:\w|\n?<|\s?[{{\[])", re.IGNORECASE | re.MULTILINE
)
"""A special token that begins a tool call, as opposed to one mentioned in a sentence."""
_ANSWERED_CALL = re.compile(r"\A\s*<tool_call>\s*\{.*?\}\s*</tool_call>\s*(?=\S)", re.DOTALL)
"""A tool call whose result the model did not wait for before answering."""
_ARGUMENTS = {"arguments", "parameters", "args", "input"}
_CITATIONS = ("citations", "annotations", "reference")


class Refused(Exception):
    """The model declined the request, or the provider's filter stopped it.

    Asking again would not help, so the step is skipped.
    """


def reply_text(message: AIMessage) -> str:
    """Return the text of a message, without reasoning.

    Raises:
        Refused: The model refused, or a filter stopped the reply; partial text is not returned.
        UnreadableReply: There is no text, or it is a tool call.
    """
    if refusal := _refusal(message):
        raise Refused(refusal)
    text = _ANSWERED_CALL.sub("", without_reasoning(_content(message))[0])
    if not normalised(text):
        raise UnreadableReply(
            "it was cut off before any text" if is_cut_off(message) else "it was empty"
        )
    if _is_tool_call(text):
        raise UnreadableReply("it calls a tool, and there is none: reply with what is asked for.")
    return text


def is_cut_off(message: AIMessage) -> bool:
    """Return whether the reply ended at the model's token limit or inside its reasoning."""
    return (
        any(map(_CUT_OFF.fullmatch, _reasons(message))) or without_reasoning(_content(message))[1]
    )


def odd_end(message: AIMessage) -> str:
    """Return the finish reason if the reply may be incomplete, or else ""; a refusal has none."""
    for reason in _reasons(message):
        if not any(each.fullmatch(reason) for each in (_WHOLE, _CUT_OFF, _REFUSED)):
            return reason
    return ""


def answer_text(reply: str) -> str:
    """Return an answer without any wrapping around it, except for the fence around a program.

    Raises:
        UnreadableReply: There is nothing inside the wrapping.
    """
    text = unfenced(reply, keep_code=True).strip()
    if not text:
        raise UnreadableReply("there was no text in it.")
    return text


def _is_tool_call(text: str) -> bool:
    """Return whether a text is a tool call, or a JSON list of tool calls."""
    if _TOOL_CALL.fullmatch(text):
        return True
    if any(_BEGINS_CALL.search(text, *span) for span in outside_code(text)):
        return True
    with suppress(ValueError, RecursionError):
        value = json.loads(unfenced(text))
        calls = value if isinstance(value, list) else [value]
        return bool(calls) and all(
            isinstance(call, dict)
            and {"name", "tool_name"} & call.keys()
            and len(_ARGUMENTS & call.keys()) == 1
            and call.keys() <= {"name", "tool_name", "id", "tool_call_id", "type", *_ARGUMENTS}
            for call in calls
        )
    return False


def _reasons(message: AIMessage) -> Iterator[str]:
    """Yield the reasons why the reply ended, in lower case."""
    metadata = message.response_metadata
    incomplete = _mapping(metadata.get("incomplete_details"))
    reasons = [metadata.get(key) for key in _REASON_KEYS]
    reasons.append(incomplete.get("reason") or metadata.get("status"))
    yield from map(_word, filter(None, reasons))


def _refusal(message: AIMessage) -> str:
    """Return the text of a refusal, or the provider's reason for it, or "" if there is none."""
    if words := message.additional_kwargs.get("refusal"):
        return str(words)
    for block in _blocks(message):
        refusal = _mapping(block.get("value", block))  # LangChain's standard content wraps it
        if refusal.get("type") == "refusal":
            return str(refusal.get("refusal") or "it refuses")
    metadata = message.response_metadata
    feedback = _mapping(metadata.get("prompt_feedback"))
    blocked = _word(feedback.get("block_reason"))
    reason = next((each for each in _reasons(message) if _REFUSED.fullmatch(each)), "")
    if blocked and blocked != "blocked_reason_unspecified":
        reason = blocked
    if not reason:
        return ""
    words = (
        metadata.get("finish_message")
        or _mapping(metadata.get("stop_details")).get("explanation")
        or feedback.get("block_reason_message")
        or (message.text if reason == "guardrail_intervened" else "")
    )
    return f"{words} ({reason})" if words else f"the provider stopped the reply ({reason})"


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(reason: Any) -> str:
    """Return a finish reason, possibly an enum member, in lower case.

    LangChain concatenates the reasons of streamed chunks, so repetitions are collapsed.
    """
    word = str(getattr(reason, "value", reason) or "").lower()
    repeated = re.fullmatch(r"(.{3,40}?)\1*", word)
    return repeated[1] if repeated else word


def _blocks(message: AIMessage) -> Iterator[dict[str, Any]]:
    """Yield a message's content blocks; a string, such as streamed text, is marked `plain`."""
    content = [message.content] if isinstance(message.content, str) else message.content
    for block in content:
        yield {"type": "text", "text": block, "plain": True} if isinstance(block, str) else block


def _is_piece(block: dict[str, Any]) -> bool:
    """Return whether a text block may be a piece of a longer text.

    It may have been streamed, or split off because it cites sources or carries a Gemini thought
    signature.
    """
    is_signed = "signature" in _mapping(block.get("extras")) or "thought_signature" in block
    return is_signed or "plain" in block or any(map(block.get, _CITATIONS))


def text_pieces(message: AIMessage) -> list[str]:
    """Return what each content block adds to the text, including a line break before it.

    A provider that cites sources splits a text into consecutive blocks, some of them with
    citations; these are joined directly, and so are streamed pieces and Gemini's blocks. OpenAI's
    commentary is not part of the answer.
    """
    pieces: list[str] = []
    is_gemini = message.response_metadata.get("model_provider") == "google_genai"
    before: dict[str, Any] = {}
    for block in _blocks(message):
        words = block.get("text") if block.get("type") == "text" else None
        if isinstance(words, str) and words and block.get("phase") != "commentary":
            is_next = before.get("type") == "text" and before.get("id") == block.get("id")
            is_joined = is_next and (is_gemini or _is_piece(before) or _is_piece(block))
            pieces.append(words if is_joined or not any(pieces) else f"\n{words}")
        else:
            pieces.append("")
        before = block
    return pieces


def _content(message: AIMessage) -> str:
    return "".join(text_pieces(message))
