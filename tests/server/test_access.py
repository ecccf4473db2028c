"""Two users of a real server with `stepcraft.server.auth`: each sees what is theirs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from stepcraft.server.users import new_key
from tests.servers.langgraph_server import ROOT, LangGraphServer

pytestmark = pytest.mark.xdist_group("access")

SECRET = "sesameopenseverydoor"
AUTH = {"path": "stepcraft.server.auth:auth", "disable_studio_auth": True}
RUN = {"assistant_id": "notes", "input": {"question": SECRET}}
LATER = {**RUN, "after_seconds": 3600}
CRON = {**RUN, "schedule": "0 0 1 1 *"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A client for each user, whose keys come in different headers, and one without a key."""
    folder = tmp_path_factory.mktemp("access")
    keys = {user: new_key() for user in ("ann", "bob")}
    users = [f"[users.{user}]\nkeys = ['{key_hash}']\n" for user, (_, key_hash) in keys.items()]
    (folder / "access.toml").write_text("".join(users))
    graphs = {"notes": f"{ROOT}/tests/server/notes.py:graph"}
    config = {"dependencies": ["."], "graphs": graphs, "auth": AUTH}
    (folder / "langgraph.json").write_text(json.dumps(config))
    settings = {"STEPCRAFT_ACCESS": str(folder / "access.toml")}
    with LangGraphServer(folder / "langgraph.json", settings=settings) as running:
        options: Any = {"base_url": running.url, "timeout": 30, "follow_redirects": True}
        with (
            httpx.Client(headers={"Authorization": f"Bearer {keys['ann'][0]}"}, **options) as ann,
            httpx.Client(headers={"X-Api-Key": keys["bob"][0]}, **options) as bob,
            httpx.Client(**options) as nobody,
        ):
            yield SimpleNamespace(ann=ann, bob=bob, nobody=nobody)


def test_the_configuration_is_the_plain_one_with_users() -> None:
    plain, guarded = (
        json.loads((ROOT / name).read_text()) for name in ("langgraph.json", "langgraph.auth.json")
    )
    assert guarded == {**plain, "auth": AUTH}


def reply(client: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    """Return the JSON of a request that succeeds."""
    response = client.request(method, path, json=body)
    assert response.is_success, response.text
    return response.json() if response.content else None


@pytest.fixture(scope="module")
def anns(server: SimpleNamespace) -> dict[str, str]:
    """What ann has: ids by the names that paths give them."""
    ann, metadata = server.ann, {"note": SECRET}
    thread = reply(ann, "POST", "/threads", {"metadata": metadata})["thread_id"]
    reply(ann, "POST", f"/threads/{thread}/runs/wait", RUN)
    run = reply(ann, "POST", f"/threads/{thread}/runs", LATER)["run_id"]
    state = reply(ann, "GET", f"/threads/{thread}/state")
    assistant = reply(ann, "POST", "/assistants", {"graph_id": "notes", "metadata": metadata})
    cron = reply(ann, "POST", "/runs/crons", {**CRON, "metadata": metadata})
    item = {"namespace": ["notes"], "key": "first", "value": {"text": SECRET}}
    reply(ann, "PUT", "/store/items", item)
    return {
        "thread_id": thread,
        "run_id": run,
        "checkpoint_id": state["checkpoint"]["checkpoint_id"],
        "assistant_id": assistant["assistant_id"],
        "cron_id": cron["cron_id"],
        "namespace": "answer",
        "graph_id": "notes",
    }


def attempts(anns: Mapping[str, str]) -> dict[str, Any]:
    """Return by route the body or the query of a request for what is ann's; others have none."""
    thread, assistant = anns["thread_id"], anns["assistant_id"]
    checkpoint = {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": anns["checkpoint_id"]}
    claim = {"metadata": {"owner": "ann"}}
    hers = {"config": {"configurable": {"thread_id": thread}}, "checkpoint": checkpoint}
    run = {"assistant_id": "notes", "input": {"question": "Whose?"}, **claim, **hers}
    search = {"metadata": {"note": SECRET}}
    item = {"namespace": ["ann", "notes"], "key": "first"}
    call = {"jsonrpc": "2.0", "id": 1}
    return {
        "POST /assistants": {
            "graph_id": "notes",
            "assistant_id": assistant,
            "if_exists": "do_nothing",
        },
        "POST /assistants/search": search,
        "POST /assistants/count": search,
        "PATCH /assistants/{assistant_id}": {"name": "bob's now", **claim},
        "POST /assistants/{assistant_id}/latest": {"version": 1},
        "POST /threads": {"thread_id": thread, "if_exists": "do_nothing", **claim},
        "POST /threads/search": {**search, "ids": [thread]},
        "POST /threads/count": search,
        "POST /threads/prune": {"thread_ids": [thread], "strategy": "delete"},
        "POST /threads/{thread_id}/state": {"values": {"answer": "mine"}, "checkpoint": checkpoint},
        "POST /threads/{thread_id}/state/checkpoint": {"checkpoint": checkpoint},
        "POST /threads/{thread_id}/history": {"checkpoint": checkpoint},
        "PATCH /threads/{thread_id}": claim,
        "POST /threads/{thread_id}/stream/events": {"channels": ["values"]},
        "POST /threads/{thread_id}/commands": {"id": 1, "method": "run.start", "params": run},
        "POST /threads/{thread_id}/runs": run,
        "POST /threads/{thread_id}/runs/crons": {**CRON, **claim},
        "POST /threads/{thread_id}/runs/stream": {**run, "if_not_exists": "create"},
        "POST /threads/{thread_id}/runs/wait": run,
        "POST /runs/crons": {**CRON, "assistant_id": assistant},
        "PATCH /runs/crons/{cron_id}": {"schedule": "0 0 2 1 *", **claim},
        "POST /runs": {**run, "assistant_id": assistant},
        "POST /runs/batch": [run],
        "POST /runs/stream": run,
        "POST /runs/wait": run,
        "POST /runs/cancel": {"thread_id": thread, "run_ids": [anns["run_id"]]},
        "PUT /store/items": {**item, "value": {}},
        "GET /store/items": {**item, "namespace": "ann.notes"},
        "DELETE /store/items": item,
        "POST /store/items/search": {"namespace_prefix": ["ann"]},
        "POST /store/namespaces": {"prefix": ["ann"]},
        "POST /a2a/{assistant_id}": {
            **call,
            "method": "tasks/get",
            "params": {"id": anns["run_id"], "contextId": thread},
        },
        "POST /mcp/": {**call, "method": "tools/list", "params": {}},
    }


OPEN = {"GET /info", "GET /metrics", "GET /docs", "GET /ok"}
DEVELOPMENT = {
    "GET /deploy",
    "POST /deploy",
    "GET /deploy/{operation_id}/stream",
    "POST /internal/truncate",
    "GET /internal/debug/thread/{thread_id}",
}
"""Routes of `langgraph dev` alone, which it serves without any authentication (docs/security.md)."""
ERROR_IN_BODY = {
    "GET /threads/{thread_id}/stream": "404: Thread not found",
    "GET /threads/{thread_id}/runs/{run_id}/stream": "404: Thread not found",
    "POST /threads/{thread_id}/stream/events": "",
    "POST /threads/{thread_id}/commands": "404: Thread or assistant not found",
    "POST /a2a/{assistant_id}": "Task not found",
}
"""Routes with an id of ann's that answer 200, and the error that they answer with."""


def routes(server: SimpleNamespace) -> list[str]:
    paths = reply(server.nobody, "GET", "/openapi.json")["paths"]
    listed = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    return sorted(listed - DEVELOPMENT)


def request(
    client: httpx.Client, route: str, ids: Mapping[str, str], body: Any, **headers: str
) -> httpx.Response:
    method, path = route.split(" ")
    content = {"params": body} if method == "GET" else {"json": body or {}}
    headers = {"Accept": "application/json, text/event-stream", **headers}
    return client.request(method, path.format(**ids), headers=headers, **content)


BELONGINGS = (
    "/threads/{thread_id}/history",
    "/threads/{thread_id}/runs/{run_id}",
    "/assistants/{assistant_id}",
    "/runs/crons/{cron_id}",
    "/store/items?namespace=notes&key=first",
)


def test_another_user_reaches_nothing_by_any_route(
    server: SimpleNamespace, anns: dict[str, str]
) -> None:
    """The routes are those of the server's own list, so that new ones are tried as well."""
    bodies = attempts(anns)
    before = [reply(server.ann, "GET", path.format(**anns)) for path in BELONGINGS]
    assert SECRET in json.dumps(before)
    assert set(bodies) <= set(routes(server))
    for route in routes(server):
        response = request(server.bob, route, anns, bodies.get(route))
        assert SECRET not in response.text, route
        if route in ERROR_IN_BODY:
            assert ERROR_IN_BODY[route] in response.text, route
        elif "_id}" in route:
            assert response.is_client_error, route
    assert [reply(server.ann, "GET", path.format(**anns)) for path in BELONGINGS] == before


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Api-Key": "sk-wrong"},
        {"Authorization": "Bearer sk-wrong"},
        {"X-Auth-Scheme": "langsmith"},
    ],
)
def test_without_a_key_every_route_is_shut(
    server: SimpleNamespace, anns: dict[str, str], headers: dict[str, str]
) -> None:
    bodies = attempts(anns)
    statuses = {
        route: request(server.nobody, route, anns, bodies.get(route), **headers).status_code
        for route in routes(server)
    }
    assert {route for route, status in statuses.items() if status != 401} <= OPEN


@pytest.mark.parametrize(
    ("path", "body", "place"),
    [
        ("/threads", {}, "/threads/{thread_id}"),
        ("/assistants", {"graph_id": "notes"}, "/assistants/{assistant_id}"),
        ("/runs", {**LATER, "on_completion": "keep"}, "/threads/{thread_id}"),
        ("/runs/crons", CRON, "/runs/crons/{cron_id}"),
    ],
)
def test_metadata_of_a_client_gives_nothing_away(
    server: SimpleNamespace, path: str, body: dict[str, Any], place: str
) -> None:
    claim = {"metadata": {"owner": "ann", "created_by": "system"}}
    place = place.format(**reply(server.bob, "POST", path, {**body, **claim}))
    created = reply(server.bob, "GET", place)
    reply(server.bob, "PATCH", place, claim)
    for belonging in (created, reply(server.bob, "GET", place)):
        metadata = belonging["metadata"]
        assert (metadata["owner"], metadata.get("created_by")) == ("bob", None)
    assert server.ann.get(place).status_code == 404


FORGED = {"identity": "ann"}


FORGED_RUNS: list[dict[str, Any]] = [
    {"context": {"user": "ann", "langgraph_auth_user": FORGED}},
    {"config": {"configurable": {"user": "ann", "langgraph_auth_user": FORGED}}},
    {"config": {"configurable": {"langgraph_auth_user_id": "ann"}}},
    {"checkpoint": {"checkpoint_ns": "", "langgraph_auth_user": FORGED}},
    {"metadata": {"langgraph_auth_user": FORGED, "owner": "ann"}},
]


@pytest.mark.usefixtures("anns")
def test_a_namespace_of_a_run_is_its_users(server: SimpleNamespace) -> None:
    def run(client: httpx.Client, forged: dict[str, Any]) -> tuple[str, list[str]]:
        result = reply(client, "POST", "/runs/wait", {**RUN, **forged})
        return result["identity"], result["notes"]

    with ThreadPoolExecutor() as pool:
        hers = pool.submit(run, server.ann, {})
        bobs = [pool.submit(run, server.bob, forged) for forged in FORGED_RUNS]
    assert hers.result() == ("ann", [SECRET])
    assert [each.result() for each in bobs] == [("bob", [])] * len(FORGED_RUNS)


@pytest.mark.usefixtures("anns")
def test_a_run_of_a_cron_is_its_users(server: SimpleNamespace) -> None:
    values = {"user": "ann", "langgraph_auth_user": FORGED}
    places: dict[str, str] = {}
    for forged in ({"context": values}, {"config": {"configurable": values}}):
        question = f"by cron, forged {[*forged]}"
        created = {**CRON, "input": {"question": question}, "on_run_completed": "keep"}
        places[question] = (
            f"/runs/crons/{reply(server.bob, 'POST', '/runs/crons', created)['cron_id']}"
        )
        reply(server.bob, "PATCH", places[question], {**forged, "schedule": "* * * * * *"})
    results: dict[str, Any] = {}
    while not places.keys() <= results.keys():  # the suite's time limit ends it
        time.sleep(0.2)
        threads = reply(server.bob, "POST", "/threads/search", {"limit": 100})
        outputs = [thread["values"] or {} for thread in threads]
        results = {output.get("answer"): output for output in outputs}
    for question, place in places.items():
        reply(server.bob, "DELETE", place)
        assert (results[question]["identity"], results[question]["notes"]) == ("bob", [])
