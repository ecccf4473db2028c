"""The first node of the chat: finds the message to answer, checks the settings, resets what an earlier message left."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from stepcraft.contexts.chat import ChatContext
from stepcraft.llm.resources import GraphResources
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import EXTRACTIVE
from stepcraft.nodes.begin import KEYLESS, BeginNode, checked_text
from stepcraft.nodes.chat.conversation import last_question, most_tokens, said_before
from stepcraft.nodes.chat.method import Method, candidates


class ChatBeginNode(BeginNode):
    """Takes the question from the conversation; the rest is as in every graph.

    The models and sources of the method are opened when its own graph begins. What its run may name is checked here.

    Args:
        methods: The methods by name.
        resources: What the chat was built with.
    """

    def __init__(self, methods: Mapping[str, Method], resources: GraphResources) -> None:
        nodes = dict.fromkeys(node for method in methods.values() for node in method.model_nodes)
        super().__init__(
            ["route"],
            self._initial_state,
            resources,
            searches=lambda _input, _context: False,
            other_nodes=list(nodes),
        )
        self.methods = methods
        self.description = "Find the message to answer, and check the settings."

    def _begin(self, given: Any, config: RunnableConfig | None) -> dict[str, Any]:  # noqa: ANN401 - the graph's input
        messages: list[BaseMessage] = list(given.get("messages") or [])
        added: list[BaseMessage] = []
        if given.get("question"):
            added = [HumanMessage(checked_text("question", given["question"]))]
        text, notes = last_question([*messages, *added])
        update = super()._begin({"question": text, "messages": [*messages, *added], "notes": notes}, config)
        update["asked"] = update.pop("question")
        # Who writes the answer, its method says itself.
        update["warnings"] = Overwrite([one for one in update["warnings"].value if one != KEYLESS])
        return {**update, "messages": added}

    def _initial_state(self, given: Mapping[str, Any], context: ChatContext) -> dict[str, Any]:
        candidates(self.methods, context)
        choice = self.resources.models.choice("route", context)
        has_model = choice != EXTRACTIVE and not isinstance(choice, ExtractiveModel)
        left_out = said_before(given["messages"], most_tokens(context))[1] if has_model else 0
        cut = f"the {left_out:,} oldest messages of the conversation were left out to keep it short"
        return {
            "answer": "",
            "evidence": [],
            "method": "",
            "reason": "",
            "has_model": has_model,
            "warnings": [*given["notes"], *([cut] if left_out else [])],
        }
