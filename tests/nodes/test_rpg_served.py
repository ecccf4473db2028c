"""RPG through langchain-openai against a server with bad moments: no step is lost to them."""

from collections.abc import Callable
from typing import Any

import pytest

from stepcraft import NoAnswer, RpgContext, build_rpg
from tests.bridge import GIVEN, PLANS, planner
from tests.graphs.killed import Dying, Moody, chat, ran, whole
from tests.servers.openai_replies import Body, Reply, cut, error, garbage
from tests.servers.openai_server import OpenAIServer

FAULTS = {"plan": cut(), "answer": error(429, retry_after="0"), "combine": garbage()}


def _reply_to(node: str, body: Body) -> str:
    return planner()(node, whole(body))


@pytest.fixture(params=["sync", "async", "stream"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """Runs RPG blocking, on an event loop, or with its tokens streamed."""
    context = RpgContext(retry_wait_s=0)
    given = {**GIVEN, "kind": "multihop"}
    return lambda model: ran(request.param, build_rpg(model=model), given, context)


def test_faults_that_pass_cost_nothing_but_calls(run: Any) -> None:
    with OpenAIServer(Moody(_reply_to, RpgContext(), FAULTS)) as server:
        result = run(chat(server))
    with OpenAIServer(Dying(_reply_to, RpgContext())) as server:
        undisturbed = run(chat(server))
    assert (result["answer"], result["warnings"]) == ("Mimar Serun", [])
    assert result["segments"] == undisturbed["segments"]
    calls = {node: used["calls"] for node, used in result["usage"]["nodes"].items()}
    assert calls == {node: used["calls"] + 1 for node, used in undisturbed["usage"]["nodes"].items()}


def test_three_attempts_and_then_the_segment_is_lost(run: Any) -> None:
    def failing(body: Body) -> Reply | str:
        reply = good(body)
        second = good.asked[-1] == "answer" and f"<plan>\n{PLANS[1]}" in body["messages"][1]["content"]
        return error(500) if second else reply

    good = Dying(_reply_to, RpgContext())
    with OpenAIServer(failing) as server:
        result = run(chat(server))
    assert [segment["plan"] for segment in result["segments"]] == [PLANS[0], PLANS[2]]
    assert "answer was skipped: the model could not be asked" in result["warnings"][0]
    assert len(result["warnings"]) == 1
    assert result["answer"] == "Mimar Serun"
    assert good.asked.count("answer") == 2 + 3


def test_the_temperature_is_sent(run: Any) -> None:
    bodies: list[Body] = []

    def noting(body: Body) -> Reply | str:
        bodies.append(body)
        return good(body)

    good = Dying(_reply_to, RpgContext())
    with OpenAIServer(noting) as server:
        run(chat(server))
    assert [body["temperature"] for body in bodies] == [0.0] * len(good.asked)
    assert good.asked == ["plan", "answer"] * 3 + ["plan", "combine"]


def test_a_model_that_takes_no_temperature_is_asked_without(run: Any) -> None:
    bodies: list[Body] = []

    def picky(body: Body) -> Reply | str:
        bodies.append(body)
        refusal = "Unsupported value: 'temperature' does not support 0 with this model."
        return error(400, refusal) if "temperature" in body else good(body)

    good = Dying(_reply_to, RpgContext())
    with OpenAIServer(picky) as server:
        name = f"picky at {server.base_url}"
        result = run(chat(server).model_copy(update={"model_name": name}))
    assert (result["answer"], result["warnings"]) == ("Mimar Serun", [])
    assert ["temperature" in body for body in bodies] == [True, *[False] * len(good.asked)]
    assert good.asked == ["plan", "answer"] * 3 + ["plan", "combine"]


def test_a_temperature_that_was_set_is_not_left_out() -> None:
    def picky(body: Body) -> Reply | str:
        return error(400, "temperature must be at most 1") if "temperature" in body else "So it was."

    with OpenAIServer(picky) as server, pytest.raises(NoAnswer, match="temperature must be at most 1"):
        build_rpg(model=chat(server)).invoke(GIVEN, context=RpgContext(temperature=2, retry_wait_s=0))
