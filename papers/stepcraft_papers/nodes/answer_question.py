"""Answer one question from the procedures that were found for it (AAG §3.3, answer generation)."""

from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import passages, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.text.sections import Section
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.markers import without_markers
from stepcraft_papers.nodes.state import AagPaperState, Answered, Prompt, passages_found, sections

NOT_SAID = "The procedures do not say."
"""The reply to a question that the passages do not answer."""

_FORMAT = f"""\
Plain sentences, without a heading or a list. If the passages answer no part of the question:
{NOT_SAID}"""


def ask_for_answer(state: AagPaperState, settings: AagPaperContext) -> Prompt:
    """Show the question and the procedures that were found for it."""
    [query] = state["queries"]
    shown = passages(state["evidence"], passages_found(state))
    return prompt(
        settings.answer_instructions, _FORMAT, "notes", [*sections(question=query), *shown]
    )


def read_answer(reply: str, state: AagPaperState, _settings: AagPaperContext) -> Update:
    """Return the answer."""
    text = without_markers(answer_text(reply))
    return _answered(state, "" if NOT_SAID in text else text)


def _answered(state: AagPaperState, text: str) -> Update:
    ids = [state["evidence"][number - 1]["id"] for number in passages_found(state)]
    [query] = state["queries"]
    return {"questions": [Answered(question=query, answer=text, evidence=ids)]}


def looked_up(state: AagPaperState, settings: AagPaperContext) -> list[Section]:
    """Return the answers as "Q: …" and "A: …" lines, or the procedures themselves (NOAG)."""
    if not settings.answers:
        return passages(state["evidence"], passages_found(state))
    pairs = (
        f"Q: {each['question']}\nA: {each['answer']}"
        for each in state["questions"]
        if each["answer"]
    )
    return sections(notes="\n".join(pairs))


answer_question = ModelNode(
    "answer",
    ask_for_answer,
    read_answer,
    lambda state, _reason: _answered(state, ""),
    skip=lambda state, _settings: None if passages_found(state) else _answered(state, ""),
    started="Answering a question from what was found for it.",
)
