"""Write the answer from the revised thoughts, in the form that is asked for (RAT §3.2, §4)."""

from dataclasses import replace

from stepcraft.llm.node import Update
from stepcraft.llm.prompt import prompt
from stepcraft.nodes.finish import checked_text_as_it_is, finish
from stepcraft_papers.contexts import RatPaperContext
from stepcraft_papers.nodes.state import Prompt, RatPaperState, sections

_FORMATS = {
    "answer": """\
The answer: first what was asked for, in one sentence; then, if the question needs it, what supports
it, in running text. No heading, no preamble.""",
    "article": """\
The text as an article in markdown: a title (# ...), subheadings (## ...) where the subject changes,
and under them the text's own paragraphs in their order.""",
    "code": """\
The complete program in {language}, in one fenced code block, and nothing else. It runs as it
stands.""",
}


def ask_for_answer(state: RatPaperState, settings: RatPaperContext) -> Prompt:
    """Show the question and the revised thoughts."""
    form = _FORMATS[settings.finish].format(language=settings.language)
    kind = "combine" if settings.finish == "answer" else settings.finish
    return prompt(
        settings.finish_instructions,
        form,
        kind,
        sections(question=state["task"], text=state["answer"]),
    )


def only_the_thoughts(state: RatPaperState, settings: RatPaperContext) -> Update | None:
    """Skip the model if the thoughts themselves are the answer."""
    return checked_text_as_it_is(state) if settings.finish == "thoughts" else None


finish_thoughts = replace(finish, ask=ask_for_answer, skip=only_the_thoughts)
