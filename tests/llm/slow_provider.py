"""A provider whose models take as long to build as a test wants, in place of a package that LangChain knows."""

from threading import Event
from typing import Any

from tests.scripted import ScriptedModel

building = Event()
"""Set as soon as a model is being built."""
ready = Event()
"""Models are built only when it is set."""

PACKAGE = "from tests.llm.slow_provider import SlowModel as ChatGroq\n"
"""The package `langchain_groq`, for `init_chat_model("groq:…")`."""


class SlowModel(ScriptedModel):
    def __init__(self, **_: Any) -> None:
        building.set()
        ready.wait(30)
        super().__init__(lambda _node, _prompt: "Built.")
