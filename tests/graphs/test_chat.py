"""The chat: one call makes the question stand on its own and picks the graph."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import ChatContext, build_chat, get_graph
from tests.kitchen import DRAFT, LOOK_UP, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import THREAD, Shelf, shown

SCRIPTS: dict[str, tuple[str, list[str]]] = {
    "GOAL": ("aag", [LOOK_UP, DRAFT, "NO CHANGE"]),
    "QUESTION": ("rpg", ["KIND: long\n- Oster", "NOTHING", "It has arches [p1].", "NO CHANGE"]),
    "REASON": ("rat", ["Haldruvin built it.", "NO CHANGE"]),
    "TALK": ("direct", ["Hello."]),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_each_kind_of_message_has_its_graph(kind: str) -> None:
    method, replies = SCRIPTS[kind]
    model = ScriptedModel([f"KIND: {kind}\nQUESTION: Tell me of the Oster bridge.", *replies])
    with small_memory() as memory:
        graph = build_chat(model=model, sources=Shelf(), memory=memory)
        result = graph.invoke({"question": "Tell me of it."}, context=ChatContext())
    assert (result["method"], result["asked"]) == (method, "Tell me of the Oster bridge.")
    assert result["usage"]["calls"] == len(replies) + 1
    assert ("Sources:" in result["messages"][-1].text) == bool(result["evidence"])


def test_a_conversation_goes_on_with_its_thread() -> None:
    model = ScriptedModel(
        ["KIND: TALK\nQUESTION: Hi", "Hello.", "KIND: TALK\nQUESTION: Thanks for it", "Welcome."]
    )
    graph = build_chat(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    graph.invoke({"messages": [("human", "Hi")]}, THREAD)
    result = graph.invoke({"messages": [("human", "Thanks")]}, THREAD)
    texts = [message.text for message in result["messages"]]
    assert texts == ["Hi", "Hello.", "Thanks", "Welcome."]
    assert shown(model.calls[2].prompt, "conversation") == ["Person: Hi\n\nAssistant: Hello."]
    assert result["usage"]["calls"] == 2


@pytest.mark.parametrize("routed", [RuntimeError("503"), "KIND: TALK\nQUESTION:"])
def test_the_method_that_is_set_answers_though_the_router_fails(routed: Any) -> None:
    model = ScriptedModel(lambda node, _: routed if node == "route" else "Haldruvin built it.")
    chat = build_chat(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    settings = ChatContext(method="direct")
    for text in ("Who built the Oster bridge?", "And who was mayor then?"):
        result = chat.invoke({"messages": [("human", text)]}, THREAD, context=settings)
        assert result["method"] == "direct"


def test_twelve_messages_are_shown_each_from_its_beginning() -> None:
    said = [("human" if place % 2 else "ai", f"{place}" + "x" * 1_300) for place in range(1, 14)]
    model = ScriptedModel(["KIND: TALK\nQUESTION: Hi", "Hello."])
    graph = build_chat(model=model, sources=Shelf())
    graph.invoke({"messages": [*said, ("human", "And now?")]})
    (shown_turns,) = shown(model.calls[0].prompt, "conversation")
    assert [len(turn.partition(": ")[2]) for turn in shown_turns.split("\n\n")] == [1_200] * 12
    assert shown_turns.startswith("Assistant: 2x")


def test_a_source_that_dies_in_the_middle_of_a_chat_costs_its_passages() -> None:
    faults: list[Exception] = []

    def fail(_query: str) -> None:
        for fault in faults:
            raise fault

    route = "KIND: REASON\nQUESTION: Who built the Oster bridge?"
    model = ScriptedModel(
        {"route": [route] * 3, "draft": ["Haldruvin."] * 3, "revise": ["NO CHANGE"] * 2}
    )
    graph = build_chat(model=model, sources=Shelf(fail=fail), checkpointer=InMemorySaver())
    results: list[Any] = []
    for fault in ([], [ConnectionError("the wire is cut")], []):
        faults[:] = fault
        results.append(graph.invoke({"messages": [("human", "Who built it?")]}, THREAD))
    assert [result["answer"] for result in results] == ["Haldruvin."] * 3
    assert ["the wire is cut" in str(result["warnings"]) for result in results] == [
        False,
        True,
        False,
    ]
    texts = [message.text for message in results[-1]["messages"][1::2]]
    assert ["the wire is cut" in text for text in texts] == [False, True, False]
    assert [bool(result["evidence"]) for result in results] == [True, False, True]
    assert ["Sources:" in each.text for each in results[-1]["messages"][1::2]] == [
        True,
        False,
        True,
    ]


async def test_a_message_whose_graph_is_not_chosen_is_answered_by_rpg_as_it_stands() -> None:
    model = ScriptedModel(["What?", "What?", *SCRIPTS["QUESTION"][1]])
    graph = build_chat(model=model, sources=Shelf())
    result = await graph.ainvoke({"question": "What of Oster?"})
    assert (result["asked"], result["method"]) == ("What of Oster?", "rpg")
    assert result["answer"] == "It has arches [1]."


@pytest.mark.parametrize("half", ["KIND: TALK\nQUESTION: Is this con", "KIND: TALK\nQUE"])
def test_a_message_whose_question_was_cut_off_is_answered_as_it_stands(half: str) -> None:
    cut = AIMessage(half, response_metadata={"finish_reason": "length"})
    graph = build_chat(model=ScriptedModel([cut, "Yes."]), sources=Shelf())
    result = graph.invoke({"question": "Is this config right?"})
    assert (result["asked"], result["method"]) == ("Is this config right?", "direct")


def test_a_choice_without_a_question_is_handed_back() -> None:
    model = ScriptedModel(["QUESTION:\nKIND: TALK", "KIND: TALK\nQUESTION: Who built it?", "Hi."])
    result = build_chat(model=model, sources=Shelf()).invoke({"question": "And who?"})
    assert (result["asked"], result["method"]) == ("Who built it?", "direct")


def test_a_graph_that_is_named_needs_no_call_for_a_single_message() -> None:
    model = ScriptedModel(["It has arches."])
    context = ChatContext(method="rag", method_settings={"k": 1})
    graph = build_chat(model=model, sources=Shelf())
    result = graph.invoke({"question": "What of Oster?"}, context=context)
    assert (result["method"], len(model.calls), len(result["evidence"])) == ("rag", 1, 1)


def test_the_graph_has_the_calls_that_are_left() -> None:
    model = ScriptedModel(["KIND: REASON\nQUESTION: Who?", "Haldruvin built it."])
    graph = build_chat(model=model, sources=Shelf())
    result = graph.invoke({"question": "Who?"}, context=ChatContext(max_calls=2))
    assert result["usage"]["calls"] == 2
    assert "max_calls=1" in str(result["warnings"])


@pytest.mark.parametrize("subgraphs", [False, True])
def test_the_answer_is_streamed_and_the_choice_of_its_graph_is_not(subgraphs: bool) -> None:
    model = ScriptedModel(["KIND: TALK\nQUESTION: Hi", "Hello there."])
    graph = build_chat(model=model, sources=Shelf())
    task: Any = {"messages": [("human", "Hi")]}
    streamed: list[Any] = [*graph.stream(task, stream_mode="messages", subgraphs=subgraphs)]
    messages = [item[1] if subgraphs else item for item in streamed]
    nodes = {facts["langgraph_node"] for _, facts in messages}
    assert nodes == ({"answer", "direct"} if subgraphs else {"direct"})
    assert messages[-1][0].text == "Hello there."


def test_every_source_that_is_cited_is_listed() -> None:
    passages = {f"arch{number}": f"Arch {number} of Oster." for number in range(1, 16)}
    passages["x" * 200] = "A long title."
    question = " ".join(passages)
    model = ScriptedModel(["It has arches [2][14]."])
    context = ChatContext(method="rag", method_settings={"k": 16})
    graph = build_chat(model=model, sources=Shelf(passages=passages))
    text = graph.invoke({"question": question}, context=context)["messages"][-1].text
    listed = [line.split("]")[0] for line in text.partition("Sources:\n")[2].splitlines()]
    assert listed == [*(f"[{number}" for number in [*range(1, 11), 14]), "and 5 more"]


def test_what_was_not_found_is_below_the_sources() -> None:
    model = ScriptedModel(["Haldruvin built it.\n\nIt has a lift.", "1 supported p1\n2 not found"])
    graph = build_chat(model=model, sources=Shelf())
    question = {"question": "What of Haldruvin?"}
    text = graph.invoke(question, context=ChatContext(method="rat"))["messages"][-1].text
    assert text.endswith("Haldruvin.md)\n\nNot found in the sources:\n- It has a lift.")


def test_an_image_that_is_not_read_is_a_warning() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    parts = [{"type": "text", "text": text} for text in ("What is it?", "In one word.")]
    model = ScriptedModel(["A bridge."])
    graph = build_chat(model=model, sources=Shelf())
    messages: Any = [HumanMessage([parts[0], image, parts[1]])]
    result = graph.invoke({"messages": messages}, context=ChatContext(method="direct"))
    assert result["asked"] == "What is it?\nIn one word."
    assert result["messages"][-1].text == (
        "A bridge.\n\nWarnings:\n- the image in the question was not read"
    )


def test_an_image_in_a_message_of_its_own_is_a_warning() -> None:
    image: Any = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    graph = build_chat(model=ScriptedModel(["A bridge."]), sources=Shelf())
    messages: Any = [HumanMessage(image), HumanMessage("What is it?")]
    result = graph.invoke({"messages": messages}, context=ChatContext(method="direct"))
    assert result["warnings"] == ["the image in the question was not read"]


def test_an_image_beside_a_question_is_a_warning_unless_it_was_sent_with_an_earlier_one() -> None:
    image: Any = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
    graph = get_graph("direct", model=ScriptedModel(["A bridge.", "Four."]))
    asked: Any = {"question": "What is it?", "messages": [HumanMessage(image)]}
    assert graph.invoke(asked)["warnings"] == ["the image in the question was not read"]
    messages = [HumanMessage(image), AIMessage("A bridge.")]
    later: Any = {"question": "How many arches?", "messages": messages}
    assert graph.invoke(later)["warnings"] == []


def test_each_kind_of_part_that_is_not_read_is_a_warning_once() -> None:
    kinds = ["image", "image_url", "input_audio", "text-plain", "file", "input_file"]
    content: Any = ["What is it?", {"type": "input_text", "text": "Say."}]
    content += [{"type": kind} for kind in kinds]
    graph = build_chat(model=ScriptedModel(["A bridge."]), sources=Shelf())
    context = ChatContext(method="direct")
    result = graph.invoke({"messages": [HumanMessage(content)]}, context=context)
    assert result["asked"] == "What is it?\nSay."
    assert [each.split()[1] for each in result["warnings"]] == ["image", "audio", "file"]


def test_a_question_on_a_thread_is_a_message_of_it() -> None:
    def reply(node: str, _prompt: str) -> str:
        return "KIND: TALK\nQUESTION: When?" if node == "route" else "Haldruvin built it."

    model = ScriptedModel(reply)
    graph = build_chat(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    graph.invoke({"question": "Who built the Oster bridge?"}, THREAD)
    result = graph.invoke({"question": "And when?"}, THREAD)
    routed = [call.prompt for call in model.calls if call.node == "route"]
    assert "Person: Who built the Oster bridge?\n\nAssistant: Haldruvin" in routed[-1]
    assert [each.type for each in result["messages"]] == ["human", "ai"] * 2


def test_the_same_question_asked_again_is_a_new_message() -> None:
    graph = build_chat(
        model=ScriptedModel(["Hello.", "KIND: TALK\nQUESTION: Hi", "Hello again."]),
        sources=Shelf(),
        checkpointer=InMemorySaver(),
    )
    context = ChatContext(method="direct")
    graph.invoke({"question": "Hi"}, THREAD, context=context)
    result = graph.invoke({"question": "Hi"}, THREAD, context=context)
    assert [each.text for each in result["messages"]] == ["Hi", "Hello.", "Hi", "Hello again."]


def test_a_question_keeps_its_lines_that_begin_with_kind() -> None:
    manifest = "Is this right?\nkind: Deployment\nname: web"
    model = ScriptedModel([f"KIND: TALK\nQUESTION: {manifest}", "Yes."])
    result = build_chat(model=model, sources=Shelf()).invoke({"question": "Is it?"})
    assert result["asked"] == manifest


def test_settings_of_the_method_may_be_text() -> None:
    context = ChatContext(method="direct", max_calls=5, method_settings={"max_calls": "3"})
    result = build_chat(model=ScriptedModel(["Hi."])).invoke({"question": "Hi"}, context=context)
    assert result["answer"] == "Hi."


@pytest.mark.parametrize(
    "reply",
    [
        "QUESTION: Who built it?\nKIND: TALK",
        "```\nKIND: TALK\nQUESTION: Who built it?\n```",
        "KIND: TALK\nQUESTION\uff1aWho built it?",
    ],
)
def test_a_choice_is_read_in_any_order(reply: str) -> None:
    model = ScriptedModel(lambda node, _prompt: reply if node == "route" else "Haldruvin.")
    result = build_chat(model=model, sources=Shelf()).invoke({"question": "x"})
    assert (result["asked"], result["method"]) == ("Who built it?", "direct")
