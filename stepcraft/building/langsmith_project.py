"""The runs of a project in LangSmith as transcripts; each trace is fetched when its turn comes."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import requests
from langsmith import Client
from langsmith.utils import LangSmithError, LangSmithNotFoundError, get_api_key, get_api_url
from urllib3.util import Retry

from stepcraft.building.documents import Document, Listed, Listing
from stepcraft.building.traces import document_of_runs
from stepcraft.errors import BadInput, SourceFailure

PREFIX = "langsmith:"
_OPTIONS = frozenset({"limit", "filter"})
_TIMEOUT_MS = 3_000, 60_000
_PAGE = 100
_LISTED = ("id", "trace_id", "start_time")
_READ = (
    "id",
    "trace_id",
    "parent_run_id",
    "parent_run_ids",
    "dotted_order",
    "name",
    "run_type",
    "start_time",
    "end_time",
    "status",
    "error",
    "inputs",
    "outputs",
    "extra",
    "feedback_stats",
)


def list_project(spec: str) -> Listing:
    """List the traces of a project, the newest first. LANGSMITH_ENDPOINT and LANGSMITH_API_KEY say where, and as whom.

    Args:
        spec: `langsmith:` and the name of the project, with options: `?limit=200` for the newest so many, and `?filter=…` in
            LangSmith's filter language, as in `langsmith:support?limit=200&filter=has(tags, "production")`.

    Raises:
        BadInput: there is no such project or no key, or an option cannot be used.
        SourceFailure: LangSmith does not answer, or refuses.
    """
    name, limit, chosen = _parsed(spec.removeprefix(PREFIX))
    endpoint = get_api_url(None)
    if not get_api_key(None):
        raise BadInput(f"{PREFIX}{name:.80} needs a key for {endpoint}; set LANGSMITH_API_KEY")
    project = _Project(name, endpoint)
    found = project.traces(limit, {"filter": chosen} if chosen else {})
    source = f"{PREFIX}{name}?run="
    return Listing(
        [Listed(source + id_, partial(project.read, id_, source + id_), spec) for id_ in found]
    )


class _Project:
    """A project of LangSmith.

    Args:
        name: Its name.
        endpoint: The address of the API.

    Raises:
        BadInput: There is no such project.
        SourceFailure: LangSmith does not answer, or refuses.
    """

    def __init__(self, name: str, endpoint: str) -> None:
        self.endpoint = endpoint
        session = requests.Session()
        session.max_redirects = (
            0  # the key is in a header that is sent along wherever a redirect leads
        )
        self._client = Client(
            endpoint,
            session=session,
            auto_batch_tracing=False,
            retry_config=Retry(total=0),
            timeout_ms=_TIMEOUT_MS,
            info={"version": "0"},  # else it is asked for
        )
        try:
            self._id = str(self._client.read_project(project_name=name).id)
        except LangSmithNotFoundError as error:
            raise BadInput(
                f"there is no project {name!r:.80} in LangSmith at {endpoint}; check the name"
            ) from error
        except (LangSmithError, requests.RequestException, ValueError) as error:
            raise self._failure(error) from error

    def traces(self, limit: int | None, chosen: Mapping[str, Any]) -> list[str]:
        """The ids of its traces, the newest first."""
        found = self._runs({"is_root": True, "select": _LISTED, **chosen}, limit)
        return list(dict.fromkeys(str(run.get("trace_id") or run["id"]) for run in found))

    def read(self, trace: str, source: str) -> Document:
        """The transcript of a trace.

        Raises:
            Unreadable: It has no runs, or they cannot be read.
            SourceFailure: LangSmith does not answer, or refuses.
        """
        return document_of_runs(self._runs({"trace": trace, "select": _READ}, None), source)

    def _runs(self, query: Mapping[str, Any], limit: int | None) -> Iterator[dict[str, Any]]:
        # The client's own list_runs is deprecated; runs.query, which replaces it, follows redirects with the key.
        body = {"session": [self._id], "limit": min(limit or _PAGE, _PAGE), **query}
        left = limit
        while True:
            try:
                reply = self._client.request_with_retries(
                    "POST", "/runs/query", json=body, stop_after_attempt=3
                ).json()
                runs, cursor = reply["runs"], (reply.get("cursors") or {}).get("next")
            except (
                LangSmithError,
                requests.RequestException,
                ValueError,
                KeyError,
                TypeError,
            ) as error:
                raise self._failure(error) from error
            yield from runs if left is None else runs[:left]
            left = None if left is None else left - len(runs)
            if not cursor or not runs or (left is not None and left <= 0):
                return
            body["cursor"] = cursor

    def _failure(self, error: Exception) -> SourceFailure:
        reason = " ".join(str(error).partition("\nContent-Length")[0].split())
        return SourceFailure(f"LangSmith at {self.endpoint} cannot be read: {reason[:300]}")


def _parsed(spec: str) -> tuple[str, int | None, str]:
    """The project, the limit and the filter of a spec."""
    name, mark, rest = spec.rpartition("?")
    options = dict(parse_qsl(rest, keep_blank_values=True)) if mark else {}
    if not options or not set(options) <= _OPTIONS:
        name, options = spec, {}  # a name may hold a question mark
    limit = options.get("limit")
    if not name.strip():
        raise BadInput(f"{PREFIX} names no project; write {PREFIX}PROJECT")
    if limit is not None and not (limit.isdecimal() and int(limit)):
        raise BadInput(
            f"the limit of {PREFIX}{name:.80} must be a number above 0, not {limit!r:.40}"
        )
    return name, int(limit) if limit else None, options.get("filter", "")
