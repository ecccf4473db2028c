"""Transcripts of what agents did: runs exported from LangSmith, and threads of messages with calls of tools.

A file holds one record a line, in any mixture of these forms:

- runs as LangSmith gives them (`Client.list_runs`, `read_run(load_child_runs=True)`, bulk export): those of one trace
  become one transcript, in whatever order and lines they stand;
- threads: an object with `messages` (LangChain's or OpenAI's), or the state of a LangGraph thread (`values.messages`), of
  which the longest counts where one thread is there several times;
- single messages, a line each, which are one thread.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages

from stepcraft.building.documents import Document, Listed, Listing, Unreadable
from stepcraft.building.transcript import Call, Said, Transcript, as_text, parsed
from stepcraft.errors import BadInput, Failed
from stepcraft.records import Record, records
from stepcraft.secrets import excerpt

PREFIX = "traces:"

_ASKED = ("question", "goal", "task", "query", "input", "prompt", "request", "text", "topic")
_ANSWERED = ("answer", "output", "result", "response", "text", "content", "final_answer")
_UP = frozenset(
    {"thumbs_up", "thumbs up", "up", "good", "correct", "pass", "passed", "yes", "true", "positive"}
)
_DOWN = frozenset(
    {
        "thumbs_down",
        "thumbs down",
        "down",
        "bad",
        "incorrect",
        "fail",
        "failed",
        "no",
        "false",
        "negative",
    }
)
_KINDS = {"Human": "human", "AI": "ai", "System": "system", "Tool": "tool", "Function": "function"}
_UNKNOWN = "it is neither a run of LangSmith (run_type, inputs, outputs) nor a thread (messages, or values.messages)"

_MALFORMED = (AttributeError, KeyError, TypeError, ValueError, RecursionError)
"""What reading a record raises whose values are not what their names say."""


def list_traces(spec: str) -> Listing:
    """List the transcripts of a file.

    Args:
        spec: `traces:FILE.jsonl`, or the path alone; what `stepcraft.records` reads, .json and .csv among it.

    Raises:
        BadInput: the file cannot be read, or nothing in it is a run or a thread.
    """
    path = spec.removeprefix(PREFIX)
    found = _Collected(f"{PREFIX}{path}?run=")
    read = 0
    for record in records(Path(path)):
        read += 1
        if reason := found.take(record):
            found.failed.append(Failed(f"{path}:{record.line}", reason))
    listing = Listing(failed=found.failed)
    for transcript in found.transcripts():
        document = _document(transcript)
        if isinstance(document, Failed):
            listing.failed.append(document)
        else:
            listing.documents.append(Listed(document.source, partial(_same, document), spec))
    if not read:
        raise BadInput(f"{path} is empty: it holds no runs")
    if not listing.documents:
        first = listing.failed[0] if listing.failed else Failed(path, "it holds no runs")
        raise BadInput(
            f"no record of {path} is a run or a thread; {first.where}: {first.reason}. "
            "Export runs of LangSmith or threads with messages as JSON, one a line"
        )
    return listing


def document_of_runs(runs: Iterable[Mapping[str, Any]], source: str) -> Document:
    """The transcript of the runs of one trace.

    Args:
        runs: the runs as JSON, in any order, nested or not.
        source: what the transcript comes from.

    Raises:
        Unreadable: there are none, or they cannot be read.
    """
    try:
        flat = [_run_of(run) for whole in runs for run in _flattened(whole)]
        if not flat:
            raise Unreadable("it has no runs")
        return _trace(flat, source).document()
    except _MALFORMED as error:
        raise Unreadable(_why(error)) from error


def _why(error: Exception) -> str:
    return f"it cannot be read: {type(error).__name__}: {excerpt(str(error))}"


def _same(document: Document) -> Document:
    return document


def _document(transcript: Transcript) -> Document | Failed:
    try:
        return transcript.document()
    except RecursionError:
        return Failed(transcript.source, "its values are nested too deeply")


@dataclass
class _Run:
    """What of a run goes into a transcript; the rest, most of an export, is not kept."""

    id: str
    parent: str
    trace: str
    order: tuple[str, str]
    """By `dotted_order`, else by when it began."""
    kind: str
    name: str
    inputs: Any = None
    outputs: Any = None
    error: str = ""
    ended: bool = True
    tools: dict[str, str] = field(default_factory=dict[str, str])
    instructions: str = ""
    verdict: tuple[bool | None, str] = (None, "")


class _Collected:
    """The runs and threads of a file, put together.

    Args:
        source: the beginning of the sources of its transcripts, which their ids follow.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.failed: list[Failed] = []
        self._runs: dict[str, _Run] = {}
        self._threads: dict[str, tuple[tuple[int, str, bool], Transcript]] = {}
        self._loose: list[BaseMessage] = []

    def take(self, record: Record) -> str:
        """Take a record; return why it is of no use, "" if it is."""
        values = record.values
        if values is None:
            return record.reason
        try:
            if "run_type" in values:
                for run in map(_run_of, _flattened(values)):
                    self._runs[run.id or f"line {record.line}.{len(self._runs)}"] = run
            elif (state := _state(values)) is not None:
                self._add_thread(values, state, record.line)
            elif message := _message(values):
                self._loose.append(message)
            else:
                return _UNKNOWN
        except _MALFORMED as error:
            return _why(error)
        return ""

    def transcripts(self) -> Iterator[Transcript]:
        """The transcripts of all that was taken; a trace that cannot be read is among the failed."""
        traces: dict[str, list[_Run]] = {}
        for run in self._runs.values():
            traces.setdefault(self._trace_id(run), []).append(run)
        for id_, runs in traces.items():
            try:
                yield _trace(runs, self.source + id_)
            except _MALFORMED as error:
                self.failed.append(Failed(self.source + id_, _why(error)))
        for _, thread in self._threads.values():
            yield thread
        if self._loose:
            yield _thread(self._loose, f"{self.source}messages")

    def _trace_id(self, run: _Run) -> str:
        seen = {run.id}
        while not run.trace and run.parent in self._runs and run.parent not in seen:
            run = self._runs[run.parent]
            seen.add(run.id)
        return run.trace or run.parent or run.id

    def _add_thread(self, values: Mapping[str, Any], state: Sequence[object], line: int) -> None:
        messages = [message for value in state if (message := _message(value))]
        id_ = _thread_id(values) or f"line {line}"
        thread = _thread(messages, self.source + id_)
        thread.tools = _tools(values.get("tools"))
        verdict = _feedback(values)
        unfinished = values.get("next") or values.get("status") in {
            "interrupted",
            "busy",
            "pending",
        }
        if values.get("status") == "error":
            verdict = False, "it ended with an error"
        elif unfinished and verdict[0] is None:
            verdict = False, "it had not ended when it was exported"
        thread.succeeded, thread.outcome = verdict
        # Of a history the state that came last.
        rank = len(messages), str(values.get("created_at") or ""), not unfinished
        if id_ not in self._threads or rank > self._threads[id_][0]:
            self._threads[id_] = rank, thread


def _flattened(run: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A run and all below it, which it may hold as `child_runs`."""
    rest = [run]
    while rest:
        run = rest.pop()
        yield run
        above = {"parent_run_id": run.get("id"), "trace_id": run.get("trace_id")}
        children = parsed(run.get("child_runs"))
        rest += [
            {**above, **{name: value for name, value in child.items() if value is not None}}
            for child in (cast("list[object]", children) if isinstance(children, list) else [])
            if isinstance(child, Mapping)
        ]


def _run_of(values: Mapping[str, Any]) -> _Run:
    """A run of LangSmith; texts that hold JSON, as in a bulk export, are read."""
    kind = str(values.get("run_type") or "").lower()
    dotted = str(values.get("dotted_order") or "")
    path = [part[-36:] for part in dotted.split(".")] if dotted else []
    parents = parsed(values.get("parent_run_ids")) or path[:-1]
    extra = _mapping(values.get("extra"))
    inputs = _mapping(values.get("inputs"))
    run = _Run(
        id=str(values.get("id") or (path[-1] if path else "")),
        parent=str(values.get("parent_run_id") or (parents[-1] if parents else "")),
        trace=str(values.get("trace_id") or (path[0] if path else "")),
        order=(dotted, str(values.get("start_time") or "")),
        kind=kind,
        name=str(values.get("name") or kind),
        error=_first_of_error(values.get("error")),
        ended=str(values.get("status") or "").lower() != "pending"
        and bool(values.get("end_time", True)),
    )
    if kind == "llm":
        settings = [_mapping(extra.get(name)) for name in ("invocation_params", "options")]
        for given in (*settings, inputs):
            run.tools |= _tools(given.get("tools") or given.get("functions"))
        asked = _messages(inputs)
        run.instructions = asked[0].text if asked and asked[0].type == "system" else ""
    if kind in {"tool", "retriever"} or not run.parent:
        run.inputs, run.outputs = inputs, parsed(values.get("outputs"))
        run.verdict = _feedback(values)
    return run


def _trace(runs: list[_Run], source: str) -> Transcript:
    """The transcript of a trace: of its root's messages or of its runs of tools, whichever shows more calls."""
    runs = sorted(runs, key=lambda run: run.order)
    known = {run.id: run for run in runs}
    root = next((run for run in runs if not run.parent), None) or next(
        (run for run in runs if run.parent not in known), runs[0]
    )
    inputs, outputs = _mapping(root.inputs), _mapping(root.outputs)
    before, during = _conversation(_messages(inputs), _messages(outputs))
    thread = _thread(during, source)
    transcript = Transcript(
        source,
        goal=thread.goal or _text_of(inputs, _ASKED),
        before=[message.text for message in before],
        instructions=thread.instructions
        or next((run.instructions for run in runs if run.instructions), ""),
        tools={name: what for run in runs for name, what in run.tools.items()},
        events=thread.events,
        answer=thread.answer or _text_of(outputs, _ANSWERED),
    )
    if len(calls := _calls(runs, known)) > len(transcript.calls):
        transcript.events = [*calls]
    transcript.succeeded, transcript.outcome = root.verdict
    if root.error:
        transcript.succeeded, transcript.outcome = False, f"it ended with an error: {root.error}"
    elif not root.ended and root.verdict[0] is None:
        transcript.succeeded, transcript.outcome = False, "it had not ended when it was exported"
    return transcript


def _conversation(
    asked: list[BaseMessage], given: list[BaseMessage]
) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """What was said before a run's request, and all from that on: a thread's state holds its earlier runs as well."""
    requests = [message for message in asked if message.type == "human"]
    if not requests:
        return [], given or asked
    last = requests[-1]
    whole = given or asked
    places = [
        place
        for place, message in enumerate(whole)
        if message.type == "human"
        and (message.id == last.id if last.id else message.text == last.text)
    ]
    if not places:
        return requests[:-1], [last, *whole]
    system = [message for message in whole[: places[-1]] if message.type == "system"]
    earlier = [message for message in whole[: places[-1]] if message.type == "human"]
    return earlier, [*system, *whole[places[-1] :]]


def _calls(runs: list[_Run], known: Mapping[str, _Run]) -> list[Call]:
    """The runs of tools, and of retrievers that no tool started, in order."""
    calls: list[Call] = []
    for run in runs:
        above = _above(run, known)
        if run.kind == "retriever" and any(other.kind == "tool" for other in above):
            continue
        if run.kind not in {"tool", "retriever"} or any(
            other.kind == "tool" and (other.name, other.inputs) == (run.name, run.inputs)
            for other in above
        ):
            continue
        inputs, outputs = _mapping(run.inputs), _mapping(run.outputs)
        result = outputs.get("output", outputs.get("documents", run.outputs))
        call = Call(
            run.name,
            parsed(inputs["input"]) if set(inputs) == {"input"} else inputs,
            error=run.error,
        )
        if isinstance(result, Mapping) and (message := _message(cast("Mapping[str, Any]", result))):
            _add_result(call, message)
        else:
            call.result = result or None
        calls.append(call)
    return calls


def _above(run: _Run, known: Mapping[str, _Run]) -> list[_Run]:
    found: list[_Run] = []
    while (parent := known.get(run.parent)) and parent not in found:
        found.append(parent)
        run = parent
    return found


def _thread(messages: Sequence[BaseMessage], source: str) -> Transcript:
    """The transcript of messages: the first request is the goal, a last text without calls the answer."""
    transcript = Transcript(source)
    calls: dict[str, Call] = {}
    for message in messages:
        text = message.text
        if message.type == "system":
            transcript.instructions = transcript.instructions or text
        elif message.type == "human":
            if transcript.goal:
                transcript.events.append(Said("user", text))
            else:
                transcript.goal = text
        elif isinstance(message, AIMessage):
            if text.strip():
                transcript.events.append(Said("agent", text))
            for asked in message.tool_calls:
                call = Call(asked["name"], asked["args"])
                calls[asked["id"] or str(len(calls))] = call
                transcript.events.append(call)
        elif isinstance(message, ToolMessage) and (made := calls.get(message.tool_call_id)):
            _add_result(made, message)
    if (
        transcript.events
        and isinstance(last := transcript.events[-1], Said)
        and last.speaker == "agent"
    ):
        transcript.answer = last.text
        transcript.events.pop()
    return transcript


def _add_result(call: Call, message: BaseMessage) -> None:
    if isinstance(message, ToolMessage) and message.status == "error":
        call.error = message.text or "it gave no reason"
    else:
        call.result = message.text


def _state(values: Mapping[str, Any]) -> Sequence[object] | None:
    """The messages of a thread, or of its state; None if the record is none."""
    for holder in (values, _mapping(values.get("values"))):
        messages = parsed(holder.get("messages"))
        if isinstance(messages, list):
            return cast("list[object]", messages)
    return None


def _thread_id(values: Mapping[str, Any]) -> str:
    configured = _mapping(_mapping(values.get("config")).get("configurable"))
    places = (
        values,
        _mapping(values.get("checkpoint")),
        _mapping(values.get("metadata")),
        configured,
    )
    named = (str(place["thread_id"]) for place in places if place.get("thread_id"))
    return next(named, str(values.get("id") or ""))


def _messages(values: Mapping[str, Any]) -> list[BaseMessage]:
    """The messages of a run's inputs or outputs, whichever way they are written; none if there are none."""
    found = values.get("messages")
    if found is None and isinstance(inner := values.get("input", values.get("output")), Mapping):
        found = cast("Mapping[str, Any]", inner).get("messages")
    if isinstance(found, Mapping):
        found = [found]
    if not isinstance(found, list):
        return []
    items = cast("list[object]", found)
    if items and isinstance(items[0], list) and items[0] and not isinstance(items[0][0], str):
        items = cast("list[object]", items[0])  # a batch of one
    return [message for item in items if (message := _message(item))]


def _message(value: object) -> BaseMessage | None:
    """A message in LangChain's or OpenAI's form; None if it is none, or one that cannot be read."""
    if isinstance(value, Mapping):
        given = cast("Mapping[str, Any]", value)
        if isinstance(inner := given.get("data"), Mapping):  # messages_to_dict
            value = {"type": given.get("type"), **cast("Mapping[str, Any]", inner)}
        elif isinstance(inner := given.get("kwargs"), Mapping):  # as LangChain serialises objects
            names = given.get("id") or [""]
            kind = str(names[-1]).removesuffix("Chunk").removesuffix("Message")
            value = {"type": _KINDS.get(kind, kind), **cast("Mapping[str, Any]", inner)}
        kind = str(cast("Mapping[str, Any]", value).get("type") or "")
        if kind.endswith("MessageChunk"):
            value = {
                **cast("Mapping[str, Any]", value),
                "type": _KINDS.get(kind.removesuffix("MessageChunk"), kind),
            }
    elif not (isinstance(value, list) and len(cast("list[object]", value)) == 2):
        return None
    try:
        return convert_to_messages([cast("Any", value)])[0]
    except (ValueError, KeyError, TypeError, NotImplementedError):
        return None


def _tools(given: object) -> dict[str, str]:
    """The names of tools that a model was offered, with what they do."""
    found: dict[str, str] = {}
    for tool in cast("list[object]", given) if isinstance(given, list) else []:
        if isinstance(tool, str):
            found[tool] = ""
        elif isinstance(tool, Mapping):
            values = cast("Mapping[str, Any]", tool)
            values = _mapping(values.get("function")) or values
            if name := values.get("name"):
                found[str(name)] = str(values.get("description") or "")
    return found


def _text_of(values: Mapping[str, Any], names: Sequence[str]) -> str:
    """The text under the first of these names, with the other values behind it; all of them if there is none."""
    if len(values) == 1 and isinstance(inner := next(iter(values.values())), Mapping):
        return _text_of(cast("Mapping[str, Any]", inner), names)
    name = next(
        (name for name in names if isinstance(values.get(name), str) and values[name].strip()), ""
    )
    others = {
        key: value
        for key, value in values.items()
        if key != name and value not in (None, "", [], {})
    }
    if not name:
        return as_text(others) if others else ""
    return (
        f"{values[name]}\n\n{as_text(others)}" if others and names is _ASKED else str(values[name])
    )


def _feedback(values: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Whether people or evaluators found a run good, and which feedback says so; None where there is none.

    Scores above 0.5 are good, as are labels such as "thumbs_up". One that is not makes the run a failed one.
    """
    found: list[tuple[str, float]] = []
    for key, stats in _mapping(values.get("feedback_stats")).items():
        given = _mapping(stats)
        if isinstance(score := given.get("avg"), int | float):
            found.append((key, float(score)))
        else:
            labels = _mapping(given.get("values"))
            found += [
                (f"{key} {label!r}", score)
                for label in labels
                if (score := _score(label)) is not None
            ]
    listed = parsed(values.get("feedback"))
    for item in cast("list[object]", listed) if isinstance(listed, list) else []:
        given = _mapping(item)
        for value in (given.get("score"), given.get("value")):
            if (score := _score(value)) is not None:
                found.append((str(given.get("key") or "feedback"), score))
                break
    if not found:
        return None, ""
    key, worst = min(found, key=lambda one: one[1])
    return worst > 0.5, f"its feedback {key} is {worst:g}"


def _score(value: object) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    word = str(value).strip().lower()
    return 1.0 if word in _UP else 0.0 if word in _DOWN else None


def _first_of_error(error: object) -> str:
    """An error without its traceback, on one line."""
    return " ".join(str(error or "").partition("Traceback (most recent call last)")[0].split())


def _mapping(value: object) -> Mapping[str, Any]:
    """A mapping, or the one that a text holds as JSON; {} for anything else."""
    found = parsed(value)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}
