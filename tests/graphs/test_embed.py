"""`as_node`, `as_tool`, the reducers for parents, and graphs that stop at a node: what they take, give and refuse."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from stepcraft import AagContext, BadInput, RatContext, as_node, as_tool, merge_evidence
from stepcraft.evidence import Evidence
from stepcraft.graphs.registry import GRAPHS
from tests.graphs.killed import THREAD, chat
from tests.graphs.parents import Theirs, built, mapped, parent_of
from tests.graphs.test_tracing import Recorder, below
from tests.scripted import ScriptedModel, ToolModel
from tests.servers.openai_replies import tool_call
from tests.servers.openai_server import OpenAIServer
from tests.shelf import DRAFT, QUESTION, Shelf

TASK = {"task": QUESTION["question"]}


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"answer": "notes"}, "as_node needs the key that rat reads: question=<the parent's key>"),
        ({"question": "task"}, "as_node needs a key for the result of rat: answer=<the parent's key>"),
        ({"question": "task", "anwser": "notes"}, "rat has no key 'anwser'; did you mean 'answer'?"),
        ({"question": "task", "kind": "notes"}, "rat has no key 'kind'; there is question, answer, "),
        (
            {"question": "task", "answer": "notes", "draft": "notes"},
            "as_node writes two results to the key 'notes'; give each its own",
        ),
        (
            {"question": "taks", "answer": "notes", "state": Theirs},
            "Theirs has no key 'taks', which as_node uses for 'question'; did you mean 'task'?",
        ),
        (
            {"question": "task", "answer": "notes", "context": {"windw": 1}},
            "there is no setting 'windw'; did you mean 'window'?",
        ),
        (
            {"question": "task", "answer": "notes", "context": AagContext()},
            "the context is a AagContext; this graph takes RatContext",
        ),
        (
            {"question": "task", "answer": "notes", "context_from": {"windw": "w"}},
            "there is no setting 'windw'; did you mean 'window'?",
        ),
    ],
)
def test_a_wrong_key_or_setting_is_refused_at_build_time(keys: Any, sentence: str) -> None:
    with pytest.raises(BadInput) as refused:
        as_node(built("rat")[0], **keys)
    assert str(refused.value).startswith(sentence)


def test_a_graph_of_others_is_refused() -> None:
    for use in (lambda graph: as_node(graph, question="task", answer="notes"), as_tool):
        with pytest.raises(BadInput, match="CompiledStateGraph is no graph of this package"):
            use(parent_of(lambda state: state))


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"question": "taks", "answer": "notes"},
            "no 'taks', where rat reads its question; did you mean 'task'?",
        ),
        ({"question": "task", "answer": "noets"}, "no 'noets', where rat writes 'answer'; there is task"),
    ],
)
def test_a_parent_without_the_keys_is_refused_before_any_call(keys: Any, sentence: str) -> None:
    graph, _, model = built("rat")
    with pytest.raises(BadInput, match=sentence.replace("?", r"\?")):
        parent_of(as_node(graph, **keys), state=Theirs).invoke(TASK)
    assert model.calls == []


class Modelled(BaseModel):
    task: str
    notes: str = ""
    things: str | None = None


@dataclass
class Classed:
    task: str
    notes: str = ""
    things: str | None = None


@pytest.mark.parametrize("state", [Modelled, Classed])
def test_parents_whose_state_is_an_object(state: Any) -> None:
    graph, _, _ = built("aag")
    node = as_node(graph, question="task", resources="things", answer="notes", state=state)
    assert parent_of(node, state=state).invoke(state(**TASK))["notes"].startswith("1. Mix")
    with pytest.raises(BadInput, match="no 'job', where aag reads its question"):
        parent_of(as_node(graph, question="job", answer="notes"), state=state).invoke(state(**TASK))


class Planned(TypedDict, total=False):
    task: str
    things: str
    plan: list[str]
    spent: dict[str, Any]


def test_several_keys_and_an_input_that_is_not_there() -> None:
    graph, _, model = built("aag")
    parent = parent_of(
        as_node(graph, question="task", resources="things", steps="plan", usage="spent"), state=Planned
    )
    result = parent.invoke(TASK)
    assert result["plan"][0].startswith("Mix")
    assert result["spent"]["calls"] == len(model.calls)
    assert set(result) == {"task", "plan", "spent"}
    parent.invoke({**TASK, "things": "a jar of rye"})
    assert "a jar of rye" in model.calls[-1].prompt


@dataclass
class Settings:
    depth: int | None = 3
    model: str = "nobody:knows"
    temperature: float = 1.0


def shown(shelf: Shelf) -> set[int]:
    """How many passages the searches asked for."""
    return {count for _, count in shelf.queries}


@pytest.mark.parametrize(
    ("options", "context", "k", "temperature"),
    [
        ({}, Settings(), 2, None),
        ({"context": RatContext(passages_per_step=1)}, Settings(), 1, None),
        ({"context": {"passages_per_step": 1}}, Settings(), 1, None),
        ({"context_from": {"passages_per_step": "depth"}}, Settings(), 3, None),
        ({"context_from": {"passages_per_step": "depth"}}, Settings(None), 2, None),
        ({"context_from": {"passages_per_step": "depth"}}, None, 2, None),
        ({"context_from": {"passages_per_step": "depth"}}, {"depth": 4}, 4, None),
        ({"context_from": {"passages_per_step": "depth"}}, {"deep": 4}, 2, None),
        (
            {"context": {"temperature": 0.1}, "context_from": {"passages_per_step": "depth"}},
            Settings(),
            3,
            0.1,
        ),
        (
            {"context": lambda held: RatContext(passages_per_step=held.depth, temperature=0.2)},
            Settings(4),
            4,
            0.2,
        ),
        ({"context": lambda _held: {"passages_per_step": 4}}, Settings(), 4, None),
        ({"context": lambda _held: None}, Settings(), 2, None),
    ],
)
async def test_only_what_is_named_of_a_parents_context_is_taken(
    options: Any, context: Any, k: int, temperature: float | None
) -> None:
    shelf = Shelf()
    graph, _, model = built("rat", retriever=shelf)
    schema = None if isinstance(context, dict) else Settings
    parent = parent_of(mapped(graph, **options), schema, Theirs)
    parent.invoke(TASK, context=context)
    await parent.ainvoke(TASK, context=context)
    assert shown(shelf) == {k}
    assert {call.kwargs.get("temperature") for call in model.calls} == {temperature}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"context_from": {"window": "dept"}},
            "the parent's context has no 'dept', from which as_node takes 'window'; did you mean 'depth'",
        ),
        ({"context_from": {"window": "model"}}, "window='nobody:knows' cannot be used"),
        ({"context": lambda _held: {"windw": 1}}, "there is no setting 'windw'"),
    ],
)
def test_a_parents_context_that_cannot_be_used(options: Any, sentence: str) -> None:
    graph, _, model = built("rat")
    with pytest.raises(BadInput, match=sentence):
        parent_of(mapped(graph, **options), Settings, Theirs).invoke(TASK, context=Settings())
    assert model.calls == []


def test_the_drawing_of_a_parent_shows_our_nodes() -> None:
    drawn = parent_of(mapped(built("rat")[0]), state=Theirs).get_graph(xray=True)
    assert {"write:begin", "write:step:revise", "write:finish"} <= set(drawn.nodes)


def test_the_state_of_a_parent_holds_that_of_the_graph() -> None:
    graph, _, _ = built("rat", interrupt_before=["revise"])
    parent = parent_of(mapped(graph), state=Theirs, checkpointer=InMemorySaver())
    parent.invoke(TASK, THREAD)
    inside: Any = parent.get_state(THREAD, subgraphs=True).tasks[0].state
    assert (inside.values["draft"], inside.next) == (DRAFT, ("step",))
    assert [task.state.next for task in inside.tasks] == [("revise",)]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_trace_nests_without_a_layer_of_its_own(way: str) -> None:
    recorder = Recorder()
    parent = parent_of(mapped(built("rag")[0]), state=Theirs)
    if way == "invoke":
        parent.invoke(TASK, {"callbacks": [recorder]})
    else:
        asyncio.run(parent.ainvoke(TASK, {"callbacks": [recorder]}))
    [node] = recorder.root.child_runs
    [graph] = node.child_runs
    assert (node.name, graph.name) == ("write", "rag")
    assert [run.name for run in graph.child_runs] == ["begin", "retrieve", "answer"]


async def test_cancelling_the_parent_cancels_the_call() -> None:
    asked = asyncio.Event()
    model = ScriptedModel(lambda _node, _prompt: asked.set() or "late", latency=30)
    graph, _, _ = built("direct", model=model)
    running = asyncio.create_task(parent_of(mapped(graph), state=Theirs).ainvoke(TASK))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(model.calls) == 1


def test_a_node_outside_of_a_graph() -> None:
    assert mapped(built("direct")[0]).invoke(TASK) == {"notes": "An answer."}


def test_what_comes_after_it_in_the_same_node_may_read_the_result() -> None:
    class Length(TypedDict, total=False):
        task: str
        length: int

    node = mapped(built("direct")[0]) | (lambda update: {"length": len(update["notes"])})
    assert parent_of(node, state=Length).invoke(TASK)["length"] == len("An answer.")


def evidence(name: str, text: str, score: float) -> Evidence:
    return {"id": name, "title": "", "text": text, "source": "", "score": score}


def test_evidence_is_merged_by_id() -> None:
    left, right = (
        [evidence("a", "one", 0.5), evidence("b", "two", 0.4)],
        [evidence("b", "two", 0.9), evidence("a", "another", 0.1)],
    )
    merged = merge_evidence(left, right)
    assert [(one["text"], one["score"]) for one in merged] == [("one", 0.5), ("two", 0.9), ("another", 0.1)]
    assert (merged[0]["id"], merged[2]["id"][:2]) == ("a", "a-")
    assert merge_evidence(merged, right) == merged, "again changes nothing"
    assert (left[1]["score"], right[1]["id"]) == (0.4, "a"), "the lists are left as they are"


def calls(*asked: Any) -> AIMessage:
    """A turn of an agent's model that calls tools."""
    made = [
        {"name": name, "args": args, "id": str(number), "type": "tool_call"}
        for number, (name, args) in enumerate(asked)
    ]
    return AIMessage("", tool_calls=made)


def replies(result: Any) -> list[ToolMessage]:
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


def asking(text: str) -> Any:
    return {"messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_schema_of_a_tool(name: str) -> None:
    tool = as_tool(built(name)[0])
    schema: Any = tool.tool_call_schema
    shown = schema.model_json_schema()
    assert (tool.name, shown["required"]) == (name, ["question"])
    assert set(shown["properties"]) - {"resources"} == {"question"}
    assert all(argument["description"] for argument in shown["properties"].values())
    assert tool.description.startswith(GRAPHS[name].sentence)


def test_arguments_that_the_model_may_fill() -> None:
    shelf = Shelf()
    graph, _, _ = built("rpg", retriever=shelf)
    tool = as_tool(graph, name="research", description="Looks it up.", arguments=["kind", "passages"])
    assert (tool.name, tool.description, set(tool.args)) == (
        "research",
        "Looks it up.",
        {"question", "kind", "passages"},
    )
    called = tool.invoke(
        calls(("research", {**QUESTION, "kind": "short", "passages": ["It was 1566."]})).tool_calls[0]
    )
    assert (called.status, shelf.queries) == ("success", []), "what the model gives is not searched for"
    assert set(as_tool(built("aag")[0], arguments=[]).args) == {"question"}
    with pytest.raises(BadInput, match="rpg takes no argument 'kin'; did you mean 'kind'"):
        as_tool(graph, arguments=["kin"])


@pytest.mark.parametrize("way", ["sync", "async"])
def test_an_agent_uses_a_tool(way: str) -> None:
    graph, question, _ = built("rat")
    model = ToolModel([calls(("rat", {"question": question})), "Haldruvin did."])
    agent = create_agent(model, [as_tool(graph, context={"window": 1})])
    given = asking("Who?")
    result = agent.invoke(given) if way == "sync" else asyncio.run(agent.ainvoke(given))
    [reply] = replies(result)
    assert result["messages"][-1].text == "Haldruvin did."
    assert reply.text.startswith("The answer.\n\nSources:\n- On query for The bridge was built in 1566.")
    assert reply.text.count("\n- ") == len(reply.artifact["evidence"]) == 6
    assert {"evidence", "warnings", "usage", "revisions"} <= set(reply.artifact)
    assert reply.text in model.calls[1].prompt


@dataclass(slots=True)
class Slots:
    task: str = ""
    notes: str = ""


def test_a_parents_state_may_have_slots() -> None:
    graph, question, _ = built("rat")
    parent = parent_of(as_node(graph, question="task", answer="notes", state=Slots), state=Slots)
    assert parent.invoke({"task": question})["notes"] == "The answer."
    with pytest.raises(BadInput, match=r"no key 'tsk'.*did you mean 'task'"):
        as_node(graph, question="tsk", answer="notes", state=Slots)


def test_the_chat_is_a_tool() -> None:
    graph, question, _ = built("chat")
    tool = as_tool(graph)
    assert (tool.name, "sees nothing of this conversation" in tool.description) == ("chat", True)
    assert "The answer." in tool.invoke({"question": question})


def test_sources_are_numbered_where_the_answer_cites_them() -> None:
    graph, question, _ = built("rag", model=ScriptedModel(["It was built in 1566 [2]."]))
    reply = as_tool(graph).invoke({"question": question})
    assert "1566 [2]" in reply
    assert re.findall(r"^\[\d\]", reply.partition("Sources:")[2], re.MULTILINE)[:2] == ["[1]", "[2]"]


def test_nothing_of_an_agents_context_is_taken() -> None:
    graph, question, model = built("rag")
    agent = create_agent(
        ToolModel([calls(("rag", {"question": question})), "Yes."]), [as_tool(graph)], context_schema=Settings
    )
    agent.invoke(asking("Who?"), context=Settings())
    assert [call.kwargs.get("temperature") for call in model.calls] == [None]


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"question": " "}, "the question is empty; say what is wanted"),
        ({}, "question cannot be used: field required"),
        (
            {"question": "Who?", "kind": "brief"},
            "kind cannot be used: input should be 'auto', 'long', 'short'",
        ),
    ],
)
def test_a_model_is_told_what_was_wrong_and_asks_again(way: str, arguments: Any, sentence: str) -> None:
    graph, question, _ = built("rpg")
    model = ToolModel([calls(("rpg", arguments)), calls(("rpg", {"question": question})), "Yes."])
    agent = create_agent(model, [as_tool(graph, arguments=["kind"])])
    result = agent.invoke(asking("Who?")) if way == "sync" else asyncio.run(agent.ainvoke(asking("Who?")))
    wrong, right = replies(result)
    assert (wrong.status, right.status) == ("error", "success")
    assert wrong.text.startswith(sentence)


def test_a_failure_is_a_reply_without_secrets() -> None:
    class Refusing(Exception):
        status_code = 401

    graph, question, _ = built("direct", model=ScriptedModel(lambda *_: Refusing("key sk-abcdefgh12345678")))
    result = create_agent(
        ToolModel([calls(("direct", {"question": question})), "No."]), [as_tool(graph)]
    ).invoke(asking("Who?"))
    [reply] = replies(result)
    assert (reply.status, "refuses every call" in reply.text, "sk-abc" in reply.text) == (
        "error",
        True,
        False,
    )


def test_a_fault_in_a_users_code_is_raised() -> None:
    graph, question, _ = built("direct", model=ScriptedModel(lambda *_: TypeError("a bug")))
    with pytest.raises(TypeError, match="a bug"):
        as_tool(graph).invoke({"question": question})


def test_an_interrupt_passes_through_an_agent() -> None:
    asks = Shelf(says=lambda _query: [Document(interrupt("What is known?"), id="told")])
    graph, question, answering = built("rag", retriever=asks)
    model = ToolModel([calls(("rag", {"question": question})), "Haldruvin did."])
    agent = create_agent(model, [as_tool(graph)], checkpointer=InMemorySaver())
    asked = agent.invoke(asking("Who?"), THREAD)
    assert [one.value for one in asked["__interrupt__"]] == ["What is known?"]
    result = agent.invoke(Command(resume="It was Haldruvin."), THREAD)
    assert result["messages"][-1].text == "Haldruvin did."
    assert "It was Haldruvin." in answering.calls[0].prompt


def test_two_calls_in_one_turn_stream_and_are_kept() -> None:
    graph, question, _ = built("rat")
    model = ToolModel([calls(("rat", {"question": question}), ("rat", {"question": "Who else?"})), "Both."])
    agent = create_agent(model, [as_tool(graph)], checkpointer=InMemorySaver())
    recorder = Recorder()
    config: Any = {**THREAD, "callbacks": [recorder]}
    inner = Counter(
        node
        for namespace, update in agent.stream(asking("Who?"), config, stream_mode="updates", subgraphs=True)
        for node in update
        if len(namespace) == 1
    )
    assert (inner["draft"], inner["finish"]) == (2, 2)
    kept = agent.get_state(THREAD).values["messages"]
    assert [bool(message.artifact["evidence"]) for message in kept if isinstance(message, ToolMessage)] == [
        True,
        True,
    ]
    tools = [run for run in below(recorder.root) if run.run_type == "tool"]
    assert [[child.name for child in tool.child_runs] for tool in tools] == [["rat"], ["rat"]]


def test_a_tool_through_langchain_openai() -> None:
    graph, question, _ = built("aag")
    script = [tool_call("procedure", question=question, resources="rye"), "Done."]
    with OpenAIServer(script) as server:
        agent = create_agent(chat(server), [as_tool(graph, name="procedure")])
        result = agent.invoke(asking("How is a rye bread baked?"))
    [offered] = server.bodies[0]["tools"]
    assert offered["function"]["parameters"]["required"] == ["question"]
    told = server.bodies[1]["messages"][-1]
    assert (told["role"], told["content"].startswith("1. Mix")) == ("tool", True)
    assert result["messages"][-1].text == "Done."


@pytest.mark.parametrize(
    ("name", "node", "near"),
    [
        ("rat", "revize", "did you mean 'revise'?"),
        ("rpg", "selct", "did you mean 'select'?"),
        ("react", "tool", "did you mean 'tools'?"),
        ("direct", "critic", "there is begin, answer"),
        ("chat", "roter", "did you mean 'route'?"),
    ],
)
@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
def test_a_stop_at_a_node_that_there_is_not(option: str, name: str, node: str, near: str) -> None:
    with pytest.raises(BadInput) as refused:
        built(name, **{option: [node]})
    assert str(refused.value) == f"{name} has no node {node!r} to stop at; {near}"


def test_a_text_instead_of_a_list_of_nodes() -> None:
    with pytest.raises(
        BadInput, match="interrupt_before='critic' cannot be used: it should be a list of nodes"
    ):
        built("aag", interrupt_before="critic")


@pytest.mark.parametrize(
    ("name", "stops"),
    [
        ("aag", {"interrupt_before": ["critic"]}),
        ("rat", {"interrupt_before": ["revise"], "interrupt_after": ["draft"]}),
        ("rpg", {"interrupt_after": ["select"]}),
        ("direct", {"interrupt_after": ["begin"]}),
        ("cot", {"interrupt_before": ["answer"]}),
        ("rag", {"interrupt_after": ["retrieve"]}),
        ("few_shot", {"interrupt_before": ["sample"]}),
        ("react", {"interrupt_before": ["model"]}),
        ("chat", {"interrupt_before": ["revise"]}),
        ("chat", {"interrupt_after": ["route"], "interrupt_before": ["rat"]}),
    ],
)
def test_every_graph_stops_where_it_is_told(name: str, stops: Any) -> None:
    usual, question, model = built(name)
    graph, _, stopping = built(name, checkpointer=InMemorySaver(), **stops)
    expected = usual.invoke({"question": question})
    graph.invoke({"question": question}, THREAD)
    assert graph.get_state(THREAD).next
    while graph.get_state(THREAD).next:
        result = graph.invoke(None, THREAD)
    assert (result["answer"], sorted(stopping.nodes)) == (expected["answer"], sorted(model.nodes))
