"""Read conversations from a file, in the formats used by agents and their tools."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from stepcraft.building.messages import NOTHING, first_of, parsed, unknown_kind
from stepcraft.errors import Failed
from stepcraft.progress import counted
from stepcraft.records import records

_LISTS = ("messages", "contents", "conversations", "conversation", "traj", "history", "events")
"""The fields that hold the messages in LangChain, Gemini, ShareGPT, tau-bench and others."""
_STATES = ("values", "outputs", "data")
"""The fields that hold a state."""
_SYSTEM = ("system", "systemInstruction", "system_instruction", "instructions")
"""The fields that hold the system prompt of a request to Anthropic, Gemini or OpenAI."""
_IDS = ("sessionId", "session_id", "thread_id", "conversation_id", "conversationId")
"""The fields that name the thread of a record with a single message."""
_OUTCOMES = ("success", "succeeded", "resolved", "reward")


class Conversation(NamedTuple):
    """A single thread of messages."""

    place: str
    """The file and the line that it begins on."""
    id: str
    """Its own id, or "" if it has none."""
    state: Mapping[str, Any]
    """The state, with `messages`, or with a `question` and its `answer`."""
    feedback: dict[str, Any]
    """The scores by key."""
    note: str = ""
    """What was left out of its file, or ""."""
    error: str = ""
    """The error that ended the run, or ""."""
    last: bool = False
    """Whether the messages before its last request are of earlier runs."""


def conversations(path: str, failed: list[Failed]) -> Iterator[Conversation]:
    """Yield the conversations in a JSON file.

    Each record is one conversation: an object with a list of messages, the state of a LangGraph
    thread, a LangSmith run, an OpenAI request with its output, a trajectory, or just a list of
    messages. Records with a single message each, such as those of a coding agent's session, are the
    messages of one conversation if they name the same thread.

    Args:
        path: The file.
        failed: Receives the records that are not conversations.

    Raises:
        BadInput: The file cannot be read.
    """
    sessions: dict[str, Conversation] = {}
    unknown: list[str] = []
    named = ""  # the session whose metadata was read last
    for record in records(Path(path)):
        place = f"{path}:{record.line}"
        values = {"messages": record.items} if record.items else record.values
        if values is None:
            failed.append(Failed(place, record.reason))
            continue
        values = {name: _parsed(name, value) for name, value in values.items()}
        if str(values.get("type")) in NOTHING and values.keys().isdisjoint(_LISTS):
            named = _named(values) or named
        elif not _is_entry(values):
            yield _conversation(place, values)
        elif kind := unknown_kind(values):
            unknown.append(kind)
        else:
            name = _id_of(values, _IDS) or named
            session = sessions.setdefault(name, Conversation(place, name, {"messages": []}, {}))
            session.state["messages"].append(values)
    note = left_out(path, unknown)
    if note and not sessions:
        failed.append(Failed(path, note))
    for session in sessions.values():
        messages = session.state["messages"]
        if all(each.get("isSidechain") for each in messages):  # the log of a subagent
            messages[:] = [{**each, "isSidechain": False} for each in messages]
        yield session._replace(note=note)


def _parsed(name: str, value: Any) -> Any:  # noqa: ANN401 - JSON is anything
    """Return the value of a field; in tables, a list of messages is a JSON string."""
    if name in (*_LISTS, "trajectory") and isinstance(value, str) and value[:1] == "[":
        return parsed(value)
    return value


def left_out(where: str, kinds: Sequence[str]) -> str:
    """Return a note on the kinds of records that were left out, or "" if there are none."""
    if not kinds:
        return ""
    names = ", ".join(sorted({*kinds}))
    return f"{where}: {counted(len(kinds), 'record')} of unknown kinds left out: {names}"


def _conversation(place: str, values: dict[str, Any]) -> Conversation:
    """Return the conversation in a record."""
    if "run_type" in values or {"inputs", "outputs"} <= values.keys():
        state, error = run_of(values)
        id_ = _id_of(values, ("id", "thread_id"))  # it is only a part of its thread
        last = "run_type" in values
        return Conversation(place, id_, state, feedback_of(values), error=error, last=last)
    return Conversation(place, _id_of(values, ["thread_id"]), state_of(values), feedback_of(values))


def _id_of(values: Mapping[str, Any], names: Iterable[str]) -> str:
    id_ = first_of(values, names)
    return "" if id_ is None else str(id_)


def _named(values: Mapping[str, Any]) -> str:
    """Return the id of the session whose log this record begins, or "" for others."""
    payload = values.get("payload") if values.get("type") == "session_meta" else None
    return _id_of(payload, ["id"]) if isinstance(payload, dict) else ""


def _is_entry(values: Mapping[str, Any]) -> bool:
    """Return whether a record is a single message or event in a session."""
    states = (each for each in (values, *map(values.get, _STATES)) if isinstance(each, dict))
    lists = (each.get(name) for each in states for name in (*_LISTS, "trajectory"))
    if any(map(_is_list, lists)) or {"question", "answer"} <= values.keys():
        return False
    is_of_session = "sessionId" in values or {"type", "payload"} <= values.keys()
    return is_of_session or not unknown_kind(values)


def state_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a conversation, with its messages under the name `messages`."""
    for name in _STATES:
        if isinstance(inner := values.get(name), dict):
            inputs = values.get("inputs")
            inner = {**(inputs if isinstance(inputs, dict) else {}), **inner}
            # The events of a LangSmith run are not messages.
            has_run = any(map(_is_list, map(inner.get, (*_LISTS, "trajectory", "output"))))
            is_all = has_run or not _history({**values, "events": []})
            values = inner if is_all else {**values, **inner}
            break
    history = _history(values)
    if _is_list(steps := values.get("trajectory")):  # in SWE-agent, whose history repeats it
        before = (each for each in history if not each.get("is_demo"))
        begin = takewhile(lambda each: each.get("role") != "assistant", before)
        return {"messages": [*begin, *steps]}
    if not history and _is_list(output := values.get("output")) and "input" in values:
        goal = values["input"]
        request = goal if isinstance(goal, list) else [{"role": "user", "content": str(goal)}]
        history = [*request, *output]
    if not history:
        return values
    system = first_of(values, _SYSTEM)
    system = system.get("parts") if isinstance(system, dict) else system
    if system and isinstance(system, (str, list)):
        history = [{"role": "system", "content": system}, *history]
    return {**values, "messages": history}


def run_of(values: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the state of a LangSmith run, and the error that ended it or ""."""
    error = str(values.get("error") or "").strip()
    reason = error.partition("Traceback (most recent call last)")[0].strip()
    state = state_of({**values, "outputs": values.get("outputs") or {}})  # none if it failed
    return state, reason or error.rpartition("\n")[2]


def _history(values: Mapping[str, Any]) -> list[Any]:
    return next(filter(_is_list, map(values.get, _LISTS)), [])


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)


def feedback_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the feedback scores, or an environment's verdict as the score `success`."""
    scores = values.get("feedback")
    stats = values.get("feedback_stats")
    if isinstance(scores, list):
        scores = {
            str(each.get("key")): each.get("score") for each in scores if isinstance(each, dict)
        }
    elif not isinstance(scores, dict) and isinstance(stats, dict):
        scores = {key: each.get("avg") for key, each in stats.items() if isinstance(each, dict)}
    if isinstance(scores, dict) and scores:
        return scores
    return {"success": first_of(values, _OUTCOMES)}
