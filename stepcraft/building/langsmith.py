"""The traces of a project in LangSmith as threads; each is fetched when its turn comes."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import requests
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langsmith import Client
from langsmith.utils import LangSmithError, LangSmithNotFoundError, get_api_key, get_api_url
from urllib3.util import Retry

from stepcraft.building.documents import Document, Listed, Unreadable
from stepcraft.building.threads import messages_of, transcript
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.secrets import excerpt

_FIELDS = (
    "id",
    "trace_id",
    "parent_run_id",
    "dotted_order",
    "name",
    "run_type",
    "end_time",
    "error",
    "inputs",
    "outputs",
    "feedback_stats",
)


def list_traces(name: str, spec: str) -> Iterator[Listed]:
    """Yield the traces of a project, the newest first.

    LANGSMITH_ENDPOINT and LANGSMITH_API_KEY say where, and as whom.

    Args:
        name: The name of the project, with options: `?limit=200` for the newest so many, and
            `?filter=…` in LangSmith's filter language.
        spec: The source as it was named.

    Raises:
        BadInput: There is no such project or no key, or an option cannot be used.
        SourceFailure: LangSmith does not answer, or refuses.
    """
    project, _, rest = name.partition("?")
    options = dict(parse_qsl(rest, keep_blank_values=True))
    limit = options.pop("limit", "1000000")
    if not project or not limit.isdecimal() or limit == "0" or options.keys() - {"filter"}:
        raise BadInput(
            f"{excerpt(spec)} cannot be read; write langsmith:PROJECT?limit=200&filter=…, "
            "with a limit above 0"
        )
    if not get_api_key(None):
        raise BadInput(f"{excerpt(spec)} needs a key of LangSmith; set LANGSMITH_API_KEY")
    session = requests.Session()
    session.max_redirects = 0  # the key is in a header that is sent along wherever one leads
    client = Client(
        session=session,
        auto_batch_tracing=False,
        retry_config=Retry(total=0),
        timeout_ms=(3_000, 60_000),
        info={"version": "0"},  # else it is asked for
    )
    with _failures(project):
        session_id = str(client.read_project(project_name=project).id)
    for run in _runs(client, int(limit), session=[session_id], is_root=True, **options):
        source = f"langsmith:{project}?run={run['id']}"
        read = partial(_read, client, session_id, str(run["trace_id"]), source)
        yield Listed(source, read, spec)


def _runs(client: Client, limit: int, **query: object) -> Iterator[dict[str, Any]]:
    """Yield runs, the newest first."""
    # The client's own list_runs is deprecated; runs.query, which replaces it, follows redirects
    # with the key.
    body: dict[str, Any] = {**query, "select": _FIELDS, "limit": min(limit, 100), "cursor": None}
    while limit > 0:
        with _failures():
            reply = client.request_with_retries("POST", "/runs/query", json=body).json()
            runs, body["cursor"] = reply["runs"], (reply.get("cursors") or {}).get("next")
        yield from runs[:limit]
        limit = limit - len(runs) if runs and body["cursor"] else 0


@contextmanager
def _failures(project: str = "") -> Generator[None]:
    """Raise what the client raises as an error of ours."""
    place = f"LangSmith at {get_api_url(None)}"
    try:
        yield
    except LangSmithNotFoundError as error:
        raise BadInput(
            f"there is no project {excerpt(project)} in {place}; check the name"
        ) from error
    except (LangSmithError, requests.RequestException, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).partition("\nContent-Length")[0].split())
        raise SourceFailure(f"{place} cannot be read: {reason[:300]}") from error


def _read(client: Client, session: str, trace: str, source: str) -> Document:
    """Return a trace as a document.

    Raises:
        Unreadable: It has no runs, or they cannot be read.
        SourceFailure: LangSmith does not answer, or refuses.
    """
    runs = list(_runs(client, 1_000_000, session=[session], trace=trace))
    try:
        return thread_of(runs, source)
    except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
        reason = f"{type(error).__name__}: {excerpt(str(error))}"
        raise Unreadable(f"it cannot be read: {reason}") from error


def thread_of(runs: list[dict[str, Any]], source: str) -> Document:
    """Return the runs of one trace, in any order, as a document.

    The thread is the last request, the runs of tools, and the answer.
    """
    root = next(run for run in runs if not run.get("parent_run_id"))
    inputs, outputs = root.get("inputs") or {}, root.get("outputs") or {}
    messages = messages_of({"messages": [], **inputs, **outputs})
    thread = [message for message in messages if message.type == "system"]
    asked = [message for message in messages if message.type == "human"]
    thread += asked[-1:] or [HumanMessage(_text(inputs))]
    for run in sorted(runs, key=lambda run: str(run.get("dotted_order"))):
        if run["run_type"] == "tool":
            result = (run.get("outputs") or {}).get("output", "")
            content = result.get("content", "") if isinstance(result, Mapping) else result
            error, name = run.get("error"), str(run["id"])
            call = {"name": run["name"], "args": run.get("inputs") or {}, "id": name}
            status = "error" if error else "success"
            thread.append(AIMessage("", tool_calls=[call]))
            thread.append(ToolMessage(str(error or content), tool_call_id=name, status=status))
    thread.append(AIMessage(messages[-1].text if messages else _text(outputs)))
    feedback = [
        {"key": key, "score": stats.get("avg")}
        for key, stats in (root.get("feedback_stats") or {}).items()
    ]
    error = str(root.get("error") or "").partition("Traceback (most recent call last)")[0].strip()
    if not root.get("end_time"):
        error = error or "it had not ended"
    return transcript(thread, source, feedback, error)


def _text(values: Mapping[str, Any]) -> str:
    """Return the texts of a run's inputs or outputs."""
    return "\n\n".join(value for value in values.values() if isinstance(value, str))
