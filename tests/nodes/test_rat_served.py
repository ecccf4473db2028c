"""RAT through langchain-openai against a server with bad moments: no step is lost to them."""

from collections.abc import Callable
from typing import Any

import pytest

from stepcraft import RatContext, build_rat
from tests.graphs.killed import Dying, Moody, chat, ran, whole
from tests.servers.openai_replies import Body, Reply, cut, error, garbage
from tests.servers.openai_server import OpenAIServer
from tests.shelf import QUESTION, Shelf, thinker

CHANGES = ".x."
FAULTS = {"draft": cut(), "revise": error(429, retry_after="0"), "to_query": garbage(), "finish": error(503)}


def _reply_to(node: str, body: Body) -> str:
    return thinker(CHANGES)(node, whole(body))


@pytest.fixture(params=["sync", "async", "stream"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Runs RAT blocking, on an event loop, or with its tokens streamed."""
    context = RatContext(retry_wait_s=0)
    return lambda model: ran(request.param, build_rat(model=model, retriever=Shelf()), QUESTION, context)


def test_faults_that_pass_cost_nothing_but_calls(run: Any) -> None:
    with OpenAIServer(Moody(_reply_to, RatContext(), FAULTS)) as server:
        result = run(chat(server))
    with OpenAIServer(Dying(_reply_to, RatContext())) as server:
        undisturbed = run(chat(server))
    assert (result["answer"], result["warnings"]) == ("The answer.", [])
    assert [revision["skipped"] for revision in result["revisions"]] == ["", "", ""]
    assert result["revisions"] == undisturbed["revisions"]
    calls = {node: used["calls"] for node, used in result["usage"]["nodes"].items()}
    assert calls == {node: used["calls"] + 1 for node, used in undisturbed["usage"]["nodes"].items()}


def test_three_attempts_and_then_the_step_is_lost(run: Any) -> None:
    def failing(body: Body) -> Reply | str:
        reply = good(body)
        third = good.asked[-1] == "revise" and "2004" in body["messages"][1]["content"].split("<rest>")[0]
        return error(500) if third else reply

    good = Dying(_reply_to, RatContext())
    with OpenAIServer(failing) as server:
        result = run(chat(server))
    assert [bool(revision["skipped"]) for revision in result["revisions"]] == [False, False, True]
    assert "revise was skipped: the model could not be asked" in result["warnings"][0]
    assert len(result["warnings"]) == 1
    assert result["answer"] == "The answer."
    assert good.asked.count("revise") == 2 + 2 * 3, "beside the second thought, and again after it changed"
