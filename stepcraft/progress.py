"""What a run tells on `stream_mode="custom"` while it works.

Every event is a JSON object with a `type`: `progress` says in a sentence and in small data what a step does or did,
`segment` holds a finished part of an answer, `answer` the final answer. Nodes describe themselves; `tell` writes the
event, so that a description can neither fail a run nor show a secret.
"""

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Literal, NamedTuple, NotRequired

from langgraph.runtime import get_runtime
from langgraph.types import StreamWriter
from typing_extensions import TypedDict

from stepcraft.schema import described
from stepcraft.secrets import without_secrets
from stepcraft.segments import Segment, TracedSentence

Status = Literal["started", "finished", "skipped", "failed"]

_LONGEST_TEXT = 500
_LONGEST_VALUE = 200
_MARGIN = 2_000
"""Characters behind a cut that are masked with the text before it, so that no half secret stays."""
_MOST_ITEMS = 20


@described
class Settled(TypedDict):
    """The outcome for a thought of RAT."""

    thought: int
    """Number of the thought, from 1."""
    changed: bool
    """Whether it was corrected."""
    skipped: str
    """Why it was not checked, "" if it was."""


@described
class ProgressData(TypedDict, total=False):
    """What a step tells of its work. A text has at most 200 characters, a list at most 20 items."""

    reason: str
    """Why the step failed or was skipped."""
    warnings: list[str]
    """What the step adds to the warnings of the run."""
    cached: bool
    """True where the reply was in the cache, so that no model was asked."""
    provisional: bool
    """True in a step of RAT that runs ahead: only what `accept` reports counts."""
    question: str
    """The question that the step is about."""
    questions: list[str]
    """The questions that were asked."""
    queries: list[str]
    """What is searched for."""
    found: int
    """Number of passages or procedures that are found."""
    titles: list[str]
    """The titles of the first five that were found."""
    ids: list[str]
    """The ids of the first five that were found."""
    familiar: bool
    """Whether the model knows what the goal of AAG is about."""
    steps: int
    """Number of steps of the procedure."""
    doubts: int
    """Number of steps with something that the model doubts."""
    changes: int
    """Number of steps that were changed, added or removed."""
    edits: list[str]
    """The edits that the critic asks for."""
    names: int
    """Number of names in the code of the steps."""
    unverified: list[str]
    """The names that stand neither in the goal nor in any procedure."""
    thought: int
    """Number of the thought that the step is about, from 1."""
    thoughts: int
    """Number of thoughts of the draft."""
    settled: list[Settled]
    """The thoughts that are checked now."""
    discarded: int
    """Number of steps that ran ahead and are repeated, because a thought before them was corrected."""
    changed: bool
    """Whether the text was changed; of a provisional step, whether a change is proposed."""
    kind: str
    """The kind of the answer: short, multihop or long."""
    topic: str
    """The topic that the step is about."""
    topics: list[str]
    """The topics that were planned."""
    segments: int
    """Number of segments of the answer."""
    sentences: int
    """Number of sentences that were selected, or that the answer has."""
    unsupported: int
    """Number of sentences of the answer that rest on no evidence."""
    method: str
    """The graph that answers a message of the chat."""
    searches: int
    """Number of searches that the agent made."""
    procedures: int
    """Number of procedures that were extracted from a document."""
    rejected: int
    """Number of tasks of a document that are no procedures, or were not kept."""
    response: str
    """What a person said of the steps: accept, edit or reject."""
    remembered: str
    """The id of the procedure that the steps were remembered as."""


@described
class ProgressEvent(TypedDict):
    """What a step does or did."""

    type: Literal["progress"]
    graph: str
    """The name of the graph, such as "aag"."""
    node: str
    """The name of the node, as in the drawing of the graph."""
    status: Status
    """`started` before a model is asked or something is searched; then `finished`, `skipped` where there was nothing
    to do or a limit is reached, or `failed`."""
    text: str
    """A sentence for a person."""
    data: ProgressData
    """The same as data; which fields there are depends on the node."""


@described
class SegmentEvent(TypedDict):
    """A finished part of an answer of RPG."""

    type: Literal["segment"]
    graph: str
    """The name of the graph."""
    segment: Segment
    """The segment, as in the result."""


@described
class AnswerEvent(TypedDict):
    """The final answer."""

    type: Literal["answer"]
    graph: str
    """The name of the graph."""
    answer: str
    """The answer, as in the result."""
    sentences: NotRequired[list[TracedSentence]]
    """Of RPG: the sentences of the answer, each with the ids of the passages that it rests on."""


Event = ProgressEvent | SegmentEvent | AnswerEvent
"""Every event on `stream_mode="custom"`."""


class Said(NamedTuple):
    """What a node says of its work."""

    text: str
    data: ProgressData = ProgressData()
    skipped: bool = False
    """Whether there was nothing to do, which the text gives the reason for."""


def tell(
    graph: str, node: str, status: Status, describe: Callable[[], Said], data: ProgressData | None = None
) -> None:
    """Stream what a step does or did, where anybody listens.

    Args:
        graph: The name of the graph.
        node: The name of the node.
        status: What became of the step; "finished" is "skipped" where the description says so.
        describe: Makes the sentence and its data. It is asked only where somebody listens. The state may be one that a
            person wrote, so a description that fails is replaced by the name of the node.
        data: What is told beside the description's data.
    """
    write = _writer()
    if write is None:
        return
    try:
        said = describe()
    except Exception:
        said = Said(f"{node}: {status}.")
    told: dict[str, Any] = {**(data or {}), **said.data}
    if said.skipped and status == "finished":
        status = "skipped"
        told.setdefault("reason", said.text)
    shown = {name: _shown(value) for name, value in told.items()}
    write(
        {
            "type": "progress",
            "graph": graph,
            "node": node,
            "status": status,
            "text": _masked(said.text, _LONGEST_TEXT),
            "data": shown,
        }
    )


def publish_segment(graph: str, segment: Segment) -> None:
    """Stream a finished part of an answer."""
    if write := _writer():
        write(SegmentEvent(type="segment", graph=graph, segment=segment))


def publish_answer(graph: str, state: Mapping[str, Any]) -> None:
    """Stream the answer of a finished run, with its traced sentences where the state has them."""
    write = _writer()
    if write and "answer" in state:
        event = AnswerEvent(type="answer", graph=graph, answer=state["answer"])
        if "sentences" in state:
            event["sentences"] = state["sentences"]
        write(event)


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 step", "7 steps"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def quoted(text: str) -> str:
    """The beginning of a text on one line in quotation marks, as a part of a sentence."""
    return f"\u201c{_masked(text, 120)}\u201d"


def _writer() -> StreamWriter | None:
    """The writer of the step in progress; None where nobody listens.

    A writer that somebody reads closes over its queue. One that closes over nothing drops what it is given, and no
    sentence need be made for it.
    """
    # There is none where `update_state` asks a router for its way.
    runtime: Any = get_runtime()
    write: StreamWriter | None = getattr(runtime, "stream_writer", None)
    return None if isinstance(write, FunctionType) and write.__closure__ is None else write


def _masked(text: str, length: int) -> str:
    """A text on one line without secrets, cut to a length."""
    line = " ".join(text[: 2 * (length + _MARGIN)].split())
    masked = without_secrets(line[: length + _MARGIN])
    return masked if len(masked) <= length else f"{masked[: length - 1].rstrip()}\u2026"


def _shown(value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
    """A value of JSON with all its texts masked and cut, and all its lists cut."""
    if isinstance(value, str):
        return _masked(value, _LONGEST_VALUE)
    if isinstance(value, Mapping):
        return {name: _shown(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_shown(item) for item in value[:_MOST_ITEMS]]
    return value
