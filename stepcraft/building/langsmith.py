"""The runs of a project in LangSmith as threads of messages."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import requests
from langsmith import Client
from langsmith.utils import LangSmithError, LangSmithNotFoundError, get_api_key, get_api_url
from urllib3.util import Retry

from stepcraft.building.documents import Document, Listed, Unreadable
from stepcraft.building.threads import messages_of, transcript
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.secrets import excerpt

_FIELDS = ("id", "end_time", "error", "inputs", "outputs", "feedback_stats")


def list_runs(name: str, spec: str) -> Iterator[Listed]:
    """Yield the root runs of a project, the newest first.

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
    left = int(limit)
    with _failures(project):
        session_id = str(client.read_project(project_name=project).id)
    body: dict[str, Any] = {
        **options,
        "session": [session_id],
        "is_root": True,
        "select": _FIELDS,
        "limit": min(left, 100),
    }
    while left > 0:
        # The client's own list_runs is deprecated; runs.query, which replaces it, follows redirects
        # with the key.
        with _failures(project):
            reply = client.request_with_retries("POST", "/runs/query", json=body).json()
            runs, body["cursor"] = reply["runs"], (reply.get("cursors") or {}).get("next")
        for run in runs[:left]:
            source = f"langsmith:{project}?run={run['id']}"
            yield Listed(source, partial(_document, run, source), spec)
        left = left - len(runs) if runs and body["cursor"] else 0


@contextmanager
def _failures(project: str) -> Generator[None]:
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


def _document(run: dict[str, Any], source: str) -> Document:
    """Return the messages of a run, from the last request on, as a document.

    Raises:
        Unreadable: It has none.
    """
    try:
        messages = messages_of({**(run["inputs"] or {}), **(run.get("outputs") or {})})
        stats = run.get("feedback_stats") or {}
        feedback = [{"key": key, "score": stats[key]["avg"]} for key in stats]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"{type(error).__name__}: {excerpt(str(error))}"
        raise Unreadable(f"it is no run with messages: {reason}") from error
    # The state of a thread holds its earlier runs as well.
    places = [place for place, each in enumerate(messages) if each.type == "human"]
    system = [each for each in messages if each.type == "system"]
    thread = [*system, *messages[places[-1] if places else 0 :]]
    ended = "" if run.get("end_time") else "it had not ended"
    reason = str(run.get("error") or ended).partition("Traceback (most recent call last)")[0]
    return transcript(thread, source, feedback, reason.strip())
