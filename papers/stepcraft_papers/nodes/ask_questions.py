"""Ask the questions to look up before the draft is updated (AAG §3.3, query generation)."""

from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import prompt
from stepcraft.text.lists import read_lines
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.nodes.state import AagPaperState, Prompt, sections

_FORMAT = """\
A line OUTLINE, and under it an outline of the steps that the procedure will need, a few words each.
Then a line QUESTIONS, and under it exactly {count} questions, each on one line that begins with its
number and ends in a question mark. Nothing after the last question."""


def ask_for_questions(state: AagPaperState, settings: AagPaperContext) -> Prompt:
    """Show the goal and the resources."""
    form = _FORMAT.format(count=settings.n_questions)
    return prompt(
        settings.to_query_instructions,
        form,
        "questions",
        sections(question=state["task"], resources=state["task_resources"]),
    )


def read_questions(reply: str, _state: AagPaperState, settings: AagPaperContext) -> Update:
    """Return the first `n_questions` lines that end in a question mark.

    Raises:
        UnreadableReply: There are no questions in the reply.
    """
    lines = [line for line in read_lines(reply) if line.endswith(("?", "\uff1f"))]
    if not lines:
        raise UnreadableReply("there was no line in it that ends in a question mark.")
    return {"queries": lines[: settings.n_questions]}


ask_questions = ModelNode(
    "to_query",
    ask_for_questions,
    read_questions,
    lambda state, _reason: {"queries": [state["task"]]},
    keep_back=lambda _settings: 1,
    started="Asking what has to be looked up.",
)
