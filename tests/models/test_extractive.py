"""The keyless model: what it makes of sections, and that it is a chat model like any other."""

import time
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

from stepcraft.memory.procedure import Procedure
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.text.clean import without_markers
from stepcraft.text.lists import read_bullets, read_lines, read_steps
from stepcraft.text.sections import NAMES, section

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
GOAL = section("goal", "cook a creamy leek soup")
RESOURCES = section("resources", "leeks, potatoes, cream (or milk, if fresh)")


def told(*procedures: Procedure) -> list[str]:
    return [section("evidence", found.text(), id=str(number)) for number, found in enumerate(procedures, 1)]


def messages(kind: str, *sections: str, form: str = "") -> list[BaseMessage]:
    return [
        SystemMessage(section("reply_format", form or "As you like.", id=kind)),
        HumanMessage("\n\n".join(sections)),
    ]


def reply(kind: str, *sections: str, form: str = "") -> str:
    return ExtractiveModel().invoke(messages(kind, *sections, form=form)).text


def test_a_draft_takes_the_best_example_and_what_others_add() -> None:
    steps = read_steps(reply("steps", GOAL, RESOURCES, *told(BREAD, SOUP, CREAM)))
    assert [step for step in steps if step in SOUP.steps] == list(SOUP.steps)
    assert "Stir cream into the leek soup off the heat." in steps[1:-1]
    assert not set(steps) & set(BREAD.steps)


def test_a_draft_keeps_further_lines_of_a_step() -> None:
    coded = Procedure(
        input="leeks", output="cook a leek soup", steps=("Run:\n```\nsoup --leeks\n```", "Serve the soup.")
    )
    assert read_steps(reply("steps", GOAL, *told(coded))) == list(coded.steps)


def test_a_draft_repeats_nothing_and_stays_short() -> None:
    many = Procedure(
        input="leeks", output="cook a leek soup", steps=tuple(f"Cut leek number {n}." for n in range(40))
    )
    assert len(read_steps(reply("steps", GOAL, *told(many, SOUP)))) == 12
    assert read_steps(reply("steps", GOAL, RESOURCES, *told(SOUP, SOUP))) == list(SOUP.steps)


@pytest.mark.parametrize("evidence", [[], told(BREAD), [section("evidence", "")]])
def test_without_fitting_evidence_there_is_an_outline(evidence: list[str]) -> None:
    assert read_steps(
        reply(
            "steps",
            section("goal", "How to repair a bicycle?"),
            section("resources", "a pump, glue"),
            *evidence,
        )
    ) == [
        "Gather a pump.",
        "Gather glue.",
        "With these, repair a bicycle.",
    ]


def test_an_outline_of_a_goal_alone() -> None:
    assert reply("steps", section("goal", "repair a bicycle")) == "1. Repair a bicycle."


def test_a_revision_keeps_the_steps_and_adds_what_the_notes_know() -> None:
    notes = section(
        "notes",
        "Q: How does a soup get creamy?\nA: Stir cream into the leek soup off the heat. Bread needs yeast.\n"
        "Q: What else?\nA: Serve it hot.",
    )
    draft = section("steps", "1. Wash the leeks and cut them.\n2. [[Boil the leeks.]]\n3. Serve it hot.")
    assert read_steps(reply("steps", GOAL, RESOURCES, draft, notes)) == [
        "Wash the leeks and cut them.",
        "Boil the leeks.",
        "Stir cream into the leek soup off the heat.",
        "Serve it hot.",
    ]


def test_a_revision_without_notes_changes_nothing() -> None:
    assert reply("steps", GOAL, section("steps", "1. Wash.\n2. Boil.")) == "1. Wash.\n2. Boil."


def test_a_revision_without_steps_writes_them_from_the_notes() -> None:
    notes = section("notes", "Q: How?\nA: Wash the leeks. Boil the leek soup.")
    assert read_steps(reply("steps", GOAL, notes)) == ["Wash the leeks.", "Boil the leek soup."]


def test_the_critic_asks_for_each_resource_that_no_step_mentions() -> None:
    steps = section("steps", "1. Wash the leeks.\n2. Boil the potato.")
    assert reply("critique", GOAL, RESOURCES, steps) == (
        "- Use the resource cream (or milk, if fresh): no step mentions it."
    )


@pytest.mark.parametrize("resources", ["", section("resources", "leeks; potatoes")])
def test_the_critic_is_content_when_all_is_used(resources: str) -> None:
    assert (
        reply("critique", GOAL, resources, section("steps", "1. Wash leeks.\n2. Boil potatoes."))
        == "NO UPDATE REQUIRED"
    )


@pytest.mark.parametrize(
    "notes", ["", section("notes", "Q: And?\nA: Stir cream or fresh milk into the leek soup.")]
)
def test_the_editor_satisfies_the_critic(notes: str) -> None:
    steps = "1. Wash the leeks.\n2. Serve them."
    edits = reply("critique", GOAL, RESOURCES, section("steps", steps))
    assert len(read_bullets(edits)) == 2
    edited = reply("steps", GOAL, RESOURCES, notes, section("steps", steps), section("edits", edits))
    assert reply("critique", GOAL, RESOURCES, section("steps", edited)) == "NO UPDATE REQUIRED"
    assert {"Wash the leeks.", "Serve them.", "Have potatoes ready."} < set(read_steps(edited))
    assert ("Stir cream or fresh milk into the leek soup." in edited) == bool(notes)


def test_the_editor_follows_plain_edits_and_passes_over_others() -> None:
    edits = section(
        "edits", "- Remove step 2.\n- Delete step 2\n- Drop step 9\n- Add a step: salt the soup.\n- Be merry."
    )
    steps = section("steps", "1. Wash the leeks.\n2. Paint the door.\n3. Serve the soup.")
    assert read_steps(reply("steps", GOAL, steps, edits)) == [
        "Wash the leeks.",
        "Salt the soup.",
        "Serve the soup.",
    ]


@pytest.mark.parametrize("count", [1, 3, 4, 6, 12])
def test_as_many_questions_as_asked_for(count: int) -> None:
    asked = read_lines(
        reply("questions", GOAL, RESOURCES, form=f"Write exactly {count} questions, one a line.")
    )
    assert len(asked) == count
    assert asked[0] == "How to cook a creamy leek soup?"
    assert all(question.endswith("?") for question in asked)


def test_an_answer_is_made_of_fitting_steps_of_one_procedure() -> None:
    question = section("question", "How are potatoes and leeks boiled?")
    answered = reply("text", question, *told(BREAD, SOUP))
    assert "Boil leeks and potatoes in the stock." in answered
    assert "dough" not in answered


@pytest.mark.parametrize("evidence", [[], told(BREAD)])
def test_an_answer_that_the_evidence_does_not_hold(evidence: list[str]) -> None:
    assert (
        reply("text", section("question", "How is a bicycle tyre patched?"), *evidence)
        == "The procedures do not say."
    )


@pytest.mark.parametrize(
    "given_messages",
    [
        [],
        [HumanMessage("")],
        [HumanMessage("Hello there. How are you? Fine. And more.")],
        [AIMessage([{"type": "text", "text": "Hello there."}, {"type": "reasoning", "reasoning": "hm"}])],
        [HumanMessage([{"type": "image", "url": "https://example.com/x.png"}])],
        [ToolMessage("42", tool_call_id="1")],
        messages("steps"),
        messages("critique"),
        messages("questions"),
        messages("text"),
        messages("verse", GOAL),
        messages("steps", section("steps", "only prose"), section("edits", "- Remove step 1")),
        messages("questions", section("goal", "\ud800[["), form="99 of them"),
    ],
)
def test_odd_messages_get_a_reply(given_messages: list[BaseMessage]) -> None:
    assert ExtractiveModel().invoke(given_messages).text.strip()


KINDS = st.sampled_from(["steps", "critique", "questions", "text", "plan", "segment", "combine", "other", ""])
TEXTS = st.text(st.characters(), max_size=60) | st.text(st.sampled_from("1.-[] \nabQA:(),`"), max_size=60)
SECTIONS = st.builds(section, st.sampled_from(NAMES), TEXTS, id=st.sampled_from(["", "1"]))
PROMPTS = st.builds(lambda kind, parts: messages(kind, *parts), KINDS, st.lists(SECTIONS, max_size=6))
LOOSE = st.lists(
    st.builds(HumanMessage, TEXTS) | st.builds(AIMessage, TEXTS) | st.builds(SystemMessage, TEXTS), max_size=3
)


@given(PROMPTS | LOOSE)
def test_any_messages_get_the_same_reply_twice(given_messages: list[BaseMessage]) -> None:
    text = ExtractiveModel().invoke(given_messages).text
    assert text
    assert ExtractiveModel().invoke(given_messages).text == text


@given(st.lists(SECTIONS, max_size=6))
def test_steps_are_always_a_list_without_markers(parts: list[str]) -> None:
    steps = read_steps(reply("steps", *parts))
    assert steps
    assert all(without_markers(step) for step in steps)


async def test_streams_what_it_says() -> None:
    model, asked = ExtractiveModel(), messages("steps", GOAL, RESOURCES, *told(SOUP))
    said = model.invoke(asked)
    chunks = list(model.stream(asked))
    whole = sum(chunks[1:], chunks[0])
    assert isinstance(whole, AIMessageChunk)
    assert len(chunks) > 20
    assert (whole.text, whole.usage_metadata) == (said.text, said.usage_metadata)
    assert chunks[-1].usage_metadata == said.usage_metadata
    assert "".join([chunk.text async for chunk in model.astream(asked)]) == said.text
    assert (await model.ainvoke(asked)).text == said.text


def test_usage_counts_words_and_stop_ends_the_reply() -> None:
    said = ExtractiveModel().invoke([HumanMessage("One two three.")], stop=["three"])
    assert said.text == "One two "
    assert said.usage_metadata == {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


def test_large_material_is_no_trap() -> None:
    large = "Boil the leek. [[ - " * 20_000
    begun = time.perf_counter()
    reply(
        "steps",
        GOAL,
        RESOURCES,
        section("evidence", large),
        section("steps", large),
        section("notes", f"A: {large}"),
    )
    assert time.perf_counter() - begun < 20  # what is quadratic takes minutes


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
    def standard_chat_model_params(self) -> dict[str, Any]:
        return {}
