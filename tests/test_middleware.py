"""Procedures for an agent's task, and a check of its answer, as middleware."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentState, SummarizationMiddleware
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from stepcraft import (
    BadInput,
    CheckAnswerMiddleware,
    ProceduralMemoryMiddleware,
    Procedure,
    RatContext,
    open_memory,
)
from stepcraft.errors import AddReport, Failed, MemoryFailure
from stepcraft.memory.local import LocalMemory
from stepcraft.text.lists import numbered
from tests.kitchen import PROCEDURES, small_memory
from tests.scripted import Reply, ScriptedModel, ToolModel, block, searching
from tests.shelf import Shelf, shown

TASK: Any = {"messages": [("human", "bake a white bread")]}
THREAD: Any = {"configurable": {"thread_id": "1"}}
LEARNED = """\
PROCEDURE
Heading: Goal
Output: bake a rye bread
Input: rye flour, an oven
1. Call `search(query=<bread>)`.
2. Bake for `50` minutes.
"""


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


def search(query: str) -> str:
    """Search."""
    return f"Nothing about {query}."


def test_the_model_sees_the_procedures_that_fit_below_its_prompt(memory: LocalMemory) -> None:
    model = ToolModel([searching("oven"), "Done.", "Yes.", "Good."])
    middleware = [ProceduralMemoryMiddleware(memory)]
    agent = create_agent(
        model,
        [search],
        system_prompt="Be kind.",
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )
    result = agent.invoke(TASK, THREAD)
    assert [message.type for message in result["messages"]] == ["human", "ai", "tool", "ai"]
    for call in model.calls:
        prompt = call.messages[0].text
        assert prompt.startswith("Be kind.")
        assert "bake a white bread" in prompt
    agent.invoke({"messages": [("human", "zzz qqq xyzzy")]}, THREAD)
    assert model.calls[-1].messages[0].text == "Be kind."
    assert set(result) == {"messages", "shown_procedures"}


@pytest.mark.parametrize("question", ["make yoghurt", {"id": 7}, "", None])
def test_an_agent_may_have_a_question_of_its_own_in_its_state(
    memory: LocalMemory, question: Any
) -> None:
    class Quiz(AgentState[Any]):
        question: Any

    middleware: Any = [ProceduralMemoryMiddleware(memory, k=1)]
    agent = create_agent(ToolModel(["Done."]), middleware=middleware, state_schema=Quiz)
    result = agent.invoke({**TASK, "question": question})
    assert result["shown_procedures"] == [bread_of(memory).id]


def test_an_agent_keeps_its_own_state_beside_that_of_the_middleware(memory: LocalMemory) -> None:
    class Visit(AgentState[Any]):
        procedures: list[str]
        found_procedures: list[str]
        learned: bool
        asked: bool

    own = {"procedures": ["X-ray"], "found_procedures": [], "learned": True, "asked": True}
    check = CheckAnswerMiddleware(Shelf(), model=ScriptedModel([CHANGE]))
    middleware: Any = [ProceduralMemoryMiddleware(memory), check]
    agent = create_agent(ToolModel([WRONG]), middleware=middleware, state_schema=Visit)
    result = agent.invoke({**TASK, **own})
    assert {key: result[key] for key in own} == own


def test_procedures_are_added_to_prompts_and_results_that_are_blocks(memory: LocalMemory) -> None:
    @tool
    def oven(task: str) -> list[dict[str, str]]:
        """Use the oven."""
        return [{"type": "text", "text": f"{task} failed: make yoghurt of milk and a starter"}]

    call = {"name": "oven", "args": {"task": "baking"}, "id": "c"}
    model = ToolModel([AIMessage("", tool_calls=[call]), "Done."])
    system = SystemMessage([{"type": "text", "text": "Be kind."}])
    middleware = [ProceduralMemoryMiddleware(memory, k=1, k_results=1, least_score=0)]
    agent = create_agent(model, [oven], system_prompt=system, middleware=middleware)
    agent.invoke(TASK)
    first, *_, last = model.calls[-1].messages
    for message, own, procedure in (
        (first, "Be kind.", "bake a white bread"),
        (last, "baking failed", "make yoghurt"),
    ):
        texts = [block["text"] for block in message.content]
        assert (len(texts), texts[0][: len(own)], procedure in texts[1]) == (2, own, True)


def test_a_procedure_is_shown_from_the_least_score_on(memory: LocalMemory) -> None:
    question = TASK["messages"][0][1]
    best = max(hit.score for hit in memory.search(question, 10, alpha=1))
    for least, is_shown in [(best, True), (math.nextafter(best, 2), False)]:
        model = ToolModel(["Done."])
        middleware = [ProceduralMemoryMiddleware(memory, least_score=least)]
        create_agent(model, [search], middleware=middleware).invoke(TASK)
        first = model.calls[0].messages[0]
        assert (first.type == "system" and question in first.text) == is_shown


@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_result_speaks_of_is_found_and_stands_behind_it(
    memory: LocalMemory, is_async: bool
) -> None:
    @tool
    def oven(task: str) -> str:
        """Use the oven."""
        return f"{task} failed: feed a starter of rye first"

    starter = Procedure(output="feed a starter of rye", input="rye", steps=("Feed it.", "Wait."))
    memory.add([starter])
    call = {"name": "oven", "args": {"task": "baking"}, "id": "c"}
    model = ToolModel([AIMessage("", tool_calls=[call]), "Done."])
    middleware = [ProceduralMemoryMiddleware(memory, k=1)]
    agent = create_agent(model, [oven], middleware=middleware)
    result = asyncio.run(agent.ainvoke(TASK)) if is_async else agent.invoke(TASK)
    shown = model.calls[-1].messages[-1].text
    assert shown.startswith("baking failed")
    assert "feed a starter of rye" in shown
    assert result["messages"][2].text.endswith("of rye first"), "the state has the tool's own words"
    assert result["shown_procedures"] == [bread_of(memory).id, starter.id]


def test_subagents_add_what_they_were_shown_and_it_is_not_credited_to_the_agent(
    memory: LocalMemory,
) -> None:
    bread, _, *others = PROCEDURES
    tasks = [{"description": each.output, "subagent_type": "cook"} for each in others]
    calls = [{"name": "task", "args": args, "id": args["description"]} for args in tasks]
    first, *rest = [
        ProceduralMemoryMiddleware(memory, k=1, k_results=0, outcome=lambda _state: True)
        for _ in "12"
    ]
    cook: Any = {
        "name": "cook",
        "description": "Cooks.",
        "system_prompt": "Cook.",
        "model": StructuredModel(["Cooked."] * 2),
        "middleware": rest,
    }
    model = StructuredModel([AIMessage("", tool_calls=calls), "Done."])
    result = create_deep_agent(model, middleware=[first], subagents=[cook]).invoke(TASK)
    assert {*result["shown_procedures"]} == {each.id for each in (bread, *others)}
    credited = [each.output for each in memory if each.outcomes.successes]
    assert credited == [bread.output]


def test_an_outcome_is_credited_to_what_was_followed(memory: LocalMemory) -> None:
    followed = Procedure(
        output="bake a white bread", input="x", steps=("Call `search(query=…)`.", "Eat.")
    )
    ignored = Procedure(
        output="bake a white loaf", input="x", steps=("Call `order(what=bread)`.", "Eat.")
    )
    memory.add([followed, ignored])
    middleware = [ProceduralMemoryMiddleware(memory, k=9, outcome=lambda _state: True)]
    agent = create_agent(ToolModel([searching("bread"), "Baked."]), [search], middleware=middleware)
    assert {followed.id, ignored.id} <= {*agent.invoke(TASK)["shown_procedures"]}
    successes = [memory.get(each.id).outcomes.successes for each in (followed, ignored)]
    assert successes == [1, 0]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("Run `load_table()` and `fit_model()`.", "load_table()\nfit_model()"),
        ("F\u00fchre `l\u00f6sche` aus.", "l\u00f6sche()"),
        ("\u8fd0\u884c `\u751f\u6210`\u3002", {"cells": ["\u751f\u6210()"]}),
    ],
)
def test_an_outcome_is_credited_whatever_the_code_of_a_call_looks_like(
    memory: LocalMemory, step: str, code: Any
) -> None:
    followed = Procedure(output="bake a white bread", input="x", steps=(step,))
    memory.add([followed])

    @tool
    def run(code: Any) -> str:
        """Run code."""
        return "done"

    call = {"name": "run", "args": {"code": code}, "id": "c"}
    middleware = [ProceduralMemoryMiddleware(memory, k=9, outcome=lambda _state: True)]
    model = ToolModel([AIMessage("", tool_calls=[call]), "Baked."])
    create_agent(model, [run], middleware=middleware).invoke(TASK)
    assert memory.get(followed.id).outcomes.successes == 1


def test_the_cause_at_the_end_of_a_traceback_brings_up_its_remedy(memory: LocalMemory) -> None:
    starter = Procedure(output="feed a starter of rye", input="rye", steps=("Feed it.", "Wait."))
    memory.add([starter])

    @tool
    def oven(task: str) -> str:
        """Use the oven."""
        frame = '  File "/srv/app/pipeline/dispatch.py", line 37, in dispatch\n    return run(x)\n'
        return f"Traceback (most recent call last):\n{frame * 8}OvenError: feed a starter of rye"

    call = {"name": "oven", "args": {"task": "baking"}, "id": "c"}
    model = ToolModel([AIMessage("", tool_calls=[call]), "Done."])
    agent = create_agent(model, [oven], middleware=[ProceduralMemoryMiddleware(memory, k=1)])
    assert agent.invoke(TASK)["shown_procedures"] == [bread_of(memory).id, starter.id]


def test_nothing_is_learned_from_a_run_whose_start_was_summarised(
    memory: LocalMemory, caplog: pytest.LogCaptureFixture
) -> None:
    learn = ScriptedModel([])
    middleware = [ProceduralMemoryMiddleware(memory, learn=learn, approve=False)]
    agent = create_agent(ToolModel([searching("bread"), "Baked."]), [search], middleware=middleware)
    summary = HumanMessage("Summary: bread", additional_kwargs={"lc_source": "summarization"})
    agent.invoke({"messages": [summary]})
    assert not learn.calls
    assert "replaced by a summary" in caplog.text


def test_a_run_that_called_no_tool_credits_nothing(memory: LocalMemory) -> None:
    middleware = [ProceduralMemoryMiddleware(memory, k=9, outcome=lambda _state: False)]
    result = create_agent(ToolModel(["Baked."]), [search], middleware=middleware).invoke(TASK)
    assert bread_of(memory).id in result["shown_procedures"]
    assert {procedure.outcomes[:2] for procedure in memory} == {(0, 0)}


def test_without_a_memory_the_agent_works_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    with small_memory() as memory:
        middleware = [ProceduralMemoryMiddleware(memory)]
    agent = create_agent(ToolModel(["Done."]), [], middleware=middleware)
    assert agent.invoke(TASK)["messages"][-1].text == "Done."
    assert "without procedures" in caplog.text


class Broken(LocalMemory):
    def search(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("out of order")


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("content", ["x" * 50_001, "", [IMAGE], "\u200b"])
def test_no_message_fails_the_agent(
    content: Any, is_async: bool, memory: LocalMemory, caplog: pytest.LogCaptureFixture
) -> None:
    check = CheckAnswerMiddleware(Shelf(), model=ScriptedModel([CHANGE]))
    middleware = [ProceduralMemoryMiddleware(memory), check]
    agent = create_agent(ToolModel([WRONG]), [], middleware=middleware)
    task: Any = {"messages": [HumanMessage(content)]}
    result = asyncio.run(agent.ainvoke(task)) if is_async else agent.invoke(task)
    assert result["messages"][-1].text == RIGHT, "the answer is checked whatever the request was"
    assert "not checked" not in caplog.text


def test_no_fault_of_a_memory_a_source_or_a_model_fails_the_agent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_query: str) -> NoReturn:
        raise KeyError("of the source")

    broken = Broken(":memory:", embeddings="none", create=True)
    writer = ScriptedModel([ValueError("of the writer")] * 2)
    checks = [
        CheckAnswerMiddleware(Shelf(), model=ScriptedModel([TypeError("of the checker")])),
        CheckAnswerMiddleware(Shelf(fail=fail), model=ScriptedModel([])),
    ]
    middleware = [ProceduralMemoryMiddleware(broken, learn=writer), *checks[:1]]
    agent = create_agent(ToolModel([searching("x"), WRONG]), [search], middleware=middleware)
    assert agent.invoke(TASK)["messages"][-1].text == WRONG
    agent = create_agent(ToolModel([WRONG]), [], middleware=checks[1:])
    assert agent.invoke(TASK)["messages"][-1].text == WRONG
    for reason in ("out of order", "of the writer", "of the checker", "of the source"):
        assert reason in caplog.text
    broken.close()


def test_a_memory_that_cannot_be_changed_does_not_fail_the_agent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    writer = ScriptedModel({"success": ["REACHED\nIt is baked."], "extract": [LEARNED]})
    agent = create_agent(
        ToolModel([searching("bread"), "Baked."]),
        [search],
        middleware=[ProceduralMemoryMiddleware(open_memory(""), learn=writer)],
        checkpointer=InMemorySaver(),
    )
    assert "__interrupt__" in agent.invoke(TASK, THREAD)
    ended = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert ended["messages"][-1].text == "Baked."
    assert "can be searched, not changed" in caplog.text


async def test_what_a_run_shows_is_stored_once_a_person_approves(memory: LocalMemory) -> None:
    writer = ScriptedModel({"success": ["REACHED\nIt is baked."], "extract": [LEARNED]})
    middleware = [ProceduralMemoryMiddleware(memory, learn=writer)]
    agent = create_agent(
        ToolModel([searching("bread"), "Baked."]),
        [search],
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )
    stopped = await agent.ainvoke(TASK, THREAD)
    (request,) = stopped["__interrupt__"][0].value["action_requests"]
    assert (request["name"], request["args"]["goal"]) == ("save_procedure", "bake a rye bread")
    assert "rye flour" in request["description"]
    before = memory.count()
    ended = await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert ended["messages"][-1].text == "Baked."
    assert memory.count() == before + 1
    assert writer.nodes == ["success", "extract"]


def test_without_a_checkpointer_the_agent_does_not_pause_for_good(
    memory: LocalMemory, caplog: pytest.LogCaptureFixture
) -> None:
    writer = ScriptedModel({"success": ["REACHED\nIt is baked."], "extract": [LEARNED]})
    middleware = [ProceduralMemoryMiddleware(memory, learn=writer)]
    agent = create_agent(ToolModel([searching("bread"), "Baked."]), [search], middleware=middleware)
    assert "__interrupt__" not in agent.invoke(TASK)
    assert "not saved: approvals of procedures pause the run for a person" in caplog.text


@pytest.mark.parametrize("is_async", [False, True])
def test_a_person_who_writes_something_else_is_asked_again(
    memory: LocalMemory, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    writer = ScriptedModel({"success": ["REACHED\nIt is baked."], "extract": [LEARNED]})
    turns = [searching("bread"), "Baked.", "Hello.", searching("rolls"), "Baked.", "Bye."]
    agent: Any = create_agent(
        ToolModel(turns),
        [search],
        middleware=[ProceduralMemoryMiddleware(memory, learn=writer)],
        checkpointer=InMemorySaver(),
    )

    def run(given: Any) -> Any:
        return (
            asyncio.run(agent.ainvoke(given, THREAD)) if is_async else agent.invoke(given, THREAD)
        )

    before = memory.count()
    for text in ("bake a bread", "thanks", "bake rolls"):
        (asked,) = run({"messages": [("human", text)]})["__interrupt__"]
        assert asked.value["action_requests"][0]["args"]["goal"] == "bake a rye bread"
    assert "nobody has decided on 'bake a rye bread' yet" in caplog.text
    assert writer.nodes == ["success", "extract"]
    run(Command(resume={"decisions": [{"type": "approve"}]}))
    assert memory.count() == before + 1
    assert "__interrupt__" not in run({"messages": [("human", "bye")]})


@pytest.mark.parametrize("is_reported", [False, True])
def test_an_approval_outlasts_a_memory_that_is_down(tmp_path: Path, is_reported: bool) -> None:
    class Down(LocalMemory):
        is_down = False

        def _put(self, procedures: list[Procedure]) -> Any:
            if self.is_down and is_reported:
                return AddReport(failed=[Failed(procedures[0].id, "the memory is down")])
            if self.is_down:
                raise MemoryFailure("the memory is down")
            return super()._put(procedures)

    memory = Down(tmp_path / "own.db", embeddings="none")
    writer = ScriptedModel({"success": ["REACHED\nIt is baked."], "extract": [LEARNED]})
    agent: Any = create_agent(
        ToolModel([searching("bread"), "Baked.", "Hello."]),
        [search],
        middleware=[ProceduralMemoryMiddleware(memory, learn=writer)],
        checkpointer=InMemorySaver(),
    )
    approval = Command(resume={"decisions": [{"type": "approve"}]})
    assert "__interrupt__" in agent.invoke(TASK, THREAD)
    memory.is_down = True
    agent.invoke(approval, THREAD)
    memory.is_down = False
    assert "__interrupt__" in agent.invoke({"messages": [("human", "thanks")]}, THREAD)
    agent.invoke(approval, THREAD)
    assert memory.count() == 1


@pytest.mark.parametrize("turn", [["Hello."], [searching("bread"), "I could not."]])
def test_nothing_is_offered_where_nothing_was_learned(
    memory: LocalMemory, turn: list[str | AIMessage]
) -> None:
    writer = ScriptedModel({"success": ["NOT REACHED\nIt gave up."]})
    middleware = [ProceduralMemoryMiddleware(memory, learn=writer)]
    result = create_agent(ToolModel(turn), [search], middleware=middleware).invoke(TASK)
    assert "__interrupt__" not in result


MERGED_BREAD = """\
DIFFERENCE: NONE
VERDICT: SAME
OUTPUT: bake a white bread
INPUT: {input}
STEPS:
{steps}
{number}. Call `search(query=<bread>)`."""
REPAIRED = """\
CAUSE: The oven was cold.
PROCEDURE: 1
OUTPUT: bake a white bread
INPUT: {input}
STEPS:
1. Heat the oven, since `search` found nothing.
{later}"""


def bread_of(memory: LocalMemory) -> Procedure:
    return memory.search(TASK["messages"][0][1], 1, alpha=0)[0].procedure


def learning(memory: LocalMemory, writer: ScriptedModel, **options: Any) -> Any:
    middleware = [ProceduralMemoryMiddleware(memory, learn=writer, **options)]
    return create_agent(
        ToolModel([searching("bread"), "Baked."]),
        [search],
        middleware=middleware,
        checkpointer=InMemorySaver(),
    )


@pytest.mark.parametrize("approve", [True, False])
def test_what_a_run_shows_of_a_known_task_is_merged_with_it(
    memory: LocalMemory, approve: bool
) -> None:
    bread = bread_of(memory)
    shown = LEARNED.replace("bake a rye bread", bread.output).replace(
        "1. Call `search(query=<bread>)`.\n2. Bake for `50` minutes.\n",
        numbered([*bread.steps, "Call `search(query=<bread>)`."]),
    )
    merged = MERGED_BREAD.format(
        input=bread.input, steps=numbered(bread.steps), number=len(bread.steps) + 1
    )
    writer = ScriptedModel({"extract": [shown], "compare": [merged]})
    agent = learning(memory, writer, outcome=lambda _state: True, approve=approve)
    result, before = agent.invoke(TASK, THREAD), memory.count()
    if approve:
        (request,) = result["__interrupt__"][0].value["action_requests"]
        assert f"In place of {bread.id}" in request["description"]
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert writer.nodes == ["extract", "compare"]
    kept = memory.get(bread.id)
    assert kept
    assert kept.steps == (*bread.steps, "Call `search(query=<bread>)`.")
    assert [each["steps"] for each in kept.versions] == [[*bread.steps]]
    assert (memory.count(), kept.outcomes[:2]) == (before, (1, 0))
    assert ("approved" in kept.metadata) == approve


def test_a_run_that_shows_nothing_new_asks_for_no_approval(memory: LocalMemory) -> None:
    bread = bread_of(memory)
    shown = LEARNED.replace("bake a rye bread", bread.output).replace(
        "1. Call `search(query=<bread>)`.\n2. Bake for `50` minutes.\n",
        numbered([*bread.steps, "Serve it."]),
    )
    same = MERGED_BREAD.format(
        input=bread.input, steps=numbered(bread.steps[:-1]), number=len(bread.steps)
    ).replace("Call `search(query=<bread>)`.", bread.steps[-1])
    writer = ScriptedModel({"extract": [shown], "compare": [same]})
    agent = learning(memory, writer, outcome=lambda _state: True, approve=True)
    result = agent.invoke(TASK, THREAD)
    assert "__interrupt__" not in result
    assert not memory.get(bread.id).versions  # type: ignore[union-attr]


def test_a_procedure_that_is_stored_already_asks_for_no_approval(memory: LocalMemory) -> None:
    replies = {"success": ["REACHED\nIt is baked."] * 2, "extract": [LEARNED] * 2}
    for count in (1, 0):
        agent, before = learning(memory, ScriptedModel(replies)), memory.count()
        assert ("__interrupt__" in agent.invoke(TASK, THREAD)) == bool(count)
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
        assert memory.count() == before + count


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("approve", [True, False])
def test_a_procedure_that_made_a_run_fail_is_repaired(
    memory: LocalMemory, approve: bool, is_async: bool
) -> None:
    bread = bread_of(memory)
    later = "\n".join(f"{number}. {step}" for number, step in enumerate(bread.steps, 2))
    writer = ScriptedModel({"repair": [REPAIRED.format(input=bread.input, later=later)]})
    options: Any = {
        "outcome": lambda _state: False,
        "repair": True,
        "approve": approve,
        "k": 1,
        "k_results": 0,
    }
    agent = learning(memory, writer, **options)
    result = asyncio.run(agent.ainvoke(TASK, THREAD)) if is_async else agent.invoke(TASK, THREAD)
    assert result["shown_procedures"] == [bread.id]
    if approve:
        (request,) = result["__interrupt__"][0].value["action_requests"]
        assert "The oven was cold" in request["description"]
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert writer.nodes == ["repair"]
    assert "bake a white bread" in writer.calls[0].prompt
    kept = memory.get(bread.id)
    assert kept
    assert kept.outcomes[:2] == (0, 1), "a run that is resumed counts once"
    repaired = ("Heat the oven, since `search` found nothing.", *bread.steps)
    if approve:
        assert (kept.steps, kept.versions[0]["why"]) == (repaired, "The oven was cold")
    else:
        (candidate,) = [each for each in memory if each.metadata.get("instead_of") == bread.id]
        assert (kept.steps, candidate.steps) == (bread.steps, repaired)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("CAUSE: The tool was out of order.\nPROCEDURE: NONE", ""),
        ("CAUSE: It is wrong.\nPROCEDURE: 4", "no line PROCEDURE"),
        (f"CAUSE: It is wrong.\nPROCEDURE: {'9' * 5_000}", "no line PROCEDURE"),
        ("CAUSE: It is wrong.\nPROCEDURE: 1", "is not there"),
        (REPAIRED.format(input="flour", later="2. Call `bake(heat=99)`."), "has heat, 99"),
        (
            AIMessage(
                REPAIRED.format(input="flour", later="2. Ba"),
                response_metadata={"finish_reason": "length"},
            ),
            "cut off by the token limit",
        ),
    ],
)
def test_a_repair_that_cannot_be_used_changes_nothing(
    memory: LocalMemory, caplog: pytest.LogCaptureFixture, reply: Reply, reason: str
) -> None:
    before = [*memory]
    writer = ScriptedModel({"success": ["NOT REACHED\nIt gave up."], "repair": [reply] * 2})
    agent = learning(memory, writer, repair=True, approve=False)
    assert agent.invoke(TASK, THREAD)["messages"][-1].text == "Baked."
    assert [*memory] == before, "what the model says of success is credited to nothing"
    assert reason in caplog.text
    assert writer.nodes == ["success", *["repair"] * (1 + bool(reason))]


def test_a_repair_needs_a_model(memory: LocalMemory) -> None:
    with pytest.raises(BadInput, match="learn="):
        ProceduralMemoryMiddleware(memory, repair=True)


WRONG = "Haldruvin built the Oster bridge in 1884."
RIGHT = "Haldruvin built the Oster bridge in 1873."
CHANGE = block(1, "1884", "1873")


def checked(replies: list[Any], check: list[Any], **shelf: Any) -> tuple[list[Any], ToolModel]:
    model, shelves = ToolModel(replies), Shelf(**shelf)
    middleware = [CheckAnswerMiddleware(shelves, model=ScriptedModel(check))]
    agent = create_agent(model, [search], middleware=middleware)
    return agent.invoke({"messages": [("human", "Who built the bridge?")]})["messages"], model


def test_a_wrong_answer_is_corrected_before_the_user_sees_it() -> None:
    messages, model = checked([searching("bridge"), WRONG], [CHANGE])
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert (messages[-1].text, len(model.calls)) == (RIGHT, 2)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_recursion_limit_of_an_agent_is_not_that_of_its_check(is_async: bool) -> None:
    check = CheckAnswerMiddleware(Shelf(), model=ScriptedModel([CHANGE]))
    agent = create_agent(ToolModel([WRONG]), middleware=[check])
    limit: Any = {"recursion_limit": 4}
    result = asyncio.run(agent.ainvoke(TASK, limit)) if is_async else agent.invoke(TASK, limit)
    assert result["messages"][-1].text == RIGHT


def test_a_corrected_answer_without_verdicts_is_not_called_unchecked() -> None:
    messages, _ = checked([searching("bridge"), WRONG], [CHANGE])
    note = messages[-1].response_metadata["stepcraft"]
    assert "unchecked" not in note
    assert note["unjudged"]


class TooLong(Exception):
    """What a server raises for a prompt that is too long."""

    status_code = 400


def test_a_check_costs_at_most_two_calls() -> None:
    model = ScriptedModel([TooLong("context_length_exceeded")] * 3)
    agent = create_agent(
        ToolModel([WRONG]), middleware=[CheckAnswerMiddleware(Shelf(), model=model)]
    )
    agent.invoke({"messages": [("human", "Who built the Oster bridge, who was mayor then?")]})
    assert len(model.calls) == 2


THINKING = {"type": "thinking", "thinking": "1884?", "signature": "sig"}
PICTURE = {"type": "image_generation_call", "id": "ig_1", "result": "iVBOR"}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "id": "msg_1", "annotations": []}


def cited(url: str, text: str) -> dict[str, Any]:
    """Return a block of Anthropic's with a citation."""
    return {"type": "text", "text": text, "citations": [{"url": url}]}


EMPTY = {"type": "text", "text": "", "extras": {"signature": "c2ln"}}


@pytest.mark.parametrize(
    ("answer", "corrected"),
    [
        (f"<think>\n1884?\n</think>\n\n{WRONG}", f"<think>\n1884?\n</think>\n\n{RIGHT}"),
        ([THINKING, text_block(WRONG)], [THINKING, text_block(RIGHT)]),
        ([THINKING, text_block(WRONG), PICTURE], [THINKING, text_block(RIGHT), PICTURE]),
        (
            [text_block("A."), PICTURE, text_block(WRONG), text_block("B.")],
            [text_block("A."), PICTURE, text_block(RIGHT), text_block("B.")],
        ),
        (
            [text_block(f"{WRONG} So"), PICTURE, text_block("it is.")],
            [text_block(f"{RIGHT} So"), PICTURE, text_block("it is.")],
        ),
        ([EMPTY, PICTURE, text_block(WRONG), EMPTY], [EMPTY, PICTURE, text_block(RIGHT), EMPTY]),
        (
            [cited("a", "Haldruvin built the Oster bridge "), cited("b", "in 1884. So.")],
            [cited("a", "Haldruvin built the Oster bridge "), cited("b", "in 1873. So.")],
        ),
        (
            [cited("a", f"{WRONG[:-3]}"), cited("b", f"{WRONG[-3:]}"), " ", cited("c", "So.")],
            [cited("a", RIGHT), " ", cited("c", "So.")],
        ),
        (
            [cited("a", f"{WRONG[:-5]}"), cited("b", "1884"), cited("c", ". So.")],
            [cited("a", f"{WRONG[:-5]}"), cited("b", "1873"), cited("c", ". So.")],
        ),
    ],
)
def test_only_the_text_of_a_message_changes(answer: Any, corrected: Any) -> None:
    facts: Any = {"id": "ai-1", "response_metadata": {"stop_reason": "end_turn"}}
    usage: Any = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    agent = create_agent(
        ToolModel([AIMessage(answer, usage_metadata=usage, **facts)]),
        middleware=[CheckAnswerMiddleware(Shelf(), model=ScriptedModel([CHANGE]))],
    )
    message = agent.invoke({"messages": [("human", "Who built the bridge?")]})["messages"][-1]
    assert message.content == corrected
    assert (message.id, message.usage_metadata) == (facts["id"], usage)
    assert message.response_metadata["stop_reason"] == "end_turn"


def test_each_statement_keeps_its_own_citations() -> None:
    answer = [cited("a", f"{WRONG} "), cited("b", "It is long. "), cited("c", "Hans was mayor.")]
    messages, _ = checked([AIMessage(answer)], [f"{CHANGE}\n{block(1, 'Hans', 'Ilse')}"])
    assert messages[-1].content == [
        cited("a", f"{RIGHT} "),
        cited("b", "It is long. "),
        cited("c", "Ilse was mayor."),
    ]


def test_a_statement_that_is_deleted_takes_its_citations_with_it() -> None:
    answer = [cited("a", f"{WRONG} "), cited("b", "It is of oak. "), cited("c", "It is long.")]
    changes = f"{CHANGE}\n{block(1, 'It is of oak. ')}"
    messages, _ = checked([AIMessage(answer)], [changes])
    assert messages[-1].content == [cited("a", f"{RIGHT} "), cited("c", "It is long.")]


@pytest.mark.parametrize("year", ["1873", "the year 1873", "73"])
def test_annotations_stay_on_their_words(year: str) -> None:
    text = f"A bridge. {WRONG} It is long."

    def at(words: str, text: str) -> dict[str, Any]:
        start = text.index(words)
        return {"url": words, "start_index": start, "end_index": start + len(words)}

    marked = [at(words, text) for words in ("A bridge.", "in 1884", "It is long.")]
    marked += [{"file_id": "f", "index": len(text)}, {"url": "all"}]
    answer = AIMessage([{**text_block(text), "annotations": marked}])
    [*_, message], _ = checked([answer], [block(1, "1884", year)])
    new = text.replace("1884", year)
    kept = [at(words, new) for words in ("A bridge.", "It is long.")]
    kept += [{"file_id": "f", "index": len(new)}, {"url": "all"}]
    assert message.content == [{**text_block(new), "annotations": kept}]


def test_a_change_that_names_another_part_is_kept() -> None:
    both = "The Oster bridge has four arches.\n\n{}"
    change = block(1, "the Oster bridge in 1884", "the Oster bridge in 1873")
    messages, _ = checked([both.format(WRONG)], [change])
    assert messages[-1].text == both.format(RIGHT)


@pytest.mark.parametrize("is_async", [False, True])
def test_the_message_has_the_verdicts_that_hold(is_async: bool) -> None:
    answer = f"{WRONG} It is of oak and iron. The mayor in 1873 was Ilse Quandt. It is long."
    changes = f"{CHANGE}\n{block(1, 'oak', 'granite')}"
    verdicts = "1.1 contradicted p1\n1.2 not found\n1.3 supported p2\n1.4 not found\n"
    model, settings = ScriptedModel([verdicts + changes]), RatContext(scope="complete")
    middleware = [CheckAnswerMiddleware(Shelf(), model=model, settings=settings)]
    agent = create_agent(ToolModel([answer]), middleware=middleware)
    task: Any = {"messages": [("human", "Who built the bridge?")]}
    result = asyncio.run(agent.ainvoke(task)) if is_async else agent.invoke(task)
    message = result["messages"][-1]
    assert message.text == answer.replace("1884", "1873").replace("oak", "granite")
    checks = message.response_metadata["stepcraft"]["checks"]
    assert [(check["verdict"], check["text"]) for check in checks] == [
        ("contradicted", WRONG),
        ("supported", "The mayor in 1873 was Ilse Quandt."),
        ("not found", "It is long."),
    ]


async def test_a_cancelled_agent_pays_for_no_more_calls() -> None:
    asked = asyncio.Event()

    def check(_node: str, _prompt: str) -> str:
        asked.set()
        return CHANGE

    checker = ScriptedModel(check, latency=0.1)
    settings = RatContext(rounds=3)
    middleware = [CheckAnswerMiddleware(Shelf(), model=checker, settings=settings)]
    agent = create_agent(ToolModel([WRONG]), middleware=middleware)
    run = asyncio.create_task(agent.ainvoke(TASK))
    await asked.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await asyncio.sleep(0.3)
    assert len(checker.calls) == 1


def test_an_answer_is_checked_for_its_question_though_a_summary_replaced_it() -> None:
    checker = ScriptedModel([CHANGE])
    agent = create_agent(
        ToolModel([searching("a"), searching("b"), searching("c"), WRONG]),
        [search],
        middleware=[
            SummarizationMiddleware(
                ScriptedModel(lambda *_: "They searched."),
                trigger=("messages", 3),
                keep=("messages", 1),
            ),
            CheckAnswerMiddleware(Shelf(), model=checker),
        ],
    )
    result = agent.invoke({"messages": [("human", "Who built the bridge?")]})
    assert "Here is a summary" in result["messages"][0].text
    assert result["messages"][-1].text == RIGHT
    assert shown(checker.calls[0].prompt, "question") == ["Who built the bridge?"]


async def test_on_an_event_loop_too() -> None:
    middleware = [CheckAnswerMiddleware(Shelf(), model=ScriptedModel([CHANGE]))]
    agent = create_agent(ToolModel([WRONG]), middleware=middleware)
    result = await agent.ainvoke({"messages": [("human", "Who built the bridge?")]})
    assert result["messages"][-1].text == RIGHT


@pytest.mark.parametrize(
    ("check", "shelf"),
    [
        (["NO CHANGE"], {}),
        ([RuntimeError("out of order")], {}),
        ([], {"passages": {}}),
    ],
)
def test_an_answer_without_changes_stays(check: list[Any], shelf: dict[str, Any]) -> None:
    messages, model = checked([searching("bridge"), WRONG], check, **shelf)
    assert messages[-1].text == WRONG
    assert len(model.calls) == 2


def test_wrong_arguments_are_refused_when_the_agent_is_built() -> None:
    with pytest.raises(BadInput, match="42"):
        ProceduralMemoryMiddleware(42)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="42"):
        CheckAnswerMiddleware(42)  # type: ignore[arg-type]
    assert CheckAnswerMiddleware(Shelf(), settings=RatContext(rounds=1)).name
    assert Procedure


@pytest.mark.parametrize(
    ("memory", "options", "words"),
    [
        ("missing.jsonl", {}, "there is no missing.jsonl"),
        ("no/such/folder/own.db", {}, "there is no no/such/folder"),
        ("mongodb://host/db", {}, "what kind of memory"),
        ("own.jsonl", {"learn": "extractive"}, "copy it into a .db file"),
        ("own.db", {"learn": "nonsense"}, "the model 'nonsense' cannot be used"),
    ],
)
def test_a_memory_or_a_model_that_cannot_be_used_is_refused_at_once(
    memory: str,
    options: dict[str, Any],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.jsonl").touch()
    with pytest.raises(BadInput, match=words):
        ProceduralMemoryMiddleware(memory, **options)


def test_a_model_that_cannot_check_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="the model 'nonsense' cannot be used"):
        CheckAnswerMiddleware(Shelf(), model="nonsense")


def test_an_answer_that_was_not_checked_says_why() -> None:
    def fail(_query: str) -> NoReturn:
        raise KeyError("of the source")

    check = CheckAnswerMiddleware(Shelf(fail=fail), model=ScriptedModel([]))
    agent = create_agent(ToolModel(["Done."]), [], middleware=[check])
    [*_, last] = agent.invoke({"messages": [HumanMessage("Who built it?")]})["messages"]
    assert "a search failed" in last.response_metadata["stepcraft"]["unchecked"]


class Builder(BaseModel):
    """The builder of a bridge."""

    builder: str


class StructuredModel(ToolModel):
    """A model that takes a schema along with its tools, as providers do."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


BUILDER = {"name": "Builder", "args": {"builder": "Haldruvin"}, "id": "c"}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("strategy", "reply"),
    [
        (ProviderStrategy(Builder), '{"builder": "Haldruvin"}'),
        (ToolStrategy(Builder), AIMessage("", tool_calls=[BUILDER])),
    ],
)
def test_a_structured_answer_says_that_it_was_not_checked(
    strategy: Any, reply: Any, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    check = CheckAnswerMiddleware(Shelf(), model=ScriptedModel([]))
    model = StructuredModel([searching("bridge"), reply])
    agent: Any = create_agent(model, [search], response_format=strategy, middleware=[check])
    result = asyncio.run(agent.ainvoke(TASK)) if is_async else agent.invoke(TASK)
    assert result["structured_response"] == Builder(builder="Haldruvin")
    answers = [each for each in result["messages"] if each.type == "ai"]
    notes = [each.response_metadata.get("stepcraft") for each in answers]
    reason = "it is structured, and its fields could not be changed to match"
    assert notes == [None, {"unchecked": reason}]
    assert f"the answer was not checked: {reason}" in caplog.text


def test_an_answer_that_no_language_model_checked_says_so() -> None:
    check = CheckAnswerMiddleware(Shelf(), model="extractive")
    agent = create_agent(ToolModel([RIGHT]), [], middleware=[check])
    [*_, last] = agent.invoke({"messages": [HumanMessage("Who built it?")]})["messages"]
    note = last.response_metadata["stepcraft"]
    [warning] = note["warnings"]
    assert (note["checks"][0]["verdict"], "no language model" in warning) == ("supported", True)


def test_the_passages_that_decide_come_with_the_checks() -> None:
    messages, _ = checked([WRONG], [f"1.1 contradicted p1\n{CHANGE}"])
    note = messages[-1].response_metadata["stepcraft"]
    deciding = [id_ for each in note["checks"] for id_ in each["evidence"]]
    assert [each["id"] for each in note["evidence"]] == deciding
    assert note["evidence"][0]["text"]


@pytest.mark.parametrize("source", ["docs/", "corpus:no/such/folder", {"docs": "corpsu:docs/"}])
def test_a_source_that_cannot_be_is_refused_at_once(source: Any) -> None:
    with pytest.raises(BadInput):
        CheckAnswerMiddleware(source)


def test_an_answer_whose_faults_are_all_corrected_has_no_reason_for_being_unchecked() -> None:
    messages, _ = checked([WRONG], [f"1.1 supported p1\n{CHANGE}", "1.1 supported p1"])
    assert "unchecked" not in messages[-1].response_metadata["stepcraft"]


def test_statements_without_a_verdict_are_named() -> None:
    answer = f"{WRONG} It is long.\n\nThe mayor in 1873 was Ilse Quandt. It is of oak."
    messages, _ = checked([answer], [f"1.1 contradicted p1\n2.2 not found\n{CHANGE}"])
    note = messages[-1].response_metadata["stepcraft"]
    assert note["unjudged"] == ["It is long.", "The mayor in 1873 was Ilse Quandt."]
