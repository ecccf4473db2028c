"""AAG with rewrite="patch": revision and edits write the changed steps alone."""

from collections.abc import Iterator
from typing import Any

import pytest

from stepcraft import AagContext, build_aag
from stepcraft.memory.local import LocalMemory
from stepcraft.report import page
from tests.kitchen import CONTENT, GOAL, cook, small_memory
from tests.report.reports import Reader
from tests.scripted import ScriptedModel

PLAIN = ["Mix the rye flour with water.", "Let it rise for an hour.", "Bake it."]


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


def run(
    memory: LocalMemory, context: Any = None, **replies: list[Any]
) -> tuple[dict[str, Any], ScriptedModel]:
    """Run AAG on the kitchen's draft with these replies."""
    model = ScriptedModel(cook() | replies)
    return build_aag(model=model, memory=memory).invoke(GOAL, context=context), model


def test_unnamed_steps_stay_and_lose_their_markers(memory: LocalMemory) -> None:
    result, model = run(memory, revise=["1+: Add the sourdough starter.\n3: Bake it at 220 °C."])
    assert result["steps"] == [PLAIN[0], "Add the sourdough starter.", PLAIN[1], "Bake it at 220 °C."]
    assert result["answer"].splitlines()[1] == "2. Add the sourdough starter."
    assert model.nodes.count("revise") == 1
    revision = next(call.prompt for call in model.calls if call.node == "revise")
    assert "[[Let it rise for an hour.]]" in revision, "the doubts are shown"
    assert '"3+: ..." adds a step after step 3' in revision


@pytest.mark.parametrize("reply", ["NO CHANGE", "No changes needed."])
def test_a_revision_without_changes(memory: LocalMemory, reply: str) -> None:
    assert run(memory, revise=[reply])[0]["steps"] == PLAIN


def test_a_whole_list_is_taken_as_one(memory: LocalMemory) -> None:
    assert run(memory, revise=["1. Mix.\n2. [[Wait.]]\n3. Bake."])[0]["steps"] == ["Mix.", "Wait.", "Bake."]


def test_without_a_draft_the_revision_writes_all_steps(memory: LocalMemory) -> None:
    result, model = run(memory, draft=["", ""], revise=["1. Mix.\n2. Bake."])
    assert result["steps"] == ["Mix.", "Bake."]
    assert "A numbered list of the steps" in next(
        call.prompt for call in model.calls if call.node == "revise"
    )


def test_a_patch_of_a_step_that_is_not_there_is_handed_back_once(memory: LocalMemory) -> None:
    result, model = run(memory, revise=["1: Mix well.\n9: Eat it.", "1: Mix very well."])
    assert result["steps"] == ["Mix very well.", *PLAIN[1:]]
    assert result["warnings"] == []
    handed_back = [call for call in model.calls if call.node == "revise"][1].messages[-1].text
    assert "step 9 is not there: the steps are 1 to 3." in handed_back


def test_after_that_the_line_alone_is_left_out_with_a_warning(memory: LocalMemory) -> None:
    result, model = run(memory, revise=["1: Mix well.\n9: Eat it.", "1: Mix very well.\n8-"])
    assert result["steps"] == ["Mix very well.", *PLAIN[1:]]
    assert result["warnings"] == [
        "revise: a part of the reply was left out: step 8 is not there: the steps are 1 to 3."
    ]
    assert model.nodes.count("revise") == 2


@pytest.mark.parametrize("second", ["I cannot tell.", ValueError("boom")])
def test_what_could_be_read_first_is_kept_where_nothing_better_follows(
    memory: LocalMemory, second: Any
) -> None:
    replies = ["1: Mix well.\n9: Eat it.", *[second] * 3]
    result, _ = run(memory, AagContext(retry_wait_s=0), revise=replies)
    assert result["steps"] == ["Mix well.", *PLAIN[1:]]
    assert result["warnings"] == [
        "revise: a part of the reply was left out: step 9 is not there: the steps are 1 to 3."
    ]


def test_edits_are_recorded_as_changes(memory: LocalMemory) -> None:
    result, model = run(
        memory,
        revise=["NO CHANGE"],
        critic=["- Name the heat.\n- Step 1 comes twice.\n- Let it cool.", CONTENT],
        edit=["3: Bake it as in step 2, at 220 °C.\n1-\n3+: Let it cool."],
    )
    assert result["steps"] == [PLAIN[1], "Bake it as in step 1, at 220 °C.", "Let it cool."]
    first, last = result["critiques"]
    assert first["status"] == "verified"
    assert first["changes"] == [
        {"step": 3, "before": "Bake it.", "after": "Bake it as in step 2, at 220 °C."},
        {"step": 1, "before": PLAIN[0], "after": ""},
        {"step": 3, "before": "", "after": "Let it cool."},
    ]
    assert "changes" not in last
    assert [node for node in model.nodes if node in {"critic", "edit"}] == ["critic", "edit", "critic"]
    seen = Reader(page("aag", GOAL, result, []))
    shown = next(text for text in seen.texts("section") if text.startswith("Critiques and edits"))
    assert "Step 3Bake it as in step 2, at 220 °C." in shown
    assert "Step 1, removed" in shown
    assert "Added after step 3" in shown
    assert PLAIN[0] in seen.texts("del")
    assert "Let it cool." in seen.texts("ins")


def test_an_edit_of_a_whole_list_records_no_changes(memory: LocalMemory) -> None:
    result, _ = run(memory, critic=["- Shorten it.", CONTENT], edit=["1. Mix.\n2. Wait.\n3. Bake."])
    assert result["steps"] == ["Mix.", "Wait.", "Bake."]
    assert "changes" not in result["critiques"][0]


def test_the_paper_rewrites_all_steps(memory: LocalMemory) -> None:
    result, model = run(
        memory, AagContext(rewrite="whole"), critic=["- Shorten it.", CONTENT], edit=["1. Mix.\n2. Bake."]
    )
    assert result["steps"] == ["Mix.", "Bake."]
    assert not any("3+:" in call.prompt for call in model.calls)


@pytest.mark.parametrize("goal", [GOAL, {"question": "slice a bread", "resources": "a knife, milk, salt"}])
def test_the_keyless_model_writes_the_same_steps_either_way(memory: LocalMemory, goal: Any) -> None:
    graph = build_aag(model="extractive", memory=memory)
    patch, whole = (
        graph.invoke(goal, context=AagContext(examples=True, questions=True, rewrite=rewrite))
        for rewrite in ("patch", "whole")
    )
    assert patch["steps"] == whole["steps"]
    assert patch["warnings"] == whole["warnings"]
    written = [result["usage"]["nodes"]["revise"]["output_tokens"] for result in (patch, whole)]
    assert written[0] < written[1]
