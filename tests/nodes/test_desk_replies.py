"""Replies that a language model gave to these prompts, shortened, and what had gone wrong with them."""

import pytest

from stepcraft import AagContext, RatContext, RpgContext, build_aag, build_rat
from stepcraft.nodes.rpg.check import check
from stepcraft.nodes.rpg.outline import outline
from stepcraft.text.patch import Patch, read_patch
from tests.kitchen import CONTENT, GOAL, PAPER, cook, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf

CODE = """\
1. Install the client with `pip install modal`.
2. [[Write the endpoint, which writes each corrected run to the dataset.
   ```python
   async def corrections(request: Request):
       payload = await request.json()

       for run in payload["runs"]:
           for found in client.list_feedback(run_ids=[run["id"]]):
               save(found, keep=state["messages"][:-2])
       table = df[["inputs", "outputs"]]
   ```]]
3. Register it:
   "auth": {
     "path": "./auth.py:auth"
   }"""

BARE_CODE = """\
1. Write the endpoint [[in a file `main.py`]].
   for run in body["runs"]:
       for found in client.list_feedback(run_ids=[run["id"]]):
           drop = [RemoveMessage(id=m.id) for m in state["messages"][:-2]]
2. Deploy it."""

EDITS = """\
- Step 1: Install FastAPI as well, with `pip install modal "fastapi[standard]"`.
- Step 13: Say "exactly four turns" instead of "at least four turns"."""


@pytest.mark.parametrize("written", [CODE, BARE_CODE])
def test_brackets_of_code_reach_the_critic_and_the_user(written: str) -> None:
    """`[run["id"]]` had lost its `]]`, taken for a mark of doubt; the critic then asked to mend it."""
    model = ScriptedModel(cook() | {"revise": [written]})
    with small_memory() as memory:
        result = build_aag(model=model, memory=memory).invoke(GOAL, context=PAPER)
    code = [line for line in written.splitlines() if line.startswith("    ")]
    shown = model.calls[-1].prompt.split("<steps>")[1]
    for line in code:
        assert line.strip() in shown
        assert line.strip() in result["answer"]
    assert "[[Write" not in result["answer"]
    assert "[[in" not in result["answer"]


def test_blank_lines_within_a_fence_stay() -> None:
    with small_memory() as memory:
        graph = build_aag(model=ScriptedModel([CODE]), memory=memory)
        result = graph.invoke(GOAL, context=AagContext(paper=True, questions=False, critic=False))
    assert "request.json()\n\n" in result["steps"][1]
    assert result["answer"].count("```") == 2


def test_edits_keep_the_number_of_the_step_that_they_are_about() -> None:
    """ "Step 13:" had been taken for a bullet, so the edit node had to guess the place."""
    model = ScriptedModel(cook(1) | {"critic": [EDITS, CONTENT]})
    with small_memory() as memory:
        result = build_aag(model=model, memory=memory).invoke(GOAL, context=PAPER)
    assert result["critiques"][0]["edits"] == [line.removeprefix("- ") for line in EDITS.splitlines()]
    assert EDITS in next(call.prompt for call in model.calls if call.node == "edit")


def test_an_outline_before_the_questions_is_no_question() -> None:
    reply = (
        "OUTLINE\n1. Install\n2. Is it there?\n\n**QUESTIONS**\n1. How is X set up?\n2. How does one call Y?"
    )
    model = ScriptedModel(cook() | {"to_query": [reply]})
    with small_memory() as memory:
        result = build_aag(model=model, memory=memory).invoke(GOAL, context=PAPER)
    assert [asked["question"] for asked in result["questions"]] == [
        "How is X set up?",
        "How does one call Y?",
    ]


def test_what_is_not_known_is_no_note() -> None:
    replies = ["The procedures do not say.", "Feed it daily.", "The procedures do not say.", "Let it cool."]
    model = ScriptedModel(cook() | {"answer": replies})
    with small_memory() as memory:
        build_aag(model=model, memory=memory).invoke(GOAL, context=PAPER)
    revise = next(call.prompt for call in model.calls if call.node == "revise")
    assert "do not say" not in revise
    assert revise.count("\nA: ") == 2


BAND = (
    "The singer was the frontman of the rock band Creed, formed in Tallahassee, Florida, in 1994.\n\n"
    "Creed announced its disbandment in June 2004, so the year in which it disbanded is 2004."
)
CORRECTED = "The singer was the frontman of the rock band Creed, formed in Tallahassee, Florida, in 1993."


def test_a_revision_of_one_word_keeps_all_others_and_is_shown() -> None:
    """The query asked for several things at once, with commas; the text came back whole, one year corrected."""
    model = ScriptedModel(
        {
            "draft": [BAND],
            "to_query": [
                "Singer lead vocalist of rock band Creed, place and year the band formed",
                "Creed rock band year disbanded, year of Full Circle reunion, 2012 hiatus or breakup",
            ],
            "revise": [CORRECTED, "NO CHANGE"],
        }
    )
    shelf = Shelf()
    result = build_rat(model=model, retriever=shelf).invoke(QUESTION, context=RatContext(finish="thoughts"))
    assert result["answer"] == BAND.replace("1994", "1993")
    assert [revision["changed"] for revision in result["revisions"]] == [True, False]
    assert [query for query, _ in shelf.queries] == [revision["query"] for revision in result["revisions"]]
    assert shelf.queries[0][0].endswith("band Creed, place and year the band formed")


PATCH = """\
0+: Bring LangGraph up to date with `pip install -U langgraph`; older interrupts have no `id`.
2: Show each pending interrupt to the human, as in step 3, and keep the decisions under its `id`.
   ```python
   decisions = {i.id: ask_human(i.value) for i in pending}
   if len(pending) == 1:
       decision = decisions[pending[0].id]
   ```
3: If exactly one interrupt is pending, resume the same thread with its decision.
   ```python
   result = agent.invoke(Command(resume=decision), config)
   ```"""


def test_a_patch_with_blocks_of_code_in_its_steps() -> None:
    steps = ["Wrap the tools.", "Show the interrupts.", "Resume.", "Test it."]
    patch = read_patch(PATCH, steps)
    assert isinstance(patch, Patch)
    first, second, third, fourth, last = patch.apply(steps)
    assert (first[:24], second, last) == ("Bring LangGraph up to da", "Wrap the tools.", "Test it.")
    assert "as in step 4" in third
    assert "       decision = decisions" in third or "    decision = decisions" in third
    assert fourth.endswith("```")


WORDS = """\
2~: A UUID derived from the inputs does this.
=> A UUID derived from the inputs does this; a `row_id` that the export already holds is kept.
2~:     text = json.dumps(row["inputs"], sort_keys=True)
    row["row_id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, text))
=>     if not row.get("row_id"):
        text = json.dumps(row["inputs"], sort_keys=True)
        row["row_id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, text))
3~:  Delete the trial dataset afterwards.
=>"""


def test_a_patch_of_words_and_lines_of_code_inside_steps() -> None:
    steps = [
        "Export the rows.",
        "Give each row an ID. A UUID derived from the inputs does this.\n```python\nfor row in rows:\n"
        '    text = json.dumps(row["inputs"], sort_keys=True)\n'
        '    row["row_id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, text))\n```',
        "Upload three rows for a trial. Delete the trial dataset afterwards.",
    ]
    patch = read_patch(WORDS, steps)
    assert isinstance(patch, Patch)
    assert patch.problems == ()
    assert patch.apply(steps) == [
        "Export the rows.",
        "Give each row an ID. A UUID derived from the inputs does this; a `row_id` that the export already holds is kept.\n"
        '```python\nfor row in rows:\n    if not row.get("row_id"):\n'
        '        text = json.dumps(row["inputs"], sort_keys=True)\n'
        '        row["row_id"] = str(uuid.uuid5(uuid.NAMESPACE_URL, text))\n```',
        "Upload three rows for a trial.",
    ]


OUTLINE = """\
long
- Deployment options for LangGraph applications on LangGraph Platform
- LangGraph Cloud SaaS deployment: who runs control plane and data plane
- LangGraph self-hosted data plane (hybrid): control plane and data plane hosting"""


def test_an_outline() -> None:
    state = {"question": "Which ways are there to deploy?", "answer_style": "auto", "evidence": []}
    read = outline.read(OUTLINE, state, RpgContext())
    assert read["answer_style"] == "long"
    assert read["outline"] == [line.removeprefix("- ") for line in OUTLINE.splitlines()[1:]]


def test_a_check_that_names_numbers_alone() -> None:
    sentences = [{"text": f"Sentence {place}.", "evidence": ["a"], "supported": True} for place in range(20)]
    state = {"question": "?", "sentences": sentences, "segments": [], "evidence": []}
    assert check.read("1\n17", state, RpgContext(check="flag"))["verdicts"] == {"1": "", "17": ""}


def test_a_title_in_quotation_marks_at_the_end_of_a_topic_keeps_both() -> None:
    """`owner of the company that released "Love Incredible"` had lost its last mark."""
    reply = (
        'long\n- owner of the company that released "Love Incredible"\n- "first broadcasts of both episodes"'
    )
    state = {"question": "?", "answer_style": "auto", "evidence": []}
    assert outline.read(reply, state, RpgContext())["outline"] == [
        'owner of the company that released "Love Incredible"',
        "first broadcasts of both episodes",
    ]
