"""The runs in a LangSmith project as threads of messages."""

import re
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import requests
from langsmith import Client
from langsmith.utils import get_api_key

from stepcraft.building.conversations import feedback_of, run_of
from stepcraft.building.documents import Document, Listed
from stepcraft.building.threads import thread_of
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.secrets import excerpt, masked_line

_NAME = re.compile(r"([^?]+)(?:\?limit=([1-9]\d*))?(?:[?&]filter=(.+))?")
_FIELDS = ("id", "end_time", "error", "inputs", "outputs", "feedback_stats")


def list_runs(name: str) -> Iterator[Listed]:
    """Yield the root runs of a project, newest first.

    The server and the credentials are taken from LANGSMITH_ENDPOINT and LANGSMITH_API_KEY.

    Args:
        name: The name of the project and any options: `?limit=200` for the 200 newest runs, then
            `filter=…` in LangSmith's filter language.

    Raises:
        BadInput: There is no key, or an option is invalid.
        SourceFailure: LangSmith does not respond, refuses the request, or has no such project.
    """
    options = _NAME.fullmatch(name)
    if not options:
        raise BadInput(
            f"the project {excerpt(name)} cannot be read; write "
            "langsmith:PROJECT?limit=200&filter=…, with a limit above 0"
        )
    if not get_api_key(None):
        raise BadInput("a project of LangSmith needs a key; set LANGSMITH_API_KEY")
    project, limit, condition = options.groups()
    try:
        for run in islice(_runs(project, condition), int(limit or sys.maxsize)):
            source = f"langsmith:{project}?run={run['id']}"
            yield Listed(source, partial(_document, run, source), key=source)
    except Exception as error:  # from the client or requests, or from an unexpected response
        reason = masked_line(str(error).partition("\nContent-Length")[0])
        raise SourceFailure(f"LangSmith cannot be read: {reason}") from error


def _runs(project: str, condition: str | None) -> Iterator[dict[str, Any]]:
    session = requests.Session()
    session.max_redirects = 0  # the key is in a header that would be sent along with any redirect
    client = Client(
        session=session,
        auto_batch_tracing=False,
    )
    body: dict[str, Any] = {
        "session": [str(client.read_project(project_name=project).id)],
        "is_root": True,
        "select": _FIELDS,
        "limit": 100,
        "cursor": None,
    }
    if condition:
        body["filter"] = condition
    while True:
        # The client's own list_runs is deprecated; runs.query, which replaces it, follows redirects
        # with the key.
        reply = client.request_with_retries("POST", "/runs/query", json=body).json()
        yield from reply["runs"]
        body["cursor"] = (reply.get("cursors") or {}).get("next")
        if not body["cursor"]:
            return


def _document(run: dict[str, Any], source: str) -> Document:
    """Return a run's messages from the last request onwards as a document.

    Raises:
        SourceFailure: It has no messages.
    """
    state, error = run_of(run)
    if not run.get("end_time"):
        error = error or "it had not ended"
    return thread_of(state, source, feedback_of(run), error, last=True)
