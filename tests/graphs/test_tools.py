"""Graphs and memories as tools of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from pydantic import ValidationError
from typing_extensions import TypedDict

from stepcraft import (
    AagContext,
    BadInput,
    RatContext,
    as_tool,
    build_aag,
    build_chat,
    build_rat,
    get_graph,
    memory_tools,
)
from stepcraft.memory.local import LocalMemory
from tests.kitchen import FullMemory, cook, small_memory
from tests.scripted import ScriptedModel, ToolModel, block
from tests.shelf import QUESTION, THREAD, Shelf

GO: Any = {"messages": [("human", "Go.")]}


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


def call(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"{name}-1"}])


def replies(
    tools: list[Any],
    *calls: AIMessage,
    config: Any = None,
    is_async: bool = False,
    **options: Any,
) -> Any:
    """Return the replies of tools to an agent that makes these calls."""
    agent = create_agent(ToolModel([*calls, "Done."]), tools, **options)
    result = asyncio.run(agent.ainvoke(GO, config)) if is_async else agent.invoke(GO, config)
    return [message for message in result["messages"] if isinstance(message, ToolMessage)]


def cut_off(_query: str) -> None:
    raise ConnectionError("the wire is cut")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("script", "shelf", "status", "words"),
    [
        (["Haldruvin.", "NO CHANGE"], Shelf(), "success", ["Haldruvin.", "\n- Oster (Oster.md)"]),
        (["Haldruvin."], Shelf(fail=cut_off), "success", ["the wire is cut", "unchecked"]),
        ([RuntimeError("out of order")], Shelf(), "error", ["out of order"]),
    ],
)
def test_an_agent_reads_the_answer_with_its_sources_or_what_went_wrong(
    script: list[Any], shelf: Shelf, status: str, words: list[str], is_async: bool
) -> None:
    tool = as_tool(build_rat(model=ScriptedModel(script), sources=shelf))
    (reply,) = replies([tool], call("rat", question=QUESTION["question"]), is_async=is_async)
    assert reply.status == status
    assert [word for word in words if word not in reply.text] == []


@pytest.mark.parametrize("is_async", [False, True])
def test_the_recursion_limit_of_an_agent_is_not_that_of_its_tools(is_async: bool) -> None:
    tool = as_tool(build_rat(model=ScriptedModel(["Haldruvin.", "NO CHANGE"]), sources=Shelf()))
    asked, limit = call("rat", question=QUESTION["question"]), {"recursion_limit": 4}
    (reply,) = replies([tool], asked, config=limit, is_async=is_async)
    assert reply.text.startswith("Haldruvin.")


def test_an_agent_reads_at_most_twenty_sources_and_all_that_are_cited() -> None:
    shelf = Shelf(passages={f"arch{number}": "An arch." for number in range(22)})
    graph = get_graph("rag", model=ScriptedModel(["It has arches."]), sources=shelf)
    tool = as_tool(graph, context={"k": 22})
    (reply,) = replies([tool], call("rag", question=" ".join(shelf.passages)))
    *_, last, more = reply.text.split("\n")
    assert (last, more) == ("[20] arch19 (arch19.md)", "and 2 more")
    graph = get_graph("rag", model=ScriptedModel(["It has arches [2][22]."]), sources=shelf)
    tool = as_tool(graph, context={"k": 22})
    (reply,) = replies([tool], call("rag", question=" ".join(shelf.passages)))
    *_, cited, more = reply.text.split("\n")
    assert (cited, more) == ("[22] arch21 (arch21.md)", "and 1 more")


@pytest.mark.parametrize("mark", ["[2]", "[^2]", "\u30102\u3011", "[p2]"])
def test_the_marks_of_a_draft_are_not_those_of_our_sources(mark: str) -> None:
    draft = f"The mayor in 1873 was Ilse Quandt {mark}."
    rat = build_rat(model=ScriptedModel(["1.1 supported p1"]), sources=Shelf())
    (reply,) = replies([as_tool(rat, arguments=["draft"])], call("rat", **QUESTION, draft=draft))
    sources = "- mayor (mayor.md)\n- Oster (Oster.md)"
    assert reply.text == f"{draft}\n\nSources:\n{sources}"


def test_an_agent_reads_of_a_chat_what_it_would_read_of_its_graph() -> None:
    script = ["It has arches [1].", "1 not found"]
    rat = as_tool(build_rat(model=ScriptedModel(script), sources=Shelf()))
    route = f"KIND: REASON\nQUESTION: {QUESTION['question']}"
    model = ScriptedModel([route, *script])
    chat = as_tool(build_chat(model=model, sources=Shelf()))
    expected, reply = (
        replies([tool], call(name, **QUESTION))[0] for tool, name in ((rat, "rat"), (chat, "chat"))
    )
    assert "\n\nSources:\n- " in reply.text
    assert "\n\nNot found in the sources:\n- It has arches" in reply.text
    assert reply.text == expected.text
    assert reply.artifact["method"] == "rat"


def test_the_marks_of_rpg_are_those_of_its_sources() -> None:
    script = {"plan": ["KIND: long\n- mayor"], "generate": ["Ilse Quandt was mayor [p1]."]}
    model = ScriptedModel({**script, "look_again": ["NOTHING"], "revise": ["NO CHANGE"]})
    (reply,) = replies(
        [as_tool(get_graph("rpg", model=model, sources=Shelf()))], call("rpg", **QUESTION)
    )
    assert "mayor [1].\n\nSources:\n[1] " in reply.text


def test_equal_texts_under_two_titles_or_from_two_sources_are_two_passages() -> None:
    class Store(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            places = [("Alpha", "a.md"), ("Beta", "a.md"), ("Alpha", "b.md"), ("Alpha", "a.md")]
            metadata = [{"title": title, "source": source} for title, source in places]
            return [Document("Not available.", metadata=each) for each in metadata]

    graph = get_graph("rag", model=ScriptedModel(["It is not."]), sources=Store())
    evidence = graph.invoke({"question": "Is it available?"})["evidence"]
    assert [(each["title"], each["source"]) for each in evidence] == [
        ("Alpha", "a.md"),
        ("Beta", "a.md"),
        ("Alpha", "b.md"),
    ]


class Checked(TypedDict, total=False):
    question: str
    answer: str
    evidence: list[Any]
    checks: list[Any]
    warnings: list[str]


def test_an_agent_reads_what_was_not_found() -> None:
    texts = [f"Claim {number}." for number in range(12)]
    checks: list[Any] = [
        {
            "round": 1,
            "part": 1,
            "statement": number,
            "text": text,
            "words": "",
            "verdict": "not found",
            "evidence": [],
        }
        for number, text in enumerate(texts, 1)
    ]
    checks.append({**checks[0], "text": "Haldruvin.", "verdict": "supported", "evidence": ["a"]})
    output = Checked(answer="Haldruvin.", evidence=[], checks=checks, warnings=["It was slow."])
    builder = StateGraph(Checked, RatContext)
    builder.add_node("check", lambda _state: output)
    builder.add_edge(START, "check")
    tool = as_tool(builder.compile(name="rat"))
    (reply,) = replies([tool], call("rat", question="Who?"))
    assert reply.text == (
        "Haldruvin.\n\nNot found in the sources:\n"
        + "".join(f"- {text}\n" for text in texts[:10])
        + "and 2 more\n\nWarnings:\n- It was slow."
    )
    assert reply.artifact["checks"] == checks


CHECKED = [
    '1.1 supported p1\n1.2 not found\n2.1 not found "in June"\n'
    + block(2, "Ida", "Ilse")
    + "\n"
    + block(1, "of oak", "of granite"),
    "1.1 supported p1\n1.2 not found\n2.1 supported p3",
]
"""Two rounds: of what was not found in the first, one is changed and one is then found."""
BRIDGE = (
    "Haldruvin built the Oster bridge in 1873. The Oster bridge is made of oak and iron.\n\n"
    "The mayor in 1873 was Ida Quandt, who began in June."
)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("rounds", "listed"),
    [
        (1, ['"in June" in: The mayor in 1873 was Ida Quandt, who began in June.']),
        (2, ["The Oster bridge is made of granite and iron."]),
    ],
)
def test_a_statement_that_was_changed_is_not_listed_as_not_found(
    rounds: int, listed: list[str], is_async: bool
) -> None:
    graph = build_rat(model=ScriptedModel(CHECKED), sources=Shelf())
    tool = as_tool(graph, arguments=["draft"], context={"rounds": rounds, "scope": "complete"})
    asked = call("rat", **QUESTION, draft=BRIDGE)
    (reply,) = replies([tool], asked, is_async=is_async)
    _, _, below = reply.text.partition("\n\nNot found in the sources:\n")
    assert below.partition("\n\n")[0] == "\n".join(f"- {text}" for text in listed)


def test_arguments_and_settings_of_a_tool(memory: LocalMemory) -> None:
    graph = build_aag(model=ScriptedModel(cook()), memory=memory)
    tool = as_tool(graph, name="steps", context={"rounds": 1})
    assert set(tool.args) == {"question", "resources"}
    (reply,) = replies([tool], call("steps"))
    assert "cannot be used" in reply.text
    with pytest.raises(BadInput, match="no graph of this package"):
        as_tool(42)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="AagContext"):
        as_tool(graph, context=RatContext())
    with pytest.raises(BadInput, match="function"):
        as_tool(graph, context=lambda _: {"k": 1})  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="nobody"):
        as_tool(graph, context={"nobody": 1})
    with pytest.raises(BadInput, match="nothing"):
        as_tool(graph, arguments=["nothing"])
    with pytest.raises(BadInput, match="has a space"):
        as_tool(graph, name="has a space")
    assert set(as_tool(graph, arguments=["question", "resources"]).args) == set(tool.args)


@pytest.mark.parametrize("arguments", [[], ["draft"]])
def test_a_model_is_told_of_drafts_only_if_it_can_pass_one(arguments: list[str]) -> None:
    tool = as_tool(build_rat(), arguments=arguments)
    assert tool.description.startswith("For a question that requires reasoning: ")
    assert ("draft" in tool.description) == bool(arguments)


def test_a_model_is_told_what_a_graph_does_whatever_its_name() -> None:
    assert as_tool(build_rat(name="docs")).description == as_tool(build_rat()).description


def test_a_review_within_a_tool_stops_the_agent(memory: LocalMemory) -> None:
    graph = build_aag(model=ScriptedModel(cook()), memory=memory)
    tool = as_tool(graph, context=AagContext(review=True))
    agent = create_agent(
        ToolModel([call("aag", question="bake"), "Done."]), [tool], checkpointer=InMemorySaver()
    )
    stopped = agent.invoke(GO, THREAD)
    assert stopped["__interrupt__"][0].value["action_requests"][0]["name"] == "review"
    ended = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
    assert ended["messages"][-1].text == "Done."


def test_an_agent_searches_and_rates(memory: LocalMemory) -> None:
    id_ = next(iter(memory)).id
    search = call("search_procedures", query="bake a bread")
    rate = call("rate_procedure", id=id_, worked=True)
    first, rated, second = replies(memory_tools(memory), search, rate, search)
    assert "bake a white bread" in first.text
    assert "worked in 1 of 1 runs" in rated.text
    assert "worked in 1 of 1 runs" in second.text


SAVE = call("save_procedure", goal="bake a cake", needs="flour", steps=["Mix.", "Bake."])


EDITED = {"name": "save_procedure", "args": {"steps": ["Mix well."]}}
NUMBERED = {"name": "save_procedure", "args": {"steps": ["1. Mix well."]}}


REJECTED = "It was not saved, because a person rejected it"


@pytest.mark.parametrize(
    ("decision", "steps", "read"),
    [
        ({"type": "approve"}, [["Mix.", "Bake."]], "The procedure is saved with the id "),
        ({"type": "edit", "edited_action": EDITED}, [["Mix well."]], "The procedure is saved "),
        ({"type": "edit", "edited_action": NUMBERED}, [["Mix well."]], "The procedure is saved "),
        ({"type": "reject", "message": "too short"}, [], f"{REJECTED}: too short"),
        ({"type": "reject"}, [], REJECTED),
        ({"type": "respond", "message": "Write more."}, [], f"{REJECTED}: Write more."),
    ],
)
def test_a_person_decides_on_what_is_saved(
    memory: LocalMemory, decision: Any, steps: list[list[str]], read: str
) -> None:
    agent = create_agent(
        ToolModel([SAVE, "Done."]), memory_tools(memory), checkpointer=InMemorySaver()
    )
    stopped = agent.invoke(GO, THREAD)
    assert stopped["__interrupt__"][0].value["action_requests"][0]["args"]["goal"] == "bake a cake"
    ended = agent.invoke(Command(resume={"decisions": [decision]}), THREAD)
    assert [list(each.steps) for each in memory if each.output == "bake a cake"] == steps
    reply = ended["messages"][-2].text
    assert reply.startswith(read) if steps else reply == read


@pytest.mark.parametrize(
    ("args", "words"),
    [({"steps": []}, "steps cannot be used"), ({"step": ["Mix."]}, "'step'"), ({}, "the edit {}")],
)
def test_an_edit_that_cannot_be_saved_is_asked_for_again(
    memory: LocalMemory, args: dict[str, Any], words: str
) -> None:
    agent = create_agent(
        ToolModel([SAVE, "Done."]), memory_tools(memory), checkpointer=InMemorySaver()
    )
    agent.invoke(GO, THREAD)
    edited = {"name": "save_procedure", "args": args}
    decision = {"type": "edit", "edited_action": edited}
    asked = agent.invoke(Command(resume={"decisions": [decision]}), THREAD)
    (request,) = asked["__interrupt__"][0].value["action_requests"]
    assert words in request["description"]


def test_an_agent_without_a_checkpointer_reads_that_nobody_can_approve(memory: LocalMemory) -> None:
    (reply,) = replies(memory_tools(memory), SAVE)
    assert (reply.status, "requires a checkpointer" in reply.text) == ("error", True)


def test_an_agent_reads_why_a_procedure_was_not_saved() -> None:
    with FullMemory(":memory:", embeddings="none", create=True) as full:
        (reply,) = replies(memory_tools(full, approve=False), SAVE)
    assert (reply.status, reply.text) == ("error", "it was not saved: the disk is full")


def test_a_procedure_is_saved_once(memory: LocalMemory) -> None:
    first, second = replies(memory_tools(memory, approve=False), SAVE, SAVE)
    assert ("is saved" in first.text, "is there already" in second.text) == (True, True)
    assert [each.output for each in memory].count("bake a cake") == 1


def test_a_procedure_is_saved_without_the_numbers_of_its_steps(memory: LocalMemory) -> None:
    steps = ["1. Mix.", "2. Bake."]
    again = call("save_procedure", goal="bake a cake", needs="flour", steps=steps)
    first, second = replies(memory_tools(memory, approve=False), SAVE, again)
    assert ("is saved" in first.text, "is there already" in second.text) == (True, True)


def test_each_user_has_a_memory_of_their_own() -> None:
    store = InMemoryStore()
    tools = memory_tools("store:team/{user}", approve=False)

    def of(user: str, what: AIMessage) -> str:
        config = {"configurable": {"user": user}}
        return str(replies(tools, what, config=config, store=store)[0].text)

    search = call("search_procedures", query="bake a cake")
    assert "saved" in of("ada", SAVE)
    assert "bake a cake" in of("ada", search)
    assert "no procedure" in of("ben.o", search)
    (reply,) = replies(tools, search, store=store)
    assert (reply.status, "user" in reply.text) == ("error", True)
    for forged in (
        "../ada",
        "ada/../ada",
        "team/ada",
        "ada/",
        "{user}",
        "*",
        " ada",
        "Ada",
        "ada\0",
    ):
        assert "no procedure" in of(forged, search), forged
        assert "saved" in of(forged, SAVE)
    assert "user" in of("", search)
    namespaces = store.list_namespaces()
    assert {len(each) for each in namespaces} == {2}
    assert len(namespaces) == 10
