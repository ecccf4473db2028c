"""The keyless model: a reply to every prompt of the package, and a chat model like any other."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_tests.unit_tests import ChatModelUnitTests

from stepcraft.building.compare import compare
from stepcraft.building.nodes import ask_for_procedures, read_procedures, success
from stepcraft.building.settings import DuplicatesContext, ExtractContext
from stepcraft.building.threads import transcript
from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.baselines import DirectContext
from stepcraft.contexts.chat import ChatContext
from stepcraft.contexts.rat import RatContext
from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.graphs.aag import build_aag
from stepcraft.graphs.rat import build_rat
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import prompt
from stepcraft.memory.procedure import Procedure
from stepcraft.models.keyless.model import REPLIES, ExtractiveModel
from stepcraft.nodes.answer import answer
from stepcraft.nodes.draft import draft, draft_steps
from stepcraft.nodes.finish import finish
from stepcraft.nodes.generate import generate
from stepcraft.nodes.plan import look_up, plan
from stepcraft.nodes.revise import critic, revise
from stepcraft.nodes.route import route
from stepcraft.nodes.to_query import to_query
from stepcraft.text.changes import apply_changes
from stepcraft.text.lists import read_steps
from stepcraft.text.sections import Section

SOUP = Procedure(
    input="leeks, potatoes, stock",
    output="cook a leek soup",
    steps=(
        "Wash the leeks and cut them.",
        "Peel the potatoes.",
        "Boil leeks and potatoes in the stock.",
        "Serve it hot.",
    ),
)
CREAM = Procedure(
    input="milk, a blender",
    output="make a soup creamy",
    steps=(
        "Blend the cooked soup in a blender until it is smooth.",
        "Stir cream into the leek soup off the heat.",
    ),
)
BREAD = Procedure(
    input="flour, yeast",
    output="bake bread",
    steps=("Mix flour and yeast.", "Let the dough rise.", "Bake the dough."),
)
QUESTION = "When was the old bridge of Mostar rebuilt?"
REBUILT = "The old bridge of Mostar was rebuilt in 2004."
STONE = "The stone of the bridge came from the quarry of Tenelija near Mostar."
OTHER = "Bread is baked slowly."
NOTHING = "No evidence was found for this."


def found(*texts: str) -> list[Evidence]:
    return [
        Evidence(id=f"p{number}", title="", text=text, source="", score=1.0)
        for number, text in enumerate(texts, 1)
    ]


PROCEDURES = found(*(procedure.text() for procedure in (BREAD, SOUP, CREAM)))
BRIDGE = found(f"{OTHER} {REBUILT}", STONE)


def part(text: str, *queries: str) -> dict[str, Any]:
    return {"text": text, "queries": [*queries]}


def state(**keys: Any) -> dict[str, Any]:
    """Return what any node may look at: a question about a bridge, and what was found for it."""
    parts = keys.get("parts", [part("It fell in 1993.", "fell")])
    return {
        "task": QUESTION,
        "task_resources": "",
        "form": "auto",
        "evidence": BRIDGE,
        "findings": [
            {"query": "fell", "passages": [1, 2]},
            {"query": "soup", "passages": [1, 2, 3]},
        ],
        "parts": parts,
        "pending": [*range(1, len(parts) + 1)],
        "queries": ["fell"],
        "scope": "complete",
        "judges_statements": False,
        "passages_seen": 0,
        "rounds": 0,
        "changes": [],
        "checks": [],
        **dict.fromkeys(("reason", "answer", "first_draft"), ""),
        **keys,
    }


def cooking(**keys: Any) -> dict[str, Any]:
    """Return the state of a goal in the kitchen."""
    goal = {"task": "cook a creamy leek soup", "task_resources": "leeks, potatoes, cream"}
    return state(**{**goal, "evidence": PROCEDURES, "queries": ["soup"], **keys})


def replied(node: ModelNode, node_state: dict[str, Any], settings: Any) -> dict[str, Any]:
    """Return the update of a node that asks the keyless model."""
    reply = ExtractiveModel().invoke(node.ask(node_state, settings)).text
    update: dict[str, Any] = node.read(reply, node_state, settings)
    return update


def reply_to(kind: str, *sections: Section, form: str = "As you like.") -> str:
    return ExtractiveModel().invoke(prompt("Reply.", form, kind, sections)).text


LEEK = {
    "output": "cook a leek soup",
    "input": "leeks",
    "steps": ["Wash the leeks.", "Boil the leeks."],
}
NODES: dict[str, tuple[ModelNode, dict[str, Any], Any, str, object]] = {
    "draft, nothing found": (
        draft,
        state(evidence=[]),
        RatContext(),
        "first_draft",
        QUESTION,
    ),
    "queries": (
        to_query,
        state(parts=[part("It fell in 1993.")]),
        RatContext(),
        "parts",
        [part("It fell in 1993.", "old bridge mostar rebuilt fell 1993")],
    ),
    "article": (
        finish,
        state(answer=REBUILT),
        RatContext(finish="article"),
        "answer",
        f"# {QUESTION}\n\n{REBUILT}",
    ),
    "code": (
        finish,
        state(answer="Run:\n\n```python\nprint(1)\n```\n\nThen:\n\n```\nprint(2)\n```"),
        RatContext(finish="code"),
        "answer",
        "```\nprint(1)\nprint(2)\n\n```",
    ),
    "reply, nothing found": (answer, state(evidence=[]), DirectContext(), "answer", NOTHING),
    "success": (
        success,
        {
            "text": "# Goal\n\nFly.\n\n# Call 1: `flap`\n\n```\n()\n```\n\nIt failed:\n\nNo.",
            "title": "fly",
        },
        ExtractContext(),
        "succeeded",
        False,
    ),
    "comparison, different": (
        compare,
        {"first": LEEK, "second": {**LEEK, "output": "bake bread"}},
        DuplicatesContext(),
        "same",
        False,
    ),
}


@pytest.mark.parametrize("name", NODES)
def test_a_node_reads_the_reply(name: str) -> None:
    node, node_state, settings, key, value = NODES[name]
    assert replied(node, node_state, settings)[key] == value


CRITICISED = [part(step, "soup") for step in SOUP.steps]
REJECTED = cooking(reason="Salt the\nsoup.", task_resources="", parts=[part("Boil.")])


@pytest.mark.parametrize(
    ("node", "node_state", "settings", "words"),
    [
        (draft, state(), RatContext(), REBUILT),
        (draft_steps, cooking(), AagContext(), "Boil leeks and potatoes in the stock."),
        (plan, state(), RpgContext(), "'form': 'short'"),
        (look_up, cooking(), AagContext(), "'cook a creamy leek soup with cream'"),
        (generate, state(form="long"), RpgContext(), "2004 [p1]."),
        (generate, state(form="short"), RpgContext(), f"Answer: {REBUILT}"),
        (revise, state(), RatContext(), f"'new': '{REBUILT}'"),
        (revise, state(), RpgContext(), "in 2004 [p1]."),
        (critic, cooking(parts=CRITICISED), AagContext(), f"'new': '{CREAM.steps[1]}'"),
        (critic, REJECTED, AagContext(), "'new': 'Salt the soup.'"),
        (answer, state(), DirectContext(), REBUILT),
    ],
)
def test_a_reply_says_what_the_passages_say(
    node: ModelNode, node_state: dict[str, Any], settings: Any, words: str
) -> None:
    assert words in str(replied(node, node_state, settings))


def test_the_longer_of_two_is_kept() -> None:
    longer = {**LEEK, "steps": [*LEEK["steps"], "Salt the leeks."]}
    same = replied(compare, {"first": LEEK, "second": longer}, DuplicatesContext())
    assert same["same"]
    assert same["merged"]["steps"] == longer["steps"]


def extracted(text: str, kind: str = "document") -> dict[str, Any]:
    part = {"number": "", "place": "", "text": text}
    node_state = {"title": "Boats", "kind": kind, "reading": part}
    reply = ExtractiveModel().invoke(ask_for_procedures(node_state, ExtractContext())).text
    part_read: dict[str, Any] = read_procedures(reply, node_state, ExtractContext())["written"][0]
    return part_read


def test_lists_of_sections_become_procedures() -> None:
    page = extracted(
        "# About\nBoats float.\n\n# How to tie a boat\nYou need `rope`.\n1. Take the rope.\n"
        "2. Tie it.\n\n## 2.1 Sailing?\nThe wind blows.\n- Set the sail.\n"
        "- Turn the boat.\n\n# Later\nRun:\n```sh\n# Run this\n- once\n- twice\n```\n"
    )
    procedures = [(each["output"], each["input"], each["steps"]) for each in page["procedures"]]
    assert procedures == [
        ("tie a boat", "`rope`", ["Take the rope.", "Tie it."]),
        ("sailing", "what '2.1 Sailing?' starts from", ["Set the sail.", "Turn the boat."]),
    ]
    assert extracted("Boats float.")["rejected"][0]["sentence"] == "Boats float."


def test_calls_that_did_not_fail_become_a_procedure() -> None:
    calls = [
        ("find", {"customer": "Anna"}, "no such customer", "error"),
        ("find", {"customer": "Ana", "limit": 1}, "17", "success"),
        ("check", {}, "ok", "success"),
    ]
    thread: list[BaseMessage] = [HumanMessage("Refund the order")]
    for number, (name, arguments, result, status) in enumerate(calls):
        call = {"name": name, "args": arguments, "id": str(number)}
        thread.append(AIMessage("", tool_calls=[call]))
        thread.append(ToolMessage(result, tool_call_id=str(number), status=status))
    (procedure,) = extracted(transcript(thread, "run").text, "transcript")["procedures"]
    assert procedure["output"] == "boats"
    assert procedure["steps"] == [
        "Call `find` with `customer`, `limit`.",
        "Call `check` with no arguments.",
    ]


@pytest.mark.parametrize(
    ("message", "method", "asked"),
    [
        ("How do I bake bread?", "aag", "How do I bake bread?"),
        ("Bake it", "aag", "What is bread? Bake it"),
        ("Which flour has most gluten?", "rpg", "Which flour has most gluten?"),
        ("Thanks a lot!", "direct", "What is bread? Thanks a lot!"),
    ],
)
def test_the_route_of_a_message_follows_from_its_words(
    message: str, method: str, asked: str
) -> None:
    messages = [HumanMessage("What is bread?"), AIMessage("Food."), HumanMessage(message)]
    update = replied(route, {"task": message, "messages": messages}, ChatContext())
    assert update == {"method": method, "asked": asked}


def test_code_and_tables_are_no_sentences() -> None:
    page = f"```sh\nbuild the bridge of Mostar.\n```\n\n| the bridge of Mostar. |\n\n{REBUILT}"
    assert replied(answer, state(evidence=found(page)), DirectContext())["answer"] == REBUILT


@pytest.mark.parametrize(
    "title",
    [
        f"FAQ \u203a {QUESTION}",
        "# Bridge of Mostar",
        "The bridge of Mostar was rebuilt as follows:",
        "Bridge \u203a Mostar\n```sh\nbuild\n```",
        "Bridge \u203a Mostar\n## When it was rebuilt\nOn the bridge of Mostar, see:\n\n| a |",
    ],
)
def test_titles_questions_and_introductions_are_not_quoted(title: str) -> None:
    evidence = found(title)
    assert replied(answer, state(evidence=evidence), DirectContext())["answer"] == NOTHING


@pytest.mark.parametrize("passage", ["{}", "Mostar \u203a Bridge\n\n- {}\n- Bread is good"])
def test_a_line_without_a_full_stop_is_quoted(passage: str) -> None:
    line = REBUILT.rstrip(".")
    evidence = found(passage.format(line))
    assert replied(answer, state(evidence=evidence), DirectContext())["answer"].endswith(line)


def looked_over(texts: list[str], query: str, **keys: Any) -> list[str]:
    """Return parts after the changes of a check; with resources they are steps."""
    keys["parts"] = [part(text, query) for text in texts]
    if "task_resources" in keys:
        update = replied(critic, cooking(**keys), AagContext())
    else:
        update = replied(revise, state(**keys), RatContext())
    return apply_changes(texts, update["changes"], "\n\n").parts


@pytest.mark.parametrize("draft", [["It fell in 1993."], ["It fell.", "It was rebuilt, they say."]])
def test_a_second_look_changes_nothing(draft: list[str]) -> None:
    texts = looked_over(draft, "fell")
    assert texts != draft
    more = found(f"{OTHER} {REBUILT}", STONE, "The bridge of Mostar was rebuilt by Turkish masons.")
    findings = [{"query": "fell", "passages": [1, 2, 3]}]
    assert looked_over(texts, "fell", evidence=more, findings=findings) == texts


def test_a_second_look_at_steps_changes_nothing() -> None:
    steps = ["Wash the leeks.", "Serve the leek soup."]
    resources = "leeks, cream, a spoon and a pot (or a pan, if large)"
    texts = looked_over(steps, "soup", task_resources=resources)
    ready = "Have a spoon and a pot (or a pan, if large) ready."
    assert {*texts} == {*steps, CREAM.steps[1], ready}
    assert looked_over(texts, "soup", task_resources=resources) == texts


def test_a_short_answer_stays_as_it_is() -> None:
    parts = [part("It fell.\n\nAnswer: 1993", "fell")]
    assert not replied(revise, state(parts=parts), RpgContext())["changes"]


def drafted(*procedures: Procedure) -> list[str]:
    evidence = found(*(procedure.text() for procedure in procedures))
    steps: list[str] = replied(draft_steps, cooking(evidence=evidence), AagContext())["steps"]
    return steps


@pytest.mark.parametrize("procedure", [SOUP, CREAM])
def test_steps_repeat_nothing(procedure: Procedure) -> None:
    assert drafted(procedure, procedure) == [*procedure.steps]


def test_the_procedure_that_the_search_ranked_first_is_used() -> None:
    assert drafted(CREAM, SOUP) == [*CREAM.steps]
    assert drafted(SOUP, CREAM) == [*SOUP.steps]


def test_steps_keep_their_code_and_stay_few() -> None:
    run = replace(SOUP, steps=("Run:\n```\nsoup\n```", "Serve the soup."))
    assert drafted(run) == [*run.steps]
    cuts = tuple(f"Cut leek number {number}." for number in range(40))
    assert len(drafted(replace(SOUP, steps=cuts))) == 12


@pytest.mark.parametrize("evidence", [[], found(BREAD.text()), found("")])
def test_without_fitting_procedures_there_is_an_outline(evidence: list[Evidence]) -> None:
    goal = cooking(
        task="How to repair a bicycle?", task_resources="a pump, glue", evidence=evidence
    )
    outline = ["Gather a pump.", "Gather glue.", "Try to repair a bicycle."]
    assert replied(draft_steps, goal, AagContext())["steps"] == outline


def test_the_goal_of_the_readme_has_seven_steps() -> None:
    goal: Any = {
        "question": "add long-term memory to a chat agent",
        "resources": "a LangGraph agent, a store",
    }
    result = build_aag().invoke(goal)
    assert len(result["steps"]) == 7
    assert "InMemoryStore" in result["steps"][0]
    assert "store.put" in result["steps"][3]
    assert result["steps"][6].startswith("Verify")
    assert not [name for name in result["names"] if not name["verified"]]


def test_a_draft_on_the_bundled_procedures_is_checked() -> None:
    question: Any = {
        "question": "How does LangGraph resume a run with a checkpointer?",
        "draft": "It runs again.",
    }
    corrected = build_rat().invoke(question)
    assert (corrected["answer"], corrected["revisions"]) == ("It runs again.", [])
    assert [check["text"] for check in corrected["checks"]] == ["It runs again."]
    completed = build_rat().invoke(question, context=RatContext(scope="complete"))
    assert completed["answer"].startswith("It runs again. ")
    assert completed["revisions"]


ODD: list[list[BaseMessage]] = [
    [],
    [HumanMessage("")],
    [AIMessage([{"type": "text", "text": "Hello."}, {"type": "reasoning", "reasoning": "hm"}])],
    [HumanMessage([{"type": "image", "url": "https://example.com/x.png"}])],
    [ToolMessage("42", tool_call_id="1")],
    *(prompt("", "", kind, []) for kind in [*REPLIES, "verse"]),
]


@pytest.mark.parametrize("messages", ODD)
def test_odd_messages_get_a_reply(messages: list[BaseMessage]) -> None:
    assert ExtractiveModel().invoke(messages).text.strip()


def test_a_prompt_of_no_known_form_gets_the_first_sentences() -> None:
    text = "One. Two. Three. Four."
    assert reply_to("verse", Section("passage", "p1", text)) == "One. Two. Three."
    assert ExtractiveModel().invoke([HumanMessage(text)]).text == "One. Two. Three."


NAMES = ["question", "resources", "passage", "part", "plan", "text", "thought", "reason", "titles"]
TEXTS = st.text(st.characters(), max_size=60) | st.text(
    st.sampled_from("1.-[] \nabQA:(),`#"), max_size=60
)
SECTIONS = st.builds(Section, st.sampled_from(NAMES), st.sampled_from(["", "1"]), TEXTS)
PROMPTS = st.builds(
    prompt, TEXTS, TEXTS, st.sampled_from([*REPLIES, ""]), st.lists(SECTIONS, max_size=6)
)
MESSAGES = st.builds(HumanMessage, TEXTS) | st.builds(SystemMessage, TEXTS)


@given(PROMPTS | st.lists(MESSAGES, max_size=3))
def test_any_messages_get_the_same_reply_twice(messages: list[BaseMessage]) -> None:
    text = ExtractiveModel().invoke(messages).text
    assert text
    assert ExtractiveModel().invoke(messages).text == text


@given(st.lists(SECTIONS, max_size=6))
def test_steps_are_always_a_list(sections: list[Section]) -> None:
    assert read_steps(reply_to("steps", *sections))


async def test_streams_the_same_reply() -> None:
    model, messages = ExtractiveModel(), draft_steps.ask(cooking(), AagContext())
    message = model.invoke(messages)
    chunks = list(model.stream(messages))
    whole = sum(chunks[1:], chunks[0])
    assert isinstance(whole, AIMessageChunk)
    assert len(chunks) > 20
    assert (whole.text, whole.usage_metadata) == (message.text, message.usage_metadata)
    assert chunks[-1].usage_metadata == message.usage_metadata
    assert "".join([chunk.text async for chunk in model.astream(messages)]) == message.text
    assert (await model.ainvoke(messages)).text == message.text


@pytest.mark.parametrize(
    ("stop", "text"), [(["three"], "One two "), (["", "three", "two"], "One ")]
)
def test_usage_counts_words_and_stop_sequences_end_the_reply(stop: list[str], text: str) -> None:
    message = ExtractiveModel().invoke([HumanMessage("One two three.")], stop=stop)
    assert message.text == text
    written = len(text.split())
    counts = {"input_tokens": 3, "output_tokens": written, "total_tokens": 3 + written}
    assert message.usage_metadata == counts


@pytest.mark.parametrize("kind", REPLIES)
def test_large_material_is_no_trap(kind: str) -> None:
    """What is quadratic in it would take minutes, which the test's time-out ends."""
    large = "Boil the leek of Mostar. [[ - " * 20_000
    names = ("passage", "text", "steps", "notes", "part", "titles")
    assert reply_to(
        kind, Section("question", "", QUESTION), *(Section(name, "1", large) for name in names)
    )


class TestStandard(ChatModelUnitTests):
    """LangChain's own suite."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ExtractiveModel

    @property
    def has_tool_calling(self) -> bool:
        return False

    @property
    def has_structured_output(self) -> bool:
        return False

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {}
