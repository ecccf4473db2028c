"""Messages of conversations in the forms in which LangChain and the providers write them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

_ROLES = {"model": "assistant", "human": "user", "ai": "assistant", "function": "tool"}


def messages_of(values: Sequence[Any]) -> list[BaseMessage]:
    """Return messages of LangChain, OpenAI (chat, functions, responses), Anthropic or Gemini.

    Of their content the texts are kept, the calls of tools and their results. Arguments that are no
    JSON object stay as a text, under the name `arguments`.

    Raises:
        ValueError, KeyError, TypeError: They are no messages.
    """
    if not values:
        raise ValueError("the list is empty")
    messages: list[Any] = []
    ids: dict[str, str] = {}  # of the last call of each tool
    for value in values:
        for message in _plain(value) if isinstance(value, Mapping) else [value]:
            if isinstance(message, dict):
                for call in message.get("tool_calls", ()):
                    call["id"] = ids[call["name"]] = call["id"] or f"call {len(messages)}"
                if message["role"] == "tool":
                    name = message.pop("name")
                    message["tool_call_id"] = message["tool_call_id"] or ids.get(name, name)
            messages.append(message)
    return convert_to_messages(messages)


def _plain(value: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages that one value stands for: OpenAI's with LangChain's calls."""
    if value.get("lc"):
        kind = str(value["id"][-1]).removesuffix("Chunk").removesuffix("Message").lower()
        value = {"type": kind, **value["kwargs"]}
    elif isinstance(value.get("data"), Mapping):
        value = {"type": value["type"], **value["data"]}
    role, content = value.get("role") or value["type"], value.get("parts", value.get("content"))
    role = _ROLES.get(role, role)
    calls = [_call(each) for each in value.get("tool_calls") or ()]
    if value.get("function_call"):
        calls.append(_call(value["function_call"]))
    if role == "reasoning":
        return
    if role == "function_call_output":
        yield _result(value["output"], value["call_id"])
        return
    if role == "tool":
        is_error = value.get("status") == "error"
        yield _result(content, value.get("tool_call_id"), value.get("name"), is_error=is_error)
        return
    if role == "function_call":
        calls, role = [_call(value)], "assistant"
    blocks = content if isinstance(content, list) else [content or ""]
    parts = [each for each in blocks if isinstance(each, Mapping)]
    ids = {call["id"] for call in calls}  # LangChain's messages have their calls twice
    calls += [call for call in _calls(parts) if not call["id"] or call["id"] not in ids]
    yield from _results(parts)
    text = "\n".join(filter(None, map(_text, blocks)))
    if text or calls or not isinstance(content, list):
        yield {"role": role, "content": text, **({"tool_calls": calls} if calls else {})}


def _calls(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the calls among the blocks of Anthropic or Gemini."""
    for block in blocks:
        if block.get("type") == "tool_use":
            yield _call(block)
        elif "functionCall" in block:
            yield _call(block["functionCall"])


def _results(blocks: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the results among the blocks of Anthropic or Gemini."""
    for block in blocks:
        if block.get("type") == "tool_result":
            is_error = bool(block.get("is_error"))
            yield _result(block.get("content"), block["tool_use_id"], is_error=is_error)
        elif "functionResponse" in block:
            reply = block["functionResponse"]
            yield _result(reply["response"], reply.get("id"), reply["name"])


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the call of a tool as LangChain has it."""
    inner = call.get("function") or call
    names = ("arguments", "args", "input")
    arguments: Any = next((inner[name] for name in names if inner.get(name)), {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except ValueError:
            arguments = {"arguments": arguments}
    if not isinstance(arguments, dict):
        arguments = {"arguments": arguments}
    id_ = call.get("call_id") or call.get("id")
    return {"name": str(inner["name"]), "args": arguments, "id": id_, "type": "tool_call"}


def _result(
    content: object, id_: str | None, name: str | None = "", *, is_error: bool = False
) -> dict[str, Any]:
    """Return the result of a call as OpenAI has it; one without an id has the tool's name."""
    text = "\n".join(map(_text, content if isinstance(content, list) else [content]))
    status = "error" if is_error else "success"
    return {"role": "tool", "content": text, "tool_call_id": id_, "name": name, "status": status}


def _text(block: object) -> str:
    """Return the text of a block; of a result that is no text, its JSON."""
    if isinstance(block, Mapping):
        if isinstance(text := block.get("text"), str):
            return text
        if "type" in block or {*block} & {"functionCall", "functionResponse", "inlineData"}:
            return ""
    return block if isinstance(block, str) else json.dumps(block, ensure_ascii=False)
