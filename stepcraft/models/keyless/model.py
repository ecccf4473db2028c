"""ExtractiveModel: the keyless model as a LangChain chat model."""

import re
from collections.abc import Callable, Iterator, Sequence

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from stepcraft.models.keyless.extraction import compare, find_procedures, judge
from stepcraft.models.keyless.material import Material
from stepcraft.models.keyless.procedures import write_steps
from stepcraft.models.keyless.prose import (
    begin,
    check,
    draft,
    gaps,
    look_up,
    plan,
    reason,
    route,
    write,
    write_article,
    write_code,
    write_shortly,
)

REPLIES: dict[str, Callable[[Material], str]] = {
    "draft": draft,
    "reply": write,
    "reasoned": reason,
    "answer": write,
    "short": write_shortly,
    "plan": plan,
    "gaps": gaps,
    "queries": look_up,
    "changes": check,
    "article": write_article,
    "code": write_code,
    "route": route,
    "steps": write_steps,
    "procedures": find_procedures,
    "success": judge,
    "comparison": compare,
}
"""The function that writes each reply format, by the id of the prompt's `reply_format` section.

The prompts of the papers' graphs are not covered: the keyless replies to them cannot be parsed, so
those steps are skipped.
"""

_CHUNK = re.compile(r"\s*+\S+\s*|\s++")


class ExtractiveModel(BaseChatModel):
    """A rule-based chat model: deterministic, offline, and only as good as its evidence.

    It recombines the sentences in the sections of the prompt (`stepcraft.text.sections`) in the
    format that the `reply_format` section names. For a prompt without a known format, it returns
    the first sentences of the passages or of the last message, so that every prompt gets a reply.
    Token usage is counted in words.
    """

    model: str = "extractive"
    """The model name in traces and in reply metadata."""

    @property
    def _llm_type(self) -> str:
        return self.model

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as BaseChatModel
        **_: object,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._message(messages, stop))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as BaseChatModel
        **_: object,
    ) -> Iterator[ChatGenerationChunk]:
        message = self._message(messages, stop)
        for word in _CHUNK.findall(message.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                usage_metadata=message.usage_metadata,
                response_metadata=message.response_metadata,
                chunk_position="last",
            )
        )

    def _message(self, messages: Sequence[BaseMessage], stop: Sequence[str] | None) -> AIMessage:
        material = Material([message.text for message in messages])
        text = REPLIES.get(material.kind, begin)(material) or begin(material)
        for end in filter(None, stop or ()):
            text = text.partition(end)[0]
        read, written = sum(len(message.text.split()) for message in messages), len(text.split())
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        metadata = {"model_name": self.model, "finish_reason": "stop"}
        return AIMessage(text, usage_metadata=usage, response_metadata=metadata)
