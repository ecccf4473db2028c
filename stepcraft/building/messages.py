"""Read the messages of conversations in the formats of LangChain and model providers."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

_ROLES = {
    **dict.fromkeys(("model", "ai", "gpt", "chatgpt", "bot", "agent"), "assistant"),
    **dict.fromkeys(("function", "observation", "environment"), "tool"),
    **dict.fromkeys(("human", "HumanMessageChunk"), "user"),
    "AIMessageChunk": "assistant",
    "SystemMessageChunk": "system",
    **dict.fromkeys(("ToolMessageChunk", "FunctionMessageChunk"), "tool"),
    "developer": "system",
}
_ACTION = re.compile(
    r"^[ \t]*(?:\*\*)?Action[ \t]*\d*\**:[ \t*`]*"
    r"(?:([\w.-]+)`?(?:\[(.*)\]|\((.*)\))"
    r"|(?!(?i:no|none|n/a)[\s.,*`])([^\s*`]+(?:[ \t]+[^\s*`]+){0,3})[ \t\r*`]*\n"
    r"[ \t*]*Action Input[ \t]*\d*\**:\**(.*))",
    re.MULTILINE | re.DOTALL,
)
"""A call written as ReAct text (arXiv 2210.03629), in the paper's or LangChain's form.

A name of more than four words is taken for a sentence.
"""
_OBSERVATION = re.compile(r"[ \t]*(?:\*\*)?Observation[ \t]*\d*\**:(?:\*\*)?[ \t]*")
_LABEL = re.compile(
    r"^(?=[ \t]*\**(?:Thought|Action|Observation|Final Answer)[ \t]*\d*\**:)", re.MULTILINE
)
"""The beginning of a part of such text."""
_FINISH = ("finish", "final answer")
"""The actions whose argument is the answer."""
_CONTENTS = ("parts", "content", "value", "text")
_CALL_IDS = ("tool_call_id", "tool_use_id", "call_id")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "action", "queries", "code")
_OUTPUTS = ("output", "outputs", "results", "error")
"""The fields of a call that hold its result, if the provider runs the tool."""
_CALL = re.compile(r"\w+_call|(?:\w+_)?tool_use|functionCall")
"""The kinds of calls, including those of tools that the provider runs, such as `mcp_call`."""
_RESULT = re.compile(r"\w+_call_output|(?:\w+_)?tool_result|tool|function(?:R|_r)esponse")
_OF_GEMINI = re.compile(r"function_?call|function_?response|inline_?data", re.IGNORECASE)
"""The keys that say what a Gemini block is; in other formats, its `type` does."""
_LEFT_OUT = ("isSidechain", "isMeta")
"""The fields that mark log lines outside the conversation."""
_OF_LINE = ("type", *_LEFT_OUT)
"""The fields of a log line that are kept along with the message that it contains."""
NOTHING = {
    *("reasoning", "null", "system_prompt", "recall", "change_agent_state"),
    *("summary", "session_meta", "event_msg", "turn_context", "file-history-snapshot"),
}
"""The kinds of log records that say nothing about the agent's actions."""
_SILENT = {
    *NOTHING,
    *("agent_state_changed", "condensation", "condensation_request"),
    *("pause", "resume", "start", "stop"),
}
"""Events of OpenHands in which the agent does nothing."""
_TEXTS = ("text", "input_text", "output_text")
_BINARY = re.compile(r"\"(?:data:[\w/.+-]+;base64,)?[A-Za-z0-9+/_-]{200,}={0,2}\"")
"""A string in JSON that holds an image or the like."""


def messages_of(values: Sequence[Any]) -> list[BaseMessage]:
    """Return messages from LangChain, a provider, or an agent's log.

    The providers are OpenAI (chat, functions, responses), Anthropic and Gemini; the logs are those
    of ShareGPT, SWE-agent and OpenHands, coding agents' sessions, and ReAct text. Text, tool calls
    and their results are kept. Arguments that are not a JSON object are kept as a string, under the
    name `arguments`.

    Raises:
        ValueError, KeyError, TypeError: The values are not messages.
    """
    if isinstance(values, (str, Mapping)):
        raise TypeError(f"they are a {type(values).__name__}, not a list")
    if not values:
        raise ValueError("the list is empty")
    messages: list[Any] = []
    ids: dict[str | None, str] = {}  # of each tool's last call; under "", of the last call to any
    for value in values:
        for message in _plain(value) if isinstance(value, Mapping) else [value]:
            if isinstance(message, dict):
                for call in message.get("tool_calls", ()):
                    call["id"] = ids[call["name"]] = ids[""] = call["id"] or f"call {len(messages)}"
                if message["role"] == "tool":
                    name = message.pop("name")
                    last = ids.get(name) or ids.get("") or name or "call"
                    message["tool_call_id"] = message["tool_call_id"] or last
            messages.append(message)
    if not messages:
        raise ValueError("it has no message that can be read")
    return convert_to_messages(messages)


def unknown_kind(value: Mapping[str, Any]) -> str:
    """Return the kind of a log record that has no role and is not a message, or "" for others."""
    return _unknown(_unwrapped(value))


def _unknown(value: Mapping[str, Any]) -> str:
    kind = _ROLES.get(_kind(value), _kind(value))
    is_known = (
        first_of(value, ("role", "from", "action", "observation")) is not None
        or kind in {*NOTHING, "user", "assistant", "system"}
        or _CALL.fullmatch(kind)
        or _RESULT.fullmatch(kind)
    )
    return "" if is_known else kind or "without a kind"


def _plain(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a value's messages in OpenAI's format, but with LangChain's tool calls."""
    value = _unwrapped(value)
    if "observation" in value or ("action" in value and not _CALL.fullmatch(_kind(value))):
        yield from _step(value)
        return
    kind = str(value.get("role") or value.get("from") or _kind(value))
    role = _ROLES.get(kind, kind)
    is_of_log = role == "system" and "subtype" in value  # such as how long a turn took
    content = first_of(value, _CONTENTS)
    if not role and content is not None:  # it may be the request
        raise ValueError("a message has no role")
    if role in NOTHING or is_of_log or any(map(value.get, _LEFT_OUT)) or _unknown(value):
        return
    if _RESULT.fullmatch(role):
        blocks = content if isinstance(content, list) else []
        parts = (each for each in blocks if isinstance(each, Mapping))
        results = [each for each in parts if _RESULT.fullmatch(_kind(each))]
        yield from map(_result, results or [value])
    elif _CALL.fullmatch(role):
        call = parsed(content) if isinstance(content, str) else value
        calls = [*map(_call, call if isinstance(call, list) else [call])]
        yield {"role": "assistant", "content": "", "tool_calls": calls}
        if output := next(filter(None, map(value.get, _OUTPUTS)), None):
            is_error = bool(value.get("error"))
            yield _result({"output": output, "call_id": calls[-1]["id"], "is_error": is_error})
    else:
        yield from _said(role, content, value)


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message without the wrapper of LangChain or a coding agent's log."""
    match value:
        case {"lc": _, "id": [*_, name], "kwargs": dict() as fields}:
            kind = str(name).removesuffix("Chunk").removesuffix("Message").lower()
            return {**fields, "type": kind}
        case _:
            pass
    if "role" in value and not value.keys().isdisjoint(_CONTENTS):
        return value
    for name in ("data", "payload", "message"):
        if isinstance(inner := value.get(name), Mapping):
            return {**{key: value[key] for key in _OF_LINE if key in value}, **inner}
    return value


def _said(role: str, content: object, value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a message from a person or a model with its calls, and any results in its blocks."""
    blocks = content if isinstance(content, list) else [content or ""]
    parts = [each for each in blocks if isinstance(each, Mapping)]
    calls: list[dict[str, Any]] = []
    extra = value.get("additional_kwargs")
    for fields in (value, extra if isinstance(extra, Mapping) else {}):  # LangChain may use both
        function = fields.get("function_call")
        said = [*(fields.get("tool_calls") or ()), *([function] if function else ())]
        calls = calls or [*map(_call, said)]
    ids = {call["id"] for call in calls if call["id"]}  # LangChain messages have their calls twice
    in_parts = (_call(each) for each in parts if _CALL.fullmatch(_kind(each)))
    calls += [call for call in in_parts if not call["id"] or call["id"] not in ids]
    yield from (_result(each) for each in parts if _RESULT.fullmatch(_kind(each)))
    text = "\n".join(filter(None, map(_text, blocks)))
    if role == "user" and (observation := _OBSERVATION.match(text)):
        yield _result({"content": text[observation.end() :]})
    elif role == "assistant" and not calls and _ACTION.search(text):
        yield from _react(text)
    elif text or calls or not isinstance(content, list):
        yield {"role": role, "content": text, "tool_calls": calls}


def _react(text: str) -> Iterator[dict[str, Any]]:
    """Yield the calls in ReAct text, each with the text before it, their results and the answer."""
    said = ""
    for part in _LABEL.split(text):
        if observation := _OBSERVATION.match(part):
            if result := part[observation.end() :].strip():  # else it follows in a message
                yield _result({"content": result})
        elif action := _ACTION.search(part):
            name, in_brackets, in_parentheses, other_name, below = action.groups("")
            name, arguments = name or other_name, f"{in_brackets}{in_parentheses}{below}".strip()
            said += part[: action.start()]
            if name.lower() in _FINISH:
                said += arguments + part[action.end() :]
                continue
            call = _call({"name": name, "input": arguments})
            yield {"role": "assistant", "content": said.strip(), "tool_calls": [call]}
            said = part[action.end() :]
        else:
            said += part
    if said.strip():
        yield {"role": "assistant", "content": said.strip(), "tool_calls": []}


def _step(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages in a SWE-agent step or an OpenHands event."""
    action, observed = value.get("action"), value.get("observation")
    args: Any = value.get("args")
    is_event = isinstance(args, Mapping)
    fields = {**value, **args} if is_event else value
    silent = _SILENT if is_event else NOTHING
    if is_event and action == "system":
        yield {"role": "system", "content": str(fields.get("content") or "")}
    elif action in ("message", "finish"):
        role = "user" if value.get("source") == "user" else "assistant"
        texts = map(fields.get, ("final_thought", "content", "message", "thought"))
        yield {"role": role, "content": str(next(filter(None, texts), ""))}
    elif isinstance(action, str) and not (action in silent or value.get("source") == "environment"):
        name, arguments = "run", {"command": action}
        if is_event:
            name, arguments = action, {name: args[name] for name in args if name != "thought"}
        call = _call({"name": name, "args": arguments, "id": str(value.get("id", ""))})
        thought = str(fields.get("thought") or "")
        yield {"role": "assistant", "content": thought, "tool_calls": [call]}
        if isinstance(observed, str) and not is_event:
            yield _result({"content": observed})
    elif "cause" in value and str(observed) not in _SILENT:
        fields = {"content": value.get("content"), "call_id": str(value["cause"])}
        yield _result({**fields, "is_error": observed == "error"})


def parsed(text: str) -> Any:  # noqa: ANN401 - JSON is anything
    """Return the JSON value of a string, or the string itself."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text


def _kind(block: Mapping[str, Any]) -> str:
    """Return the kind of a block, or "" if it is not given."""
    given = (name for name in block if block[name] is not None)
    return str(block.get("type") or next(filter(_OF_GEMINI.fullmatch, given), ""))


def first_of(value: Mapping[str, Any], names: Iterable[str]) -> Any:  # noqa: ANN401 - JSON
    """Return the first of the given fields that a value has, or None if it has none."""
    return next((value[name] for name in names if value.get(name) is not None), None)


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool call in LangChain's format."""
    call = first_of(block, ("function", "custom", "functionCall", "function_call")) or block
    arguments = first_of(call, _ARGUMENTS) or {}
    if isinstance(arguments, str):
        arguments = parsed(arguments)
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    id_ = call.get("call_id") or call.get("id") or block.get("id")
    name = call.get("name") or block["type"].removesuffix("_call")
    return {"name": str(name), "args": arguments, "id": id_, "type": "tool_call"}


def _result(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool result in OpenAI's format; without an id, the tool's name identifies it."""
    result = first_of(block, ("functionResponse", "function_response")) or block
    content = first_of(result, ("output", "response", *_CONTENTS))
    text = "\n".join(map(_shown, content if isinstance(content, list) else [content]))
    is_error = block.get("is_error") or block.get("status") == "error"
    return {
        "role": "tool",
        "content": text,
        "tool_call_id": first_of(block, _CALL_IDS)
        or (None if result is block else result.get("id")),
        "name": result.get("name") or "",
        "status": "error" if is_error else "success",
    }


def _shown(block: object) -> str:
    """Return the text of a block in a result, or the JSON of anything else without binary data."""
    if not isinstance(block, Mapping):
        return _text(block)
    given = {name for name in block if block[name] is not None}
    if block.get("type") in _TEXTS or given == {"text"}:
        return _text(block)
    return _BINARY.sub('"…"', json.dumps(block, ensure_ascii=False))


def _text(block: object) -> str:
    """Return the text of a block, or the JSON of a block without a kind."""
    if block is None:
        return ""
    if isinstance(block, Mapping):
        if block.get("thought") is True:  # reasoning of Gemini
            return ""
        text = block.get("text")
        if isinstance(text, Mapping):  # in Assistants of OpenAI
            text = text.get("value")
        if isinstance(text, str):
            return text
        if _kind(block):
            return ""
    return block if isinstance(block, str) else json.dumps(block, ensure_ascii=False)
