"""Put the checked text into the requested form (RAT §3.2)."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rat import RatContext
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.text.sections import Section

_ARTICLE = "An article with a title, subheadings and running text, and nothing else."
_CODE = "The complete program in {language} in one fenced block, and nothing else."


def ask_for_form(state: Any, settings: RatContext) -> list[BaseMessage]:
    """Show the question and the checked text."""
    code = settings.finish == "code"
    form = _CODE.format(language=settings.language) if code else _ARTICLE
    sections = [*asked(state["task"]), Section("text", "", state["answer"])]
    return prompt(settings.finish_instructions, form, settings.finish, sections)


def read_answer(reply: str, state: Any, settings: RatContext) -> dict[str, Any]:
    """Return the answer, or the checked text if the reply was cut off; code keeps its fence."""
    if state.get("cut_off"):
        warning = "finish: its reply is incomplete, so the answer is the checked text"
        return {**checked_text_as_it_is(state), "warnings": [warning]}
    return {"answer": reply if settings.finish == "code" else answer_text(reply)}


def checked_text_as_it_is(state: Any, _reason: str = "") -> dict[str, Any]:
    """Return the checked text unchanged."""
    return {"answer": state["answer"]}


def no_form_asked_for(state: Any, settings: RatContext) -> dict[str, Any] | None:
    """Skip the model if the checked text itself is wanted."""
    return checked_text_as_it_is(state) if settings.finish == "text" else None


def finishing_calls(settings: Any) -> int:
    """Return the number of calls that earlier nodes must reserve for `finish`."""
    return int(getattr(settings, "finish", "text") != "text")


finish = ModelNode(
    "finish",
    ask_for_form,
    read_answer,
    checked_text_as_it_is,
    skip=no_form_asked_for,
    started="Writing the answer from the checked text.",
    is_last=True,
)
