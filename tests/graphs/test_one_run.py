"""What belongs to one run: its input, its settings and its limits, on threads and below parents."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from stepcraft import (
    BadInput,
    ChatContext,
    MemoryFailure,
    NoAnswer,
    RatContext,
    build_aag,
    build_chat,
    build_rat,
    build_rpg,
    get_graph,
    rat_builder,
    rpg_builder,
)
from stepcraft.contexts.baselines import RagContext
from stepcraft.graphs.baselines import rag_builder
from stepcraft.memory.local import LocalMemory
from tests.kitchen import DRAFT, GAPS, LOOK_UP, PROCEDURES, small_memory
from tests.scripted import ScriptedModel, block
from tests.shelf import QUESTION, THREAD, Shelf, shown

BUILT = "Haldruvin built it."
CHECKED = {**QUESTION, "draft": BUILT}


def by_node(**replies: str) -> ScriptedModel:
    """Return a model that gives each node its reply, as often as it is asked."""
    return ScriptedModel(lambda node, _prompt: replies[node])


def rat(model: ScriptedModel | None = None, **options: Any) -> tuple[Any, ScriptedModel]:
    """Return RAT with a saved thread, and its model."""
    model = model or by_node(draft=BUILT, revise="1 supported p1")
    options = {"sources": Shelf(), "checkpointer": InMemorySaver(), **options}
    return build_rat(model=model, **options), model


def test_inputs_that_are_sent_again_with_another_question_count_again() -> None:
    model = by_node(plan="- Oster", generate="Fact.\n\nAnswer: Haldruvin.", revise="NO CHANGE")
    rpg = build_rpg(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    for question in ("Who built Oster?", "Who was mayor?"):
        result = rpg.invoke({"question": question, "kind": "short"}, THREAD)
        assert (result["form"], result["answer"]) == ("short", "Haldruvin")
    assert rpg.invoke({"question": "Who was mayor?"}, THREAD)["form"] == "long"

    model = by_node(to_query=LOOK_UP, look_again=GAPS, draft=DRAFT, critic="NO CHANGE")
    aag = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    for goal, resources in [("bake a bread", "rye"), ("bake a cake", "rye"), ("bake a pie", "")]:
        aag.invoke({"question": goal, **({"resources": resources} if resources else {})}, THREAD)
        assert {*shown(model.calls[-1].prompt, "resources")} == {*filter(None, [resources])}

    graph, model = rat()
    for question in ("Who built Oster?", "Is this right?"):
        graph.invoke({"question": question, "draft": "Ilse built it."}, THREAD)
    assert "draft" not in model.nodes
    assert graph.invoke({"question": "Is this right?"}, THREAD)["first_draft"] == BUILT


def test_a_message_of_a_later_turn_is_its_question() -> None:
    graph, model = rat()
    graph.invoke({"messages": [HumanMessage("Who built Oster?")]}, THREAD)
    graph.invoke({"question": "Who was mayor?"}, THREAD)
    graph.invoke({"messages": [HumanMessage("How many arches?")]}, THREAD)
    asked = [shown(call.prompt, "question")[0] for call in model.calls if call.node == "draft"]
    assert asked == ["Who built Oster?", "Who was mayor?", "How many arches?"]


@pytest.mark.parametrize("options", [{"interrupt_before": ["begin"]}, {}])
def test_a_run_goes_on_from_its_first_node_with_its_input(options: Any) -> None:
    graph, _ = rat(**options)
    if options:
        graph.invoke(CHECKED, THREAD)
    else:
        graph.update_state(THREAD, CHECKED, as_node=START)
    result = graph.invoke(None, THREAD)
    assert (result["first_draft"], result["answer"]) == (BUILT, BUILT)


class Down(LocalMemory):
    """A memory that cannot be reached at first."""

    is_down = True

    def is_empty(self) -> bool:
        if self.is_down:
            raise MemoryFailure("down")
        return super().is_empty()


def test_a_first_node_that_failed_is_resumed_with_its_input() -> None:
    memory = Down(":memory:", embeddings="none")
    memory.add(PROCEDURES)
    model = by_node(to_query=LOOK_UP, look_again=GAPS, draft=DRAFT, critic="NO CHANGE")
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    given = {"question": "bake", "resources": "spelt"}
    with pytest.raises(MemoryFailure):
        graph.invoke(given, THREAD)
    memory.is_down = False
    assert graph.invoke(None, THREAD)["steps"]
    assert shown(model.calls[0].prompt, "resources") == ["spelt"]


def test_a_fork_has_the_question_of_its_run() -> None:
    graph, model = rat()
    for question in ("Who built Oster?", "Who was mayor?"):
        graph.invoke({"question": question}, THREAD)
    first = [each for each in graph.get_state_history(THREAD) if each.next == ("draft",)][-1]
    graph.invoke(None, first.config)
    drafting = [call for call in model.calls if call.node == "draft"]
    assert {*shown(drafting[-1].prompt, "question")} == {"Who built Oster?"}
    start = [each for each in graph.get_state_history(THREAD) if each.next == ("begin",)][-1]
    config = graph.update_state(start.config, {"question": "How long?"}, as_node=START)
    graph.invoke(None, config)
    assert shown(model.calls[-1].prompt, "question") == ["How long?"]


class Shared(TypedDict, total=False):
    """A parent's state, with keys that RAT has too."""

    question: str
    draft: str
    first_draft: str
    answer: str
    task: str
    limits: str


def test_a_parents_keys_are_the_input_and_only_outputs_come_back() -> None:
    graph, model = rat(checkpointer=None)
    builder = StateGraph(Shared).add_node("rat", graph).add_edge(START, "rat")
    parent: Any = builder.compile(checkpointer=InMemorySaver())
    given = {"question": "Who built Oster?", "task": "theirs", "limits": "theirs"}
    result = parent.invoke({**given, "draft": "Ilse built it."}, THREAD)
    assert result == {
        **given,
        "draft": "Ilse built it.",
        "answer": "Ilse built it.",
        "first_draft": "Ilse built it.",
    }
    second = parent.invoke({"question": "Who was mayor?", "draft": ""}, THREAD)
    assert (second["answer"], model.nodes[-2:]) == (BUILT, ["draft", "revise"])


@pytest.mark.parametrize("name", ["rat", "rpg", "aag", "chat", "rag"])
def test_the_schema_of_an_input_shows_its_keys_as_optional_texts(name: str) -> None:
    schema = get_graph(name).get_input_jsonschema()
    assert schema["properties"]["question"]["type"] == "string"
    assert "required" not in schema


# Limits


def test_time_that_waits_for_a_person_does_not_count() -> None:
    graph, _ = rat(interrupt_before=["revise"])
    graph.invoke(QUESTION, THREAD, context=RatContext(deadline_s=4))
    time.sleep(4.2)  # past the deadline of the first half
    assert graph.invoke(None, THREAD)["warnings"] == []


def test_a_failed_run_is_resumed_with_a_new_deadline() -> None:
    model = ScriptedModel([RuntimeError("down"), BUILT, "NO CHANGE"])
    graph, _ = rat(model)
    with pytest.raises(NoAnswer):
        graph.invoke(QUESTION, THREAD, context=RatContext(deadline_s=4, max_calls=2))
    time.sleep(4.2)  # past the deadline of the failed run
    result = graph.invoke(None, THREAD)
    assert (result["answer"], result["usage"]["calls"]) == (BUILT, 2)


@pytest.mark.parametrize(
    ("make_builder", "slow", "unfinished"),
    [
        (rat_builder, "begin", "retrieve"),
        (rag_builder, "begin", "retrieve"),
        (rpg_builder, "begin", "plan"),
        (rpg_builder, "retrieve", "look_again"),
    ],
)
def test_a_run_without_an_answer_is_resumed_at_the_step_that_was_too_late(
    make_builder: Any, slow: str, unfinished: str
) -> None:
    waits = [4.2]  # past the deadline

    def slowly(update: Any) -> Any:
        time.sleep(waits.pop() if waits else 0)
        return update

    replies = {"plan": "- mayor", "look_again": "NOTHING"}
    model = ScriptedModel(lambda node, _prompt: replies.get(node, BUILT))
    # A search that returns at once could succeed without any time left.
    graph = make_builder(model=model, sources=Shelf(fail=lambda _query: time.sleep(0.05)))
    graph.add_node(slow, graph.nodes.pop(slow).runnable | slowly)
    graph = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(NoAnswer, match="deadline"):
        graph.invoke(QUESTION, THREAD, context={"deadline_s": 4})
    assert graph.get_state(THREAD).next == (unfinished,)
    result = graph.invoke(None, THREAD, context={"deadline_s": 60})
    assert graph.get_state(THREAD).values["findings"][0]["passages"]
    assert "deadline" not in str(result["warnings"])


def test_a_run_whose_second_reply_was_too_late_is_resumed_at_its_step() -> None:
    waits = [0, 4.2]  # the second is past the deadline

    def reply(node: str, _prompt: str) -> str:
        if node == "plan" and waits:
            time.sleep(waits.pop(0))
            return "I cannot."
        return {"plan": "- mayor", "look_again": "NOTHING"}.get(node, BUILT)

    model = ScriptedModel(reply)
    graph = build_rpg(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    with pytest.raises(NoAnswer, match="deadline"):
        graph.invoke(QUESTION, THREAD, context={"deadline_s": 4})
    assert graph.get_state(THREAD).next == ("plan",)
    result = graph.invoke(None, THREAD, context={"deadline_s": 60})
    assert "deadline" not in str(result["warnings"])


def test_a_search_after_the_deadline_is_not_said_to_have_found_nothing() -> None:
    graph, _ = rat(sources=Slow())
    warnings = graph.invoke(CHECKED, THREAD, context={"deadline_s": 0.1})["warnings"]
    assert "the run stopped early: its deadline has passed" in str(warnings)
    assert "nothing was found" not in str(warnings)


class Dead(Shelf):
    """A source whose driver cancels the call when its connection dies."""

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, k: int = 5) -> Any:
        raise asyncio.CancelledError


async def test_a_search_that_is_cancelled_from_within_is_one_that_failed() -> None:
    graph, _ = rat(sources=Dead(), checkpointer=None)
    result = await graph.ainvoke(CHECKED)
    assert result["answer"] == BUILT
    assert "a search failed" in str(result["warnings"])


def test_not_found_is_no_verdict_on_a_statement_whose_search_failed() -> None:
    def fail(query: str) -> None:
        if "arches" in query:
            raise OSError("down")

    model = by_node(revise="1.1-1.2 not found")
    graph, _ = rat(model, sources=Shelf(fail=fail))
    result = graph.invoke(
        {**QUESTION, "draft": "It has five arches. Haldruvin paid for it."}, THREAD
    )
    assert [each["text"] for each in result["checks"]] == ["Haldruvin paid for it."]
    assert "a search failed" in str(result["warnings"])


def test_the_nodes_of_a_resumed_run_share_its_new_deadline() -> None:
    graph, _ = rat(ScriptedModel(["NO CHANGE"] * 2, latency=0.6))
    part = "Oster has arches. " * 60
    given = {**QUESTION, "draft": f"{part}\n\n{part}"}
    context = RatContext(deadline_s=1, max_input_tokens=600)  # each part has a call
    graph.invoke(given, THREAD, context=context, interrupt_before=["revise"])
    assert "deadline" in str(graph.invoke(None, THREAD)["warnings"])


def test_the_calls_of_an_abandoned_branch_do_not_count() -> None:
    graph, model = rat(interrupt_after=["revise"])
    graph.invoke(QUESTION, THREAD, context=RatContext(max_calls=2))
    before = next(each for each in graph.get_state_history(THREAD) if each.next == ("draft",))
    graph.invoke(None, before.config)
    assert (model.nodes, graph.get_state(THREAD).values["warnings"]) == (
        ["draft", "revise"] * 2,
        [],
    )


def test_the_calls_before_an_interruption_count() -> None:
    graph, model = rat(interrupt_before=["revise"])
    graph.invoke(QUESTION, THREAD, context=RatContext(max_calls=1))
    assert "max_calls=1" in str(graph.invoke(None, THREAD)["warnings"])
    assert model.nodes == ["draft"]


def test_limits_are_neither_saved_nor_streamed() -> None:
    graph, _ = rat()
    modes: Any = ["values", "updates", "checkpoints"]
    streamed = list(graph.stream(QUESTION, THREAD, stream_mode=modes))
    results = list(graph.stream(QUESTION, THREAD, stream_mode="tasks"))
    history = list(graph.get_state_history(THREAD))
    saved = [each.checkpoint for each in graph.checkpointer.list(THREAD)]
    assert "RunLimits" not in str([streamed, history, saved])
    assert "RunLimits" not in str([each for each in results if "result" in each])


STRICT = """
import asyncio
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from stepcraft import AagContext, build_aag
from tests.kitchen import DRAFT, GAPS, GOAL, LOOK_UP, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import THREAD
graph = build_aag(model=ScriptedModel([LOOK_UP, GAPS, DRAFT, "NO CHANGE"]), memory=small_memory(),
    checkpointer=InMemorySaver(), settings=AagContext(review=True))
graph.invoke(GOAL, THREAD)
response = {"decisions": [{"type": "approve"}]}
print(len(graph.invoke(Command(resume=response), THREAD)["steps"]))
"""


def test_threads_are_read_with_strict_deserialisation() -> None:
    environment = {"LANGGRAPH_STRICT_MSGPACK": "true", "PYTHONPATH": ".", "PATH": ""}
    command = [sys.executable, "-W", "error::UserWarning", "-c", STRICT]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (run.stdout, "deserial" in run.stderr.lower()) == ("3\n", False), run.stderr


class Slow(BaseRetriever):
    """A source that takes its time, as one behind a dead connection does."""

    seconds: float = 60

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
        del query, run_manager
        time.sleep(self.seconds)
        return []


class SlowMemory(LocalMemory):
    """A memory that takes long to answer anything."""

    def is_empty(self) -> bool:
        time.sleep(60)
        return False


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("place", ["searches", "begin", "chat"])
def test_a_deadline_covers_the_whole_run(place: str, way: str) -> None:
    given: Any = CHECKED
    context: Any = {"deadline_s": 0.5}
    if place == "searches":
        graph: Any = rat(sources=[Slow(), Slow(), Slow()], checkpointer=None)[0]
    elif place == "begin":
        memory = SlowMemory(":memory:", embeddings="none")
        graph = build_aag(model=ScriptedModel([]), memory=memory)
        given = QUESTION
    else:
        slow = ScriptedModel(
            lambda node, _prompt: "KIND: TALK\nQUESTION: Hi" if node == "route" else "Hello.",
            latency=0.4,
        )
        graph, given = build_chat(model=slow), {"question": "Hi"}
    start = time.monotonic()
    try:
        result = (
            graph.invoke(given, context=context)
            if way == "sync"
            else asyncio.run(graph.ainvoke(given, context=context))
        )
    except NoAnswer as error:
        result = {"warnings": str(error)}
    assert time.monotonic() - start < 20
    assert "deadline" in str(result["warnings"])


HUNG = """
import asyncio, sys
from stepcraft import build_rat
from tests.graphs.test_one_run import CHECKED, Slow
from tests.scripted import ScriptedModel
graph = build_rat(model=ScriptedModel([]), sources=Slow(seconds=600))
context = {"deadline_s": 0.5}
if sys.argv[1] == "sync":
    result = graph.invoke(CHECKED, context=context)
else:
    result = asyncio.run(graph.ainvoke(CHECKED, context=context))
print(result["answer"])
"""


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_process_ends_with_its_run_whatever_a_source_does(way: str) -> None:
    command = [sys.executable, "-c", HUNG, way]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert run.stdout == f"{BUILT}\n", run.stderr


def test_a_chat_passes_on_what_is_left_of_its_calls() -> None:
    model = by_node(route="KIND: REASON\nQUESTION: Who?", draft=BUILT, revise="NO CHANGE")
    graph = build_chat(model=model, sources=Shelf())
    context = ChatContext(max_calls=3, method_settings={"max_calls": 1})
    graph.invoke({"question": "Who?"}, context=context)
    assert model.nodes == ["route", "draft"]


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (ChatContext(method_settings={"max_callz": 1}), "max_callz"),
        (ChatContext(method="rag", method_settings={"rounds": 1}), "rounds"),
        (ChatContext(method_settings={"node_models": {"draft": "extractive"}}), "node_models"),
        (ChatContext(method_settings={"rounds": 0}), "rounds"),
    ],
)
def test_settings_of_a_method_that_cannot_be_used_are_refused_at_once(
    context: ChatContext, words: str
) -> None:
    model = ScriptedModel([])
    with pytest.raises(ValueError, match=words):
        build_chat(model=model).invoke({"question": "Hi"}, context=context)
    assert model.calls == []


# Settings


def test_a_context_with_one_field_changes_one_field() -> None:
    model = by_node(draft=BUILT, revise=block(1, new="More."))
    settings = RatContext(rounds=1, max_calls=3, draft_instructions="HOUSE STYLE")
    graph, _ = rat(model, settings=settings)
    graph.invoke(QUESTION, THREAD, context={"k": 1})
    assert "HOUSE STYLE" in model.calls[0].prompt
    assert model.nodes == ["draft", "revise"]
    assert len(shown(model.calls[0].prompt, "passage")) == 1


def test_a_context_comes_before_what_the_run_began_with() -> None:
    model = by_node(draft=BUILT, revise=block(1, "it", "it it"))
    graph, _ = rat(model, interrupt_before=["revise"], settings=RatContext(rounds=3))
    began = RatContext(rounds=2, revise_instructions="CHECK IT")
    graph.invoke(QUESTION, THREAD, context=began)
    graph.invoke(None, THREAD, context=RatContext(rounds=1))
    assert graph.get_state(THREAD).next == ()
    assert "CHECK IT" in model.calls[-1].prompt


@pytest.mark.parametrize("option", ["model", "node_models"])
def test_the_models_of_a_builder_come_before_the_name_in_its_settings(option: str) -> None:
    model = by_node(revise="NO CHANGE")
    options: Any = {option: {"model": model, "node_models": {"revise": model}}[option]}
    settings = RatContext(model="extractive")
    build_rat(**options, settings=settings, sources=Shelf()).invoke(CHECKED)
    assert model.nodes == ["revise"]


def test_the_builders_settings_may_name_any_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRAFT_MODELS", "small=openai:small")
    graph = get_graph("rag", sources=Shelf(), settings=RagContext(model="extractive"))
    assert graph.invoke(QUESTION, context={"k": 1})["answer"]
    named = get_graph("rag", sources=Shelf(), settings=RagContext(model="openai:mine"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(NoAnswer):
        named.invoke(QUESTION)
    settings = ChatContext(model="openai:mine", method="direct")
    chat = build_chat(sources=Shelf(), settings=settings)
    with pytest.raises(NoAnswer):
        chat.invoke(QUESTION)


@pytest.mark.parametrize(
    "named", [{"model": "openai:mine"}, {"node_models": {"answer": "openai:mine"}}]
)
def test_the_builders_settings_of_a_method_may_name_any_model(
    named: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPCRAFT_MODELS", "small=openai:small")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    settings = ChatContext(method="direct", method_settings=named)
    with pytest.raises(NoAnswer):
        build_chat(sources=Shelf(), settings=settings).invoke(QUESTION)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("retriever", "sources"),
        ("tools", "sources"),
        ("llm", "model"),
        ("source", "sources"),
        ("memmory", "memory"),
        ("node_model", "node_models"),
        ("checkpoint", "checkpointer"),
        ("zzz", "model, node_models"),
    ],
)
def test_an_unknown_option_names_the_builder_and_the_closest_one(option: str, meant: str) -> None:
    options: Any = {option: None}
    with pytest.raises(TypeError, match=rf"^build_rat\(\) has no option '{option}'.*{meant}"):
        build_rat(**options)


@pytest.mark.parametrize("context", [5, "k=1", [1], RatContext])
def test_a_context_of_the_wrong_type_is_refused(context: Any) -> None:
    graph, _ = rat(by_node(draft=BUILT))
    with pytest.raises(BadInput, match="the context of rat is a RatContext or a mapping, not"):
        graph.invoke(QUESTION, THREAD, context=context)


def test_a_question_on_a_thread_with_messages_is_a_message_of_it() -> None:
    graph = get_graph("direct", model=ScriptedModel(["One.", "Two."]), checkpointer=InMemorySaver())
    graph.invoke({"messages": [("human", "First?")]}, THREAD)
    result = graph.invoke({"question": "Second?"}, THREAD)
    assert [each.text for each in result["messages"]] == ["First?", "One.", "Second?", "Two."]


def test_the_summary_of_older_messages_is_not_the_question() -> None:
    summary = HumanMessage("Here is a summary.", additional_kwargs={"lc_source": "summarization"})
    model = ScriptedModel(["One.", "Two."])
    graph = get_graph("direct", model=model)
    graph.invoke({"messages": [("human", "Who?"), summary]})
    assert shown(model.calls[0].prompt, "question") == ["Who?"]
    graph.invoke({"messages": [summary]})
    assert shown(model.calls[1].prompt, "question") == ["Here is a summary."]


def test_the_longest_question_is_taken_and_a_longer_one_refused() -> None:
    graph = get_graph("direct", model=ScriptedModel(["Yes."]))
    assert graph.invoke({"question": "a" * 50_000})["answer"] == "Yes."
    with pytest.raises(BadInput, match="question has 50,001 characters"):
        graph.invoke({"question": "a" * 50_001})
