"""Running the samples of an evaluation on LangGraph servers that serve the package's graphs.

Each server has at most so many samples at a time. A server that is busy, away or dead costs time: its samples go to
another one, and it is tried again after a pause. Only where none answers for a while the evaluation stops, and the same
command goes on from there.
"""

import asyncio
import os
import time
import warnings
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.schema import RunCreateMetadata

from stepcraft.errors import BadInput, ModelFailure, RunStopped, StepcraftError
from stepcraft.evals.directory import Outcome
from stepcraft.evals.methods import AnyMethod, OwnMethod
from stepcraft.evals.samples import Sample
from stepcraft.graphs.registry import outputs_of
from stepcraft.llm.call import retry_after

KEYS = ("LANGGRAPH_API_KEY", "LANGSMITH_API_KEY")
"""The environment variables with the key of the servers; the first that is set."""
_TIMEOUT = httpx.Timeout(60, connect=5)
"""A server that runs a sample sends something every five seconds."""
_PAUSES_S = (0.2, 15.0)
"""The first pause of a server that failed, doubled each time, and the longest."""
_BUSY = frozenset({408, 425, 429, 502, 503, 504})
_REFUSED_SETTING = "a run may not "
"""How every refusal of the deployment's policy begins."""


class ServedRunFailed(StepcraftError):
    """A run failed on its server; its message is that of the exception there, its class's name before it."""


@dataclass
class _Server:
    url: str
    client: LangGraphClient
    versions: dict[str, str]
    running: int = 0
    failures: int = 0
    """In a row."""
    failing_since: float = 0.0
    rests_until: float = 0.0
    problem: str = ""


class Servers:
    """Runs samples on LangGraph servers, while it is entered.

    Args:
        urls: Their addresses.
        concurrency: The most samples that run on each at the same time.
        patience_s: How long no server may answer before the evaluation stops.

    Raises:
        BadInput: An address is none, or is named twice.
    """

    def __init__(self, urls: Sequence[str], *, concurrency: int, patience_s: float = 30.0) -> None:
        for url in urls:
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise BadInput(f"{url!r:.200} is no address of a server; write http://HOST:PORT")
        if len(urls) > len({url.rstrip("/") for url in urls}):
            raise BadInput("a server is named twice; name each once, and raise --concurrency instead")
        self._urls = urls
        self._concurrency = concurrency
        self._patience_s = patience_s
        self._servers: list[_Server] = []
        self._changed = asyncio.Condition()
        self._stack = AsyncExitStack()

    @property
    def slots(self) -> int:
        """The most samples that run at the same time on all of them."""
        return self._concurrency * len(self._urls)

    async def __aenter__(self) -> Self:
        key = next(filter(None, map(os.environ.get, KEYS)), "")
        headers = {"x-api-key": key} if key else {}
        self._stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "Request failed, attempting reconnect")
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=self._concurrency)
        for url in self._urls:
            client = httpx.AsyncClient(base_url=url, headers=headers, timeout=_TIMEOUT, limits=limits)
            await self._stack.enter_async_context(client)
            self._servers.append(_Server(url, LangGraphClient(client), {}))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def writer(self, method: AnyMethod, node: str = "answer") -> str:
        """The name of the model that a node asks; "" where the settings leave it to the server."""
        if isinstance(method, OwnMethod):
            return ""
        context = method.context()
        return context.node_models.get(node) or context.model or ""

    async def run(self, method: AnyMethod, sample: Sample, outcome: Outcome) -> None:
        """Run a method on a sample, on one server after the other until one answers, and write the outcome.

        Raises:
            ServedRunFailed: The run failed.
            ModelFailure: The server's model refuses every call.
            RunStopped: No server answers.
            BadInput: A server refuses the key, the graph or a setting; the method cannot run on a server.
        """
        if isinstance(method, OwnMethod) or method.refines:
            why = "is a graph of your own" if isinstance(method, OwnMethod) else "needs an empty memory"
            raise BadInput(
                f"{method.name} {why}, which a server does not run; leave it out or leave --server out"
            )
        seed = sample.get("seed")
        context = vars(method.context(seed))
        settings = {
            name: context[name] for name in [*method.settings, *(["seed"] if seed is not None else [])]
        }
        given = method.given(sample["question"], sample.get("resources", ""))

        def note(run: RunCreateMetadata) -> None:
            outcome["trace"] = run["run_id"]

        while True:
            server = await self._take()
            try:
                if not server.versions:
                    server.versions = _versions(await server.client.http.get("/info"))
                result: Any = await server.client.runs.wait(
                    None,
                    method.graph,
                    input=given,
                    context=settings,
                    metadata={"stepcraft_sample": sample["id"]},
                    on_disconnect="cancel",
                    raise_error=False,
                    on_run_created=note,
                )
            except (httpx.TransportError, httpx.HTTPStatusError) as failure:
                self._check(server, method.graph, failure)
                self._rest(server, failure)
                continue
            finally:
                await self._release(server)
            if isinstance(result, dict) and (error := result.get("__error__")):
                server.failures = 0
                _raise(server, method.name, error)
            names = outputs_of(method.graph)
            if not isinstance(result, dict) or not all(name in result for name in names):
                self._rest(server, None)
                continue
            server.failures = 0
            outcome["versions"] = server.versions
            outcome["usage"], outcome["warnings"] = result["usage"], result["warnings"]
            outcome["output"] = {name: result[name] for name in names if name not in {"usage", "warnings"}}
            return

    async def _take(self) -> _Server:
        """The server with the fewest samples under way that may be asked; wait until there is one.

        Raises:
            RunStopped: None answers.
        """
        async with self._changed:
            while True:
                now = time.monotonic()
                ready = [
                    one
                    for one in self._servers
                    if one.rests_until <= now and one.running < (1 if one.failures else self._concurrency)
                ]
                if ready:
                    chosen = min(ready, key=lambda one: (one.failures, one.running))
                    chosen.running += 1
                    return chosen
                if all(
                    one.failures and now - one.failing_since >= self._patience_s and not one.running
                    for one in self._servers
                ):
                    told = "; ".join(f"{one.url}: {one.problem}" for one in self._servers)
                    raise RunStopped(
                        f"no server answers ({told}); start one and start the same command again"
                    )
                rests = [one.rests_until - now for one in self._servers if one.rests_until > now]
                try:
                    async with asyncio.timeout(min(rests, default=None)):
                        await self._changed.wait()
                except TimeoutError:
                    pass

    async def _release(self, server: _Server) -> None:
        async with self._changed:
            server.running -= 1
            self._changed.notify_all()

    def _rest(self, server: _Server, failure: Exception | None) -> None:
        """Leave a server alone for a while."""
        now = time.monotonic()
        if not server.failures:
            server.failing_since = now
        asked = retry_after(failure) if failure else None
        first, longest = _PAUSES_S
        pause = first * 2 ** min(server.failures, 10) if asked is None else asked
        server.rests_until = now + min(pause, longest)
        server.failures += 1
        code = getattr(getattr(failure, "response", None), "status_code", None)
        server.problem = f"it answers {code}" if code else str(failure or "") or type(failure).__name__
        if failure is None:
            server.problem = "it ended a run without an output"

    def _check(self, server: _Server, graph: str, failure: Exception) -> None:
        """Raise what no other attempt would change.

        Raises:
            BadInput: The server refuses the key or the graph.
            ServedRunFailed: The server refuses the sample.
        """
        response: httpx.Response | None = getattr(failure, "response", None)
        if response is None or response.status_code in _BUSY:
            return
        if response.request.method == "GET" and response.request.url.path != "/info":
            return  # the run was lost with the server that it ran on
        code, text = response.status_code, " ".join(response.text.split())[:500]
        if code in {401, 403}:
            raise BadInput(
                f"the server {server.url} refuses the request ({code}); set its key in {KEYS[0]}"
            ) from failure
        if code in {404, 405} or (code == 422 and graph in text):
            raise BadInput(f"the server {server.url} does not serve {graph}: {code} {text}") from failure
        raise ServedRunFailed(f"the server answers {code}: {text}") from failure


def _versions(info: Any) -> dict[str, str]:  # noqa: ANN401 - JSON of a server
    names = {"langgraph-api": "version", "langgraph": "langgraph_py_version"}
    found = info if isinstance(info, dict) else {}
    return {name: str(found[field]) for name, field in names.items() if found.get(field)}


def _raise(server: _Server, method: str, error: Any) -> None:  # noqa: ANN401 - JSON of a server
    kind, message = str(error.get("error")), str(error.get("message"))
    if kind == "ModelUnknown" or (kind == "BadInput" and message.startswith(_REFUSED_SETTING)):
        raise BadInput(f"the server {server.url} refuses {method}: {message}")
    if kind == "ModelFailure":
        raise ModelFailure(f"on the server {server.url}, {message}")
    raise ServedRunFailed(f"{kind}: {message}")
