"""Condense the segments into a short final answer to a multihop question (RPG §3.2)."""

from stepcraft.errors import NoAnswer
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import answer_text
from stepcraft_papers.contexts import RpgPaperContext
from stepcraft_papers.nodes.state import Prompt, RpgPaperState, sections

_FORMAT = """\
The final answer alone, in as few words as it takes: the name, the date, the number, the thing, or
yes or no. No sentence around it, no explanation."""


def ask_to_combine(state: RpgPaperState, settings: RpgPaperContext) -> Prompt:
    """Show the question and the segments."""
    return prompt(
        settings.combine_instructions,
        _FORMAT,
        "combine",
        sections(question=state["task"], text=state["answer"]),
    )


def segments_are_the_answer(state: RpgPaperState, _settings: RpgPaperContext) -> Update | None:
    """Skip the model if the joined segments are the answer.

    Raises:
        NoAnswer: No segment was written.
    """
    if not state["segments"]:
        raise NoAnswer(f"no segment was written: {'; '.join(state['warnings'][-1:])}")
    combined = state["form"] == "multihop" and state["plans"]
    return None if combined else {"answer": state["answer"]}


combine_segments = ModelNode(
    "combine",
    ask_to_combine,
    lambda reply, _state, _settings: {"answer": answer_text(reply)},
    lambda state, _reason: {"answer": state["answer"]},
    skip=segments_are_the_answer,
    started="Writing the answer from the segments.",
    is_last=True,
)
