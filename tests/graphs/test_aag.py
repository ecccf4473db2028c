"""AAG, call by call: list what to look up, draft, criticise, edit; review and remember."""

from __future__ import annotations

import time
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from stepcraft import AagContext, BadInput, MemoryFailure, build_aag
from stepcraft.memory.local import LocalMemory
from tests.kitchen import (
    CHANGE,
    DRAFT,
    GOAL,
    LOOK_UP,
    PROCEDURES,
    STEPS,
    FullMemory,
    cook,
    dish,
    small_memory,
)
from tests.scripted import ScriptedModel, block
from tests.shelf import THREAD, Shelf, ids, shown


def run(*replies: Any, **context: Any) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    with small_memory() as memory:
        graph = build_aag(model=model, memory=memory)
        return graph.invoke(GOAL, context=AagContext(**{"rounds": 2, **context})), model


def test_a_goal_takes_three_calls_and_one_more_where_the_critic_changed_something() -> None:
    result, model = run(*cook())
    assert model.nodes == ["to_query", "draft", "critic", "critic"]
    assert result["steps"] == STEPS
    assert result["answer"].startswith(f"1. {STEPS[0]}\n2. ")
    assert result["queries"] == [
        "bake a rye bread using rye flour, a sourdough starter",
        "feed a sourdough starter",
        "knead bread",
    ]
    assert [(each["part"], each["after"]) for each in result["revisions"]] == [(1, STEPS[0])]
    assert result["names"] == [{"name": "oven.heat", "step": 3, "found_in": [], "verified": False}]
    result, model = run(LOOK_UP, DRAFT, "NO CHANGE", names=False)
    assert model.nodes == ["to_query", "draft", "critic"]
    assert result["names"] == []


def test_the_draft_sees_what_was_found_for_the_goal_and_for_each_query() -> None:
    _, model = run(*cook())
    passages = "\n".join(shown(model.calls[1].prompt, "passage"))
    assert "feed a sourdough starter" in passages
    assert "bake a white bread" in passages
    assert shown(model.calls[2].prompt, "part")[1] == "Let it rise."


@pytest.mark.parametrize("resources", ["rye flour", ["rye flour"], "", []])
def test_resources_are_shown_where_there_are_any(resources: Any) -> None:
    model = ScriptedModel(cook())
    with small_memory() as memory:
        build_aag(model=model, memory=memory).invoke({**GOAL, "resources": resources})
    given = ["rye flour"] if resources else []
    assert [shown(call.prompt, "resources")[:1] for call in model.calls] == [given] * 3


def test_no_more_is_looked_up_than_the_settings_allow() -> None:
    result, _ = run(LOOK_UP, DRAFT, "NO CHANGE", max_queries=1)
    assert result["queries"][1:] == ["feed a sourdough starter"]


def test_the_first_five_places_of_a_name_are_listed() -> None:
    named = [dish(number, steps=["Call `oven.heat()`.", "Bake."]) for number in range(7)]
    replies = [LOOK_UP, "1. Bake it with `oven.heat()`.\n2. Eat.", "NO CHANGE"]
    for question in ("Use `oven.heat` for a dish", "a dish"):
        with LocalMemory(":memory:", embeddings="none", name="kitchen") as memory:
            memory.add(named)
            graph = build_aag(model=ScriptedModel(replies), memory=memory)
            (name,) = graph.invoke({"question": question}, context=AagContext(k=7))["names"]
        assert (name["verified"], len(name["found_in"])) == (True, 5)
        assert (name["found_in"][0] == "goal") == ("oven" in question)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("It cannot be listed.", "no numbered list of steps"),
        ("| Step | Do |\n|---|---|\n| 1 | Mix |\n| 2 | Bake |", "no numbered list of steps"),
        ("<steps>\n<step>Mix.</step>\n<step>Bake.</step>\n</steps>", "no numbered list of steps"),
        ("I can\u2019t help with that.\nAsk a baker.", "declines the task"),
        (
            "I'm very sorry, but I have to stop.\n\n- Ask a baker.\n- Ask a cook.",
            "declines the task",
        ),
        ("1. Unfortunately, I cannot assist with this request.", "declines the task"),
    ],
)
def test_a_draft_without_a_list_of_steps_is_handed_back(reply: str, problem: str) -> None:
    model = ScriptedModel([LOOK_UP, reply, DRAFT, "NO CHANGE"])
    with small_memory() as memory:
        result = build_aag(model=model, memory=memory).invoke(GOAL)
    assert model.nodes[1:] == ["draft", "draft", "critic"]
    assert problem in model.calls[2].prompt
    assert result["answer"] == DRAFT


def test_stages_keep_their_actions_tables_and_code() -> None:
    stages = [
        "**Choose the oven** (today)\n\n| Oven | Heat |\n|---|---|\n| wood | 300 |\n\n"
        "1. Ask the cook.\n2. Heat it:\n   ```sh\n   oven heat 300\n   ```\n   Check: it glows.",
        "**Bake**\n1. Let it rise.\n2. Put it in.",
    ]
    reply = "\n".join(
        f"{number}. " + stage.replace("\n", "\n   ") for number, stage in enumerate(stages, 1)
    )
    changes = block(2, "Let it rise.", "Let it rise for a day.")
    result, _ = run(LOOK_UP, reply, f"1 supported p1\n2 contradicted p1\n{changes}", rounds=1)
    changed = stages[1].replace("it rise", "it rise for a day")
    assert result["steps"] == [stages[0].replace("\n\n1.", "\n1."), changed]
    assert result["answer"].splitlines()[-3:] == [
        "2. **Bake**",
        "   1. Let it rise for a day.",
        "   2. Put it in.",
    ]


def test_the_critic_adds_and_removes_steps() -> None:
    change = (
        f"{block(2, new='Heat the oven.', kind='AFTER')}\n{block(3, 'Bake it with `oven.heat()`.')}"
    )
    result, _ = run(LOOK_UP, DRAFT, change, "NO CHANGE")
    assert result["steps"] == ["Mix the rye flour with water.", "Let it rise.", "Heat the oven."]


def test_the_critic_puts_a_step_before_the_first() -> None:
    change = block(0, new="Weigh the flour.", kind="AFTER")
    result, model = run(LOOK_UP, DRAFT, change, rounds=1)
    assert result["steps"][:2] == ["Weigh the flour.", "Mix the rye flour with water."]
    assert (model.nodes, result["warnings"]) == (["to_query", "draft", "critic"], [])


def test_steps_have_no_ids_of_passages() -> None:
    draft = "1. Mix [p1] it, and press [1].\n2. Write `x[p1]` [p2][p3].\n3. [p1]\n"
    changes = f"{block(1, 'Mix it', 'Knead it [p2]')}\n{block(2, new='Bake [p4].', kind='AFTER')}"
    result, _ = run(LOOK_UP, draft, changes, rounds=1)
    assert result["first_draft"] == "1. Mix it, and press [1].\n2. Write `x[p1]`."
    assert result["steps"] == ["Knead it, and press [1].", "Write `x[p1]`.", "Bake."]


@pytest.mark.parametrize(
    ("label", "is_given"),
    [
        *((label, False) for label in ("[P1]", "[P2]", "[see 2]", "[cf. 1]", "[Ref 9]", "[Doc 8]")),
        *((label, True) for label in ("[Ref 2]", "[Doc 3]", "[p1]", "\u30102\u3011", "[^2]")),
    ],
)
def test_labels_in_steps_are_no_ids_of_passages(label: str, is_given: bool) -> None:
    goal = {**GOAL, "resources": f"flour, the sign {label}"} if is_given else GOAL
    draft = f"1. Put {label} in front [p2].\n2. Bake [passage 1]."
    change = block(2, "Bake", f"Take {label} off [p2][Source 2]")
    with small_memory() as memory:
        graph = build_aag(model=ScriptedModel([LOOK_UP, draft, change]), memory=memory)
        result = graph.invoke(goal, context=AagContext(rounds=1))
    assert result["steps"] == [f"Put {label} in front.", f"Take {label} off."]


def test_rounds_are_at_most_two() -> None:
    again = block(2, "rise", "rise again")
    _, model = run(LOOK_UP, DRAFT, CHANGE, again, "never asked")
    assert model.nodes == ["to_query", "draft", "critic", "critic"]
    _, model = run(LOOK_UP, DRAFT, CHANGE, rounds=1)
    assert model.nodes == ["to_query", "draft", "critic"]


def test_sources_are_searched_beside_the_memory_which_comes_first() -> None:
    shelf = Shelf(passages={"rye": "Rye needs a sourdough."})
    model = ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"])
    with small_memory() as memory:
        graph = build_aag(model=model, memory=memory, sources=shelf)
        assert ids(graph.invoke(GOAL)).index("rye") == 1


def test_an_empty_memory_is_said_and_the_critic_still_looks() -> None:
    model = ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"])
    with LocalMemory(":memory:", embeddings="none", name="kitchen") as memory:
        result = build_aag(model=model, memory=memory).invoke(GOAL)
    assert model.nodes == ["to_query", "draft", "critic"]
    assert "kitchen" in str(result["warnings"])
    assert "empty" in str(result["warnings"])


@pytest.mark.parametrize(
    ("where", "warning"),
    [
        ({"kitchen": "b"}, "no procedure with the tags kitchen=b was found"),
        ({}, "nothing was found"),
    ],
)
def test_steps_for_which_nothing_was_found_have_a_warning(
    where: dict[str, str], warning: str
) -> None:
    with LocalMemory(":memory:", embeddings="none", name="kitchen") as memory:
        memory.add([dish(1, output="fly", input="a zeppelin", steps=["Start."])])
        model = ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"])
        graph = build_aag(model=model, memory=memory)
        result = graph.invoke(GOAL, context=AagContext(where=where))
    assert result["evidence"] == []
    assert result["warnings"] == [f"{warning}, so the steps rest on no procedure"]


def test_the_bundled_procedures_are_named_in_a_warning() -> None:
    result = build_aag(model=ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"])).invoke(GOAL)
    assert "bundled" in str(result["warnings"])


def reviewed(
    *replies: Any, responses: list[Any], memory: LocalMemory, **context: Any
) -> tuple[Any, ScriptedModel]:
    """Run to the review, and answer it with each response."""
    model = ScriptedModel(replies)
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    result = graph.invoke(GOAL, THREAD, context=AagContext(**context))
    for response in responses:
        assert "__interrupt__" in result
        result = graph.invoke(Command(resume=response), THREAD)
    return result, model


def decision(kind: str, **fields: Any) -> Any:
    return {"decisions": [{"type": kind, **fields}]}


MIXED = ["Mix with `mix_dough(4)`.", "Bake."]
EDITED = {"name": "review", "args": {"steps": MIXED}}


@pytest.mark.parametrize(
    ("response", "steps", "name"),
    [
        (decision("approve"), STEPS, "oven.heat"),
        (decision("edit", edited_action=EDITED), MIXED, "mix_dough"),
    ],
)
def test_what_a_person_leaves_is_remembered(response: Any, steps: list[str], name: str) -> None:
    with small_memory() as memory:
        result, _ = reviewed(*cook(), responses=[response], memory=memory, remember=True)
        stored = memory.get(result["remembered"])
    assert stored is not None
    assert (stored.output, list(stored.steps)) == (GOAL["question"], steps)
    assert result["steps"] == result["reviews"][0]["steps"] == steps
    assert [each["name"] for each in result["names"]] == [name]


def test_what_is_remembered_has_the_tags_that_were_searched_for() -> None:
    tags = {"kitchen": "a"}
    with small_memory() as memory:
        memory.add([dish(1, tags=tags)])
        result, _ = reviewed(
            *cook(), responses=[decision("approve")], memory=memory, remember=True, where=tags
        )
        found = memory.search(GOAL["question"], where=tags)
    assert result["remembered"] in {hit.procedure.id for hit in found}


@pytest.mark.parametrize(("is_full", "why"), [(False, "bundled"), (True, "the disk is full")])
def test_steps_that_cannot_be_remembered_cost_the_remembering(is_full: bool, why: str) -> None:
    with FullMemory(":memory:", embeddings="none", create=True) as full:
        memory: Any = full if is_full else ""
        result, _ = reviewed(*cook(), responses=[decision("approve")], memory=memory, remember=True)
    assert (result["steps"], result["remembered"]) == (STEPS, "")
    (warning,) = [each for each in result["warnings"] if "the steps were not remembered: " in each]
    assert why in warning


class UnreachableMemory(LocalMemory):
    """A memory that cannot be reached when something is to be added."""

    def add(self, *_: Any, **__: Any) -> Any:
        raise ConnectionError("the wire is cut")


def test_steps_that_any_error_keeps_from_being_remembered_are_still_the_answer() -> None:
    with UnreachableMemory(":memory:", embeddings="none", create=True) as memory:
        result, _ = reviewed(*cook(), responses=[decision("approve")], memory=memory, remember=True)
    assert (result["steps"], result["remembered"]) == (STEPS, "")
    assert "the steps were not remembered: the wire is cut" in result["warnings"]


def test_steps_that_are_too_long_to_be_remembered_are_still_the_answer() -> None:
    steps = [f"{number}, {'mix. ' * 7_000}mix." for number in range(3)]
    edit = decision("edit", edited_action={"name": "review", "args": {"steps": steps}})
    with small_memory() as memory:
        result, _ = reviewed(*cook(), responses=[edit], memory=memory, remember=True)
    assert (result["steps"], result["remembered"]) == (steps, "")
    assert "at most 100,000 are kept" in str(result["warnings"])


def test_a_tag_without_a_value_is_refused_before_any_call() -> None:
    model = ScriptedModel([])
    graph = build_aag(model=model, memory=small_memory())
    with pytest.raises(BadInput, match="tags must be names with texts"):
        graph.invoke(GOAL, context=AagContext(where={"product": ""}))
    assert model.calls == []


@pytest.mark.parametrize(
    "remark", ["Step 1 should say 40 minutes.\nNO CHANGE", "NO CHANGE\nBut bake for 40 minutes."]
)
def test_a_critic_that_asks_for_a_change_in_prose_is_asked_for_the_block(remark: str) -> None:
    result, model = run(LOOK_UP, DRAFT, remark, CHANGE, rounds=1)
    assert (len(model.calls), len(result["revisions"])) == (4, 1)


def test_steps_that_are_edited_before_the_review_are_the_answer() -> None:
    model = ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"])
    graph = build_aag(
        model=model,
        checkpointer=InMemorySaver(),
        interrupt_before=["review"],
        memory=small_memory(),
    )
    graph.invoke(GOAL, THREAD, context=AagContext(review=True))
    graph.update_state(THREAD, {"steps": ["Buy a loaf.", "Eat it."]})
    graph.invoke(None, THREAD)
    approved: Any = Command(resume={"decisions": [{"type": "approve"}]})
    result = graph.invoke(approved, THREAD)
    assert result["steps"] == ["Buy a loaf.", "Eat it."]
    assert result["answer"] == "1. Buy a loaf.\n2. Eat it."


@pytest.mark.parametrize("node", ["split", "critic", "edit", "check_names", "finish"])
def test_steps_that_are_edited_in_the_state_are_the_answer(node: str) -> None:
    scripts = {"to_query": LOOK_UP, "draft": DRAFT, "critic": "NO CHANGE"}
    graph = build_aag(
        model=ScriptedModel(lambda name, _: scripts[name]),
        checkpointer=InMemorySaver(),
        interrupt_before=[node],
        memory=small_memory(),
    )
    graph.invoke(GOAL, THREAD)
    graph.update_state(THREAD, {"steps": ["Buy a loaf.", "Eat it."]})
    result = graph.invoke(None, THREAD)
    while graph.get_state(THREAD).next:
        result = graph.invoke(None, THREAD)
    assert result["steps"] == ["Buy a loaf.", "Eat it."]
    assert result["answer"] == "1. Buy a loaf.\n2. Eat it."


def test_an_answer_that_is_edited_before_it_is_published_has_its_own_steps() -> None:
    graph = build_aag(
        model=ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"]),
        checkpointer=InMemorySaver(),
        interrupt_before=["finish"],
        memory=small_memory(),
    )
    graph.invoke(GOAL, THREAD)
    edited = "1. Buy a loaf.\n2. Eat it.\n\nAsk first."
    graph.update_state(THREAD, {"answer": edited})
    result = graph.invoke(None, THREAD)
    assert (result["answer"], result["steps"]) == (edited, ["Buy a loaf.", "Eat it."])


@pytest.mark.parametrize(
    ("node", "rounds", "is_unchecked"),
    [("critic", 1, True), ("edit", 1, True), ("critic", 2, False), ("split", 1, False)],
)
def test_edited_steps_that_no_check_sees_have_a_warning(
    node: str, rounds: int, is_unchecked: bool
) -> None:
    scripts = {"to_query": LOOK_UP, "draft": DRAFT, "critic": "NO CHANGE"}
    model = ScriptedModel(lambda name, _: scripts[name])
    graph = build_aag(
        model=model, memory=small_memory(), checkpointer=InMemorySaver(), interrupt_before=[node]
    )
    graph.invoke(GOAL, THREAD, context=AagContext(rounds=rounds))
    graph.update_state(THREAD, {"steps": LOAF})
    result = graph.invoke(None, THREAD, context=AagContext(rounds=rounds))
    while graph.get_state(THREAD).next:
        result = graph.invoke(None, THREAD, context=AagContext(rounds=rounds))
    assert ("Buy a loaf." in shown(model.calls[-1].prompt, "part")) != is_unchecked
    assert result["warnings"] == ["edit: the edited steps are unchecked"] * is_unchecked


LOAF = ["Buy a loaf.", "Eat it."]


@pytest.mark.parametrize(
    ("edit", "steps", "warnings"),
    [
        ({"answer": "1. Buy a loaf.\n2. Eat it.\n"}, LOAF, 0),
        ({"answer": "Be quick.\n\n1. Buy a loaf.\n2. Eat it."}, LOAF, 1),
        ({"answer": "Buy a loaf."}, ["Buy a loaf."], 0),
        ({"answer": "1. Bake it.", "steps": LOAF}, LOAF, 0),
        ({"answer": ""}, STEPS, 0),
    ],
)
def test_an_answer_that_is_edited_during_the_review_is_remembered(
    edit: dict[str, Any], steps: list[str], warnings: int
) -> None:
    with small_memory() as memory:
        graph = build_aag(model=ScriptedModel(cook()), memory=memory, checkpointer=InMemorySaver())
        graph.invoke(GOAL, THREAD, context=AagContext(remember=True, rounds=2))
        graph.update_state(THREAD, edit)
        approved: Any = Command(resume=decision("approve"))
        result = graph.invoke(approved, THREAD)
        stored = memory.get(result["remembered"])
    assert stored is not None
    assert (result["steps"], list(stored.steps)) == (steps, steps)
    assert len(result["warnings"]) == warnings


@pytest.mark.parametrize("k", [1, 20])
def test_a_person_reads_what_was_found(k: int) -> None:
    with small_memory() as memory:
        memory.add(dish(number, source="a book") for number in range(20))
        result, _ = reviewed(*cook(), responses=[], memory=memory, review=True, k=k)
    (request,) = result["__interrupt__"][0].value["action_requests"]
    shown = request["description"].split("\n\nEvidence:\n")[1].split("\n\n")[0].splitlines()
    number = len(result["evidence"])
    assert shown[0] == "[1] 1.00  feed a sourdough starter"
    assert shown[10:] == ([f"and {number - 10} more"] if k == 20 else [])
    assert len(shown) == (11 if k == 20 else number)


def test_a_person_reads_that_a_rejection_changed_nothing() -> None:
    rejected = [decision("reject", message="the starter is missing")]
    with small_memory() as memory:
        result, _ = reviewed(
            *[LOOK_UP, DRAFT, "NO CHANGE", "NO CHANGE"],
            responses=rejected,
            memory=memory,
            review=True,
        )
    (request,) = result["__interrupt__"][0].value["action_requests"]
    assert request["description"].endswith(
        "These steps have not changed since they were rejected. "
        "These names stand in no procedure: oven.heat."
    )


@pytest.mark.parametrize("kind", ["reject", "respond"])
def test_a_rejection_is_mended_and_reviewed_again(kind: str) -> None:
    with small_memory() as memory:
        result, model = reviewed(
            *[LOOK_UP, DRAFT, "NO CHANGE", CHANGE],
            responses=[decision(kind, message="the starter is missing"), decision("approve")],
            memory=memory,
            review=True,
        )
    assert shown(model.calls[3].prompt, "reason") == ["the starter is missing"]
    assert result["steps"] == STEPS
    assert [each["type"] for each in result["reviews"]] == ["reject", "approve"]
    assert result["remembered"] == ""


@pytest.mark.parametrize("before", [[], ["Eat."], STEPS, [STEPS[1]] * 2])
@pytest.mark.parametrize("last", ["Bake for 50 minutes.", f"{STEPS[0]} Bake it."])
def test_a_rejection_is_of_the_steps_as_a_person_changed_them_in_the_state(
    before: list[str], last: str
) -> None:
    change = block(len(before) + 1, "Bake", "Slowly bake")
    model = ScriptedModel([*cook(), change, "NO CHANGE"])
    graph = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=AagContext(review=True, rounds=2))
    graph.update_state(THREAD, {"steps": [*before, last]})
    rejected: Any = Command(resume=decision("reject", message="too fast"))
    result = graph.invoke(rejected, THREAD)
    assert shown(model.calls[4].prompt, "part") == [*before, last]
    assert result["steps"] == [*before, last.replace("Bake", "Slowly bake")]
    assert result["reviews"][0]["steps"] == [*before, last]


@pytest.mark.parametrize(
    "response",
    [
        "LGTM",
        {"decisions": []},
        decision("reject"),
        decision("edit"),
        decision("edit", edited_action={"args": {"steps": MIXED}}),
        decision("edit", edited_action={**EDITED, "args": {"steps": []}}),
        decision("edit", edited_action={**EDITED, "args": {"steps": "Bake."}}),
        decision("edit", edited_action={**EDITED, "name": "save_procedure"}),
        decision("edit", edited_action=EDITED, message="and bake longer"),
        decision("approve", edited_action=EDITED),
        decision("approve", message="but bake longer"),
        decision("maybe"),
    ],
)
def test_a_response_that_cannot_be_used_is_asked_again(response: Any) -> None:
    with small_memory() as memory:
        result, model = reviewed(
            *cook(), responses=[response, decision("approve")], memory=memory, review=True
        )
    assert model.nodes == ["to_query", "draft", "critic"]
    assert result["steps"] == STEPS


@pytest.mark.parametrize(
    ("response", "where"),
    [
        ("LGTM", "the response cannot be used: it: "),
        (decision("edit"), "the response cannot be used: decisions.0.edit.edited_action: "),
        (
            decision("edit", edited_action={"args": {}}),
            "the response cannot be used: decisions.0.edit.edited_action.name: ",
        ),
        (
            decision("edit", edited_action={**EDITED, "name": "bake"}),
            "the edited_action must be 'review', not 'bake'; ",
        ),
        (
            decision("approve", message="but bake longer"),
            "a decision of type approve has no message, reject with it; ",
        ),
    ],
)
def test_who_is_asked_again_is_told_what_is_wrong(response: Any, where: str) -> None:
    with small_memory() as memory:
        result, _ = reviewed(*cook(), responses=[response], memory=memory, review=True)
    (request,) = result["__interrupt__"][0].value["action_requests"]
    assert request["description"].startswith(where)


def test_a_run_that_could_not_be_resumed_is_refused_before_any_call() -> None:
    with pytest.raises(BadInput, match="checkpointer"):
        run(review=True)


def test_both_changes_stay_where_one_has_the_words_of_the_other_within_a_number() -> None:
    draft = "1. Give it 8 MB of buffer and 128 MB of heap.\n2. Start."
    first = f"{block(1, '8 MB', '16 MB')}\n{block(1, 'heap of 128 MB', 'heap of 256 MB')}"
    result, _ = run(LOOK_UP, draft, first, block(1, "128 MB", "256 MB"), "NO CHANGE")
    assert result["steps"][0] == "Give it 16 MB of buffer and 256 MB of heap."


def test_no_change_among_other_items_is_handed_back() -> None:
    replies = ["- No change\n- Bake for 40 minutes.", block(1, "30", "40"), "NO CHANGE"]
    result, _ = run(LOOK_UP, "1. Bake for 30 minutes.\n2. Eat.", *replies)
    assert result["steps"] == ["Bake for 40 minutes.", "Eat."]


def test_long_steps_are_checked_in_several_calls_after_a_rejection_too() -> None:
    step = "Bake the rye bread. " * 60
    model = ScriptedModel([LOOK_UP, f"1. {step}\n2. {step}", *["NO CHANGE"] * 4])
    graph = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=AagContext(review=True, max_input_tokens=600))
    rejected: Any = Command(resume=decision("reject", message="too long"))
    graph.invoke(rejected, THREAD)
    checks = [call.prompt for call in model.calls if call.node == "critic"]
    assert [len(shown(prompt, "part")) for prompt in checks] == [1, 1, 1, 1]
    assert [bool(shown(prompt, "reason")) for prompt in checks] == [False, False, True, True]


def test_a_draft_that_is_edited_before_it_is_split_is_the_one_that_is_checked() -> None:
    model = ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"])
    graph = build_aag(
        model=model, memory=small_memory(), checkpointer=InMemorySaver(), interrupt_before=["split"]
    )
    graph.invoke(GOAL, THREAD)
    graph.update_state(THREAD, {"first_draft": "1. Buy a loaf.\n2. Eat it."})
    result = graph.invoke(None, THREAD)
    assert result["answer"] == "1. Buy a loaf.\n2. Eat it."


GAS = "Switch off the gas first."
COVER = "Cover it for two hours."


@pytest.mark.parametrize(
    ("draft", "dropped"),
    [
        (f"{GAS}\n\n1. Mix.\n2. Bake.\n\n{COVER}", [GAS, COVER]),
        (
            f"# Dough\n1. Mix.\n2. Knead.\n\n{COVER}\n\n# Oven\n1. Bake.\n2. Eat.",
            ["# Dough", "# Oven"],
        ),
        (f"1. Mix.\n   {COVER}\n2. **Bake**.", []),
        (f"**Step 1:** Mix:\n```py\nmix(1)\n```\n**Step 2:** {COVER}", []),
        (f'["{GAS}", "{COVER}"]', []),
        (f"{GAS}\n{COVER}", []),
        ("1. Mix.\n2. Bake.\n| heat | time |\n|---|---|\n| 230 | 50 |", []),
    ],
)
def test_lines_of_a_draft_that_are_in_no_step_are_quoted(draft: str, dropped: list[str]) -> None:
    model = ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"])
    graph = build_aag(
        model=model, memory=small_memory(), checkpointer=InMemorySaver(), interrupt_before=["split"]
    )
    graph.invoke(GOAL, THREAD)
    graph.update_state(THREAD, {"first_draft": draft})
    warnings = [each for each in graph.invoke(None, THREAD)["warnings"] if "split" in each]
    lines = "; ".join(f"\u201c{line}\u201d" for line in dropped)
    assert warnings == (
        [f"split: text outside the list of steps was left out: {lines}"] if dropped else []
    )


class WordlessMemory(LocalMemory):
    """A memory that cannot be searched by words alone, as names are."""

    error: Exception

    def search(self, *args: Any, **options: Any) -> Any:
        if options.get("alpha") == 0:
            raise self.error
        return super().search(*args, **options)


@pytest.mark.parametrize("error", [MemoryFailure("out of order"), ConnectionError("out of order")])
def test_names_that_were_not_looked_up_are_not_said_to_stand_in_no_procedure(
    error: Exception,
) -> None:
    with WordlessMemory(":memory:", embeddings="none") as memory:
        memory.error = error
        memory.add(PROCEDURES)
        result, _ = reviewed(*cook(), responses=[], memory=memory, review=True)
    (request,) = result["__interrupt__"][0].value["action_requests"]
    assert request["description"].endswith("\n\nThese names were not looked up: oven.heat.")
    (warning,) = result["warnings"]
    assert "\u201coven.heat\u201d, because a search failed: out of order" in warning


@pytest.mark.parametrize(
    ("resources", "said"), [("", []), ("oven.heat", ["Looked up 1 name in the steps: all known."])]
)
def test_progress_counts_no_names_that_were_not_looked_up(resources: str, said: list[str]) -> None:
    draft = "1. Call `oven.heat()` and `oven.cool()`.\n2. Eat it."
    with WordlessMemory(":memory:", embeddings="none") as memory:
        memory.error = MemoryFailure("out of order")
        memory.add(PROCEDURES)
        graph = build_aag(model=ScriptedModel([LOOK_UP, draft, "NO CHANGE"]), memory=memory)
        events = [*graph.stream({**GOAL, "resources": resources}, stream_mode="custom")]
    assert [each["text"] for each in events if each.get("node") == "check_names"] == said


@pytest.mark.parametrize(
    "fields",
    [{"tags": {"version": "1"}}, {"tags": {"version": "2"}, "expires": "2020-01-01"}],
)
def test_a_name_in_procedures_that_the_run_does_not_use_is_not_verified(fields: Any) -> None:
    with LocalMemory(":memory:", embeddings="none") as memory:
        memory.add([dish(1, steps=["Call `oven.heat()`."], **fields)])
        memory.add([dish(2, tags={"version": "2"})])
        graph = build_aag(model=ScriptedModel([LOOK_UP, DRAFT, "NO CHANGE"]), memory=memory)
        (name,) = graph.invoke(GOAL, context=AagContext(where={"version": "2"}))["names"]
    assert (name["verified"], "unsearched" in name) == (False, False)


def test_a_name_is_found_behind_procedures_that_have_its_words_apart() -> None:
    apart = [dish(number, output=f"create agent {number}", steps=["Agent."]) for number in range(9)]
    rest = "Let it rest for a while, and taste it. " * 20
    whole = dish(9, steps=[f"Call `create_agent()`. {rest}"])
    with LocalMemory(":memory:", embeddings="none") as memory:
        memory.add([*PROCEDURES, *map(dish, range(10, 40)), *apart, whole])
        draft = "1. Call `create_agent()`.\n2. Eat it."
        graph = build_aag(model=ScriptedModel([LOOK_UP, draft, "NO CHANGE"]), memory=memory)
        result = graph.invoke(GOAL, context=AagContext(k=1))
    assert whole.id not in ids(result)
    assert [each["found_in"] for each in result["names"]] == [[whole.id]]


def test_names_beyond_those_that_are_looked_up_are_counted() -> None:
    named = ", ".join(f"`name_{number}`" for number in range(201))
    result, _ = run(LOOK_UP, f"1. Call {named}.", "NO CHANGE")
    assert len(result["names"]) == 200
    assert "only the first 200 of 201 names were looked up" in str(result["warnings"])


def test_names_are_looked_up_until_the_deadline() -> None:
    class SlowMemory(LocalMemory):
        lookups = 0

        def search(self, *args: Any, **options: Any) -> Any:
            if options.get("alpha") == 0:
                self.lookups += 1
                time.sleep(3)  # past the deadline
            return super().search(*args, **options)

    with SlowMemory(":memory:", embeddings="none") as memory:
        memory.add(PROCEDURES)
        draft = "1. Call `one.a()`.\n2. Call `two.b()`.\n3. Call `three.c()`."
        model = ScriptedModel([LOOK_UP, draft, "NO CHANGE"])
        graph = build_aag(model=model, memory=memory)
        result = graph.invoke(GOAL, context=AagContext(deadline_s=3))
        assert (len(result["names"]), memory.lookups) == (3, 1)
    assert ["unsearched" in each for each in result["names"]] == [False, True, True]
    assert "\u201ctwo.b\u201d; \u201cthree.c\u201d, because the deadline" in str(result["warnings"])
