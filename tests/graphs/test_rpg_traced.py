"""RPG beyond the paper: outlines, searches for each plan, what each sentence rests on, and the check of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document

from stepcraft import RpgContext, build_rpg
from tests.scripted import ScriptedModel
from tests.shelf import Shelf, section

QUESTION = {"question": "How do rye and oats differ in age and use?"}
SHOWN = re.compile(r'<evidence id="(\d+)">')
RYE = "Rye came to the north in the year 700. It was baked into dark bread. Nobody fed it to horses."
OATS = "Oats came to the north in the year 300. Oats were fed to horses. They were cooked as a porridge."


def grain(query: str) -> list[Document]:
    """One passage for each grain that a query names."""
    found = [("rye", RYE), ("oats", OATS)]
    return [
        Document(text, id=name, metadata={"title": name.title(), "score": 0.9})
        for name, text in found
        if name in query.lower()
    ]


def writer(
    outline: str = "long\n- rye: age and use\n- oats: age and use", **replies: str
) -> Callable[[str, str], str]:
    """Writes a segment that cites all that it was shown, and a finish that begins with a comparison of its own."""

    def reply(node: str, prompt: str) -> str:
        if node in replies:
            return replies[node]
        if node == "outline":
            return outline
        if node == "plan":
            made = section(prompt, "plans").count("\n") + bool(section(prompt, "plans"))
            return ["rye: age", "oats: age"][made] if made < 2 else "<complete>"
        if node == "answer":
            marks = "".join(f"[{number}]" for number in SHOWN.findall(prompt))
            return f"On {section(prompt, 'plan') or 'the question'} it is known. {marks} Everybody likes it."
        if node == "combine":
            return f"They differ. {section(prompt, 'text')}"
        return "NONE"

    return reply


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    """Runs RPG either way."""

    def rpg(model: Any, given: Any = QUESTION, shelf: Any = None, **context: Any) -> Any:
        graph = build_rpg(model=model, retriever=shelf or Shelf(says=grain))
        if request.param == "sync":
            return graph.invoke(given, context=RpgContext(**context))
        return asyncio.run(graph.ainvoke(given, context=RpgContext(**context)))

    return rpg


@pytest.mark.parametrize(
    ("outline", "given", "context", "calls"),
    [
        ("long\n- rye\n- oats", {}, {}, ["outline", "answer", "answer", "combine"]),
        ("long\n- rye", {}, {}, ["outline", "answer"]),
        ("long\n- rye\n- oats", {}, {"finish": False}, ["outline", "answer", "answer"]),
        ("long\n- rye\n- oats", {}, {"check": "flag"}, ["outline", "answer", "answer", "combine", "check"]),
        ("- rye\n- oats", {"kind": "long"}, {}, ["outline", "answer", "answer", "combine"]),
        ("short\n- rye", {}, {}, ["outline", "answer"]),
        ("Short: rye", {}, {}, ["outline", "answer"]),
        ("multihop\n- rye", {}, {}, ["outline", "answer", "plan", "answer", "plan", "combine"]),
        ("", {"kind": "multihop"}, {}, ["plan", "answer", "plan", "answer", "plan", "combine"]),
        ("", {"kind": "short"}, {}, ["plan", "answer"]),
        ("", {"kind": "long"}, {"order": "step"}, ["plan", "answer", "plan", "answer", "plan", "combine"]),
        ("<no_info>", {}, {}, ["outline", "answer"]),
        ("long\n- rye\n- oats\n- rye bread", {}, {"max_cycles": 2}, ["outline", "answer", "answer", "combine"]),
    ],
)  # fmt: skip
def test_calls(run: Any, outline: str, given: Any, context: Any, calls: list[str]) -> None:
    model = ScriptedModel(writer(outline))
    result = run(model, {**QUESTION, **given}, **context)
    assert model.nodes == calls
    assert result["usage"]["calls"] == len(calls)
    assert "".join(sentence["text"] for sentence in result["sentences"]) == result["answer"]


def test_topics_are_looked_up_and_written_in_parallel(run: Any) -> None:
    model, shelf = ScriptedModel(writer()), Shelf(says=grain)
    result = run(model, shelf=shelf)
    assert {call.superstep for call in model.calls[1:3]} == {model.calls[1].superstep}
    assert shelf.queries[0][0] == QUESTION["question"]
    assert sorted(query for query, _ in shelf.queries)[1:] == ["oats: age and use", "rye: age and use"]
    assert result["plans"] == ["rye: age and use", "oats: age and use"]
    assert [segment["plan"] for segment in result["segments"]] == result["plans"]


def test_the_planner_sees_titles_and_no_evidence(run: Any) -> None:
    model = ScriptedModel(writer())
    run(model)
    assert "- Rye\n- Oats" in section(model.calls[0].prompt, "titles")
    assert "not all there may be" in section(model.calls[0].prompt, "titles")
    assert "in the year 700" not in model.calls[0].prompt


def test_what_each_sentence_rests_on(run: Any) -> None:
    result = run(ScriptedModel(writer()), citations="inline")
    assert [one["supported"] for one in result["sentences"]] == [False, True, False, True, False]
    numbers = {passage["id"]: number for number, passage in enumerate(result["evidence"], 1)}
    for sentence in result["sentences"]:
        marks = "".join(f"[{numbers[id_]}]" for id_ in sentence["evidence"])
        assert sentence["text"].strip().endswith(f" {marks}." if marks else ".")
    assert set(numbers) == {id_ for segment in result["segments"] for id_ in segment["evidence"]}


def test_ids_alone_leave_no_mark_in_the_answer(run: Any) -> None:
    result = run(ScriptedModel(writer()))
    assert "[" not in result["answer"]
    assert any(sentence["evidence"] for sentence in result["sentences"])


def test_evidence_is_numbered_by_first_use_in_the_answer(run: Any) -> None:
    segments = {"rye": "Rye is young [1].", "oats": "Oats are old [1]."}

    def reply(node: str, prompt: str) -> str:
        plain = writer("long\n- rye\n- oats")
        if node == "answer":
            return segments[section(prompt, "plan")]
        if node == "combine":
            marks = dict(re.findall(r"(Rye|Oats) \w+ \w+ \[(\d)\]", section(prompt, "text")))
            return f"Oats are old.[{marks['Oats']}] Rye is young.[{marks['Rye']}] Both are eaten.[9]"
        return plain(node, prompt)

    result = run(ScriptedModel(reply), {"question": "What of the grains?"}, citations="inline")
    assert result["answer"] == "Oats are old [1]. Rye is young [2]. Both are eaten."
    assert [passage["id"] for passage in result["evidence"]] == ["oats", "rye"]
    assert [sentence["supported"] for sentence in result["sentences"]] == [True, True, False]


def test_a_mark_does_not_stand_by_names_in_code_that_its_passages_do_not_have(run: Any) -> None:
    finish = (
        "Oats were fed to `horses` [2]. Oats were baked with `bake_oats()` [2]. Feed `cows` [2].\n\n"
        "Rye came in the year 700 [1]:\n\n```python\nimport rye_kit\nrye_kit.bake(700)\n```\n\n"
        "Bake it [1]:\n\n```python\nprint(700)\n```\n"
    )
    given = {"question": "How do rye and oats differ, and what of `cows`?"}
    result = run(ScriptedModel(writer(combine=finish)), given, citations="inline")
    marked = [(one["text"].split()[0], one["supported"]) for one in result["sentences"]]
    assert marked == [
        ("Oats", True), ("Oats", False), ("Feed", True), ("Rye", True), ("```python", False), ("Bake", True),
    ]  # fmt: skip
    assert "`bake_oats()`." in result["answer"]
    assert "".join(one["text"] for one in result["sentences"]) == result["answer"]
    assert "the year 700 [2]:\n\n```python\nimport rye_kit" in result["answer"]


def test_a_sentence_that_lost_its_mark_has_it_again(run: Any) -> None:
    finish = "On oats: age and use it is indeed known. On rye: age and use it is known."
    result = run(ScriptedModel(writer(combine=finish)), citations="inline")
    assert [sentence["supported"] for sentence in result["sentences"]] == [True, True]


def test_a_sentence_comes_with_its_neighbours_and_the_opening_of_its_passage(run: Any) -> None:
    long = " ".join(f"Sentence {number} is about something else that fills the page." for number in range(40))
    text = f"Barley has a history. {long} Barley was baked in the year 900. Its price fell soon. {long}"
    model = ScriptedModel(writer("short\n- barley baked in the year"))
    shelf = Shelf(says=lambda _query: [Document(text, id="barley", metadata={"title": "Barley"})])
    run(model, {"question": "When was barley baked?"}, shelf, threshold=0.5)
    shown = section(model.calls[-1].prompt, "evidence") or model.calls[-1].prompt
    assert all(
        told in shown for told in ("Barley has a history.", "in the year 900.", "Its price fell soon.")
    )
    assert shown.count("something else") < 10


def test_a_plan_that_finds_nothing_costs_no_segment(run: Any) -> None:
    model = ScriptedModel(writer("long\n- rye\n- quinoa prices"))
    shelf = Shelf(says=lambda query: grain(query) if "quinoa" not in query else [])
    result = run(model, {"question": "What of grains?"}, shelf)
    assert model.nodes == ["outline", "answer"]
    assert result["plans"] == ["rye", "quinoa prices"]
    assert "nothing was found on: quinoa prices" in result["warnings"]


def test_where_nothing_is_found_at_all_the_answer_is_unmarked(run: Any) -> None:
    model = ScriptedModel(writer("long\n- quinoa\n- maize"))
    result = run(model, {"question": "What of quinoa?"})
    assert model.nodes == ["outline", "answer"]
    assert [sentence["supported"] for sentence in result["sentences"]] == [False, False]
    assert (result["evidence"], len(result["warnings"])) == ([], 2)


def test_the_planner_of_the_loop_is_told_what_was_not_found(run: Any) -> None:
    model = ScriptedModel(writer())
    shelf = Shelf(says=lambda query: [] if "rye" in query else grain("oats"))
    run(model, {**QUESTION, "kind": "multihop"}, shelf)
    plans = [section(call.prompt, "plans") for call in model.calls if call.node == "plan"]
    assert plans[1] == "1. rye: age (nothing was found on it)"


@pytest.mark.parametrize("grounding", ["open", "evidence"])
def test_what_may_be_added_to_the_evidence(run: Any, grounding: str) -> None:
    model = ScriptedModel(writer())
    run(model, grounding=grounding)
    form = section(model.calls[1].prompt, "reply_format")
    assert ("add what you are sure of" in form) == (grounding == "open")
    assert ("nothing that it does not say" in form) == (grounding == "evidence")


@pytest.mark.parametrize(
    ("check", "reply", "texts", "supported"),
    [
        ("flag", "NONE", ["A is so.", "B is so.", "C."], [True, True, False]),
        ("flag", "2", ["A is so.", "B is so.", "C."], [True, False, False]),
        ("flag", "**2.** it says otherwise\n9", ["A is so.", "B is so.", "C."], [True, False, False]),
        ("mend", "2: B was so [1].", ["A is so.", "B was so.", "C."], [True, True, False]),
        ("mend", "2- not said", ["A is so.", "C."], [True, False]),
        ("mend", "None.", ["A is so.", "B is so.", "C."], [True, True, False]),
        ("mend", "2 - B was so [1].", ["A is so.", "B was so.", "C."], [True, True, False]),
        ("mend", "2 - [1] says otherwise", ["A is so.", "C."], [True, False]),
        ("mend", "**2:** B was so [1].", ["A is so.", "B was so.", "C."], [True, True, False]),
        ("mend", "2: -", ["A is so.", "C."], [True, False]),
        ("flag", "None of these is borne out:\n1\n2", ["A is so.", "B is so.", "C."], [False, False, False]),
        ("flag", "NONE\n\n1. It says so.", ["A is so.", "B is so.", "C."], [True, True, False]),
        ("flag", "All are borne out, except:\n2", ["A is so.", "B is so.", "C."], [True, False, False]),
    ],
)
def test_the_check(run: Any, check: str, reply: str, texts: list[str], supported: list[bool]) -> None:
    model = ScriptedModel(writer("short\n- rye", answer="A is so [1]. B is so [1]. C.", check=reply))
    result = run(model, check=check)
    assert [sentence["text"].strip() for sentence in result["sentences"]] == texts
    assert [sentence["supported"] for sentence in result["sentences"]] == supported
    asked = model.calls[-1].prompt
    assert "1. A is so [1].\n2. B is so [1]." in section(asked, "answer")
    assert "in the year 700" in asked


CODE = "```python\nf(x)\n```"


@pytest.mark.parametrize(
    ("answer", "reply", "mended"),
    [
        (f"## Rye\n\nA is so [1]:\n\n{CODE}\n\nB.", "1: A was so [1].", f"## Rye\n\nA was so.\n\n{CODE}\n\nB."),
        (f"## Rye\n\nA is so [1]:\n\n{CODE}", "1: ## Rye A was so: ```python f(x) ``` [1]", f"## Rye\n\nA was so:\n\n{CODE}"),
        ("- A is so [1].\n- B is so [1].", "2: - B was so [1].\n1: A was so [1].", "- A was so.\n- B was so."),
        ("## Rye\n\nA is so [1]. B is so [1].", "1-", "## Rye\n\nB is so."),
        ("C.\n\n## Rye\n\nA is so [1].\n\n## Oats\n\nB.", "2-", "C.\n\n## Oats\n\nB."),
        (f"{CODE} [1]\n\nB.", "1: ```python f(y) ```", f"{CODE}\n\nB."),
    ],
)  # fmt: skip
def test_what_is_mended_keeps_its_form(run: Any, answer: str, reply: str, mended: str) -> None:
    given = {"question": "How does `f(x)` do it?"}
    result = run(ScriptedModel(writer("short\n- rye", answer=answer, check=reply)), given, check="mend")
    assert result["answer"] == mended
    assert "".join(one["text"] for one in result["sentences"]) == mended


def test_an_answer_of_which_nothing_is_borne_out_is_kept(run: Any) -> None:
    model = ScriptedModel(writer("short\n- rye", answer="A is so [1]. B is so [1].", check="1-\n2-"))
    result = run(model, check="mend")
    assert result["answer"] == "A is so. B is so."
    assert [sentence["supported"] for sentence in result["sentences"]] == [False, False]
    assert "nothing of the answer is borne out" in result["warnings"][-1]


def test_a_check_that_names_no_sentence_is_asked_again(run: Any) -> None:
    reply = "None of the sentences is borne out: 1 2"
    model = ScriptedModel(writer("short\n- rye", answer="A is so [1]. B is so [1].", check=reply))
    result = run(model, check="flag")
    assert model.nodes.count("check") == 2
    assert "check was skipped" in result["warnings"][-1]


def test_the_check_sees_one_mark_for_each_passage(run: Any) -> None:
    model = ScriptedModel(writer("short\n- rye", answer="A is so [1]. B is so [1]."))
    run(model, check="flag", citations="inline")
    assert section(model.calls[-1].prompt, "answer") == "1. A is so [1].\n2. B is so [1]."


def test_a_check_that_cannot_be_read_leaves_the_answer(run: Any) -> None:
    model = ScriptedModel(writer("short\n- rye", answer="A is so [1].", check="Well, well."))
    result = run(model, check="mend")
    assert (result["answer"], model.nodes.count("check")) == ("A is so.", 2)
    assert "check was skipped" in result["warnings"][-1]


def test_the_paper_leaves_settings_that_are_given() -> None:
    assert RpgContext(paper=True).segment_tokens == 100
    assert RpgContext(paper=True, segment_tokens=200).segment_tokens == 200
    kept = RpgContext(paper=True, segment_tokens=200).for_state()["values"]
    assert RpgContext(**kept).segment_tokens == 200


def test_calls_are_shared_among_the_segments(run: Any) -> None:
    model = ScriptedModel(writer("long\n- rye\n- oats\n- rye and oats"))
    result = run(model, max_calls=4)
    assert len(model.nodes) <= 4
    assert result["answer"]
