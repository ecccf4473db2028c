"""ExtractiveModel: the keyless model as a LangChain chat model, and the table of the formats it replies in."""

import re
from collections.abc import Callable, Iterator, Sequence

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from stepcraft.models.keyless import extraction, procedures, prose
from stepcraft.models.keyless.material import Material
from stepcraft.text.sections import parse

NAME = "extractive"

REPLIES: dict[str, Callable[[Material], str]] = {
    "familiarity": procedures.assess,
    "success": procedures.judge,
    "steps": procedures.write_steps,
    "patch": procedures.write_patch,
    "critique": procedures.criticise,
    "questions": procedures.ask,
    "text": procedures.answer,
    "reply": prose.reply,
    "reasoned": prose.reason,
    "thoughts": prose.think,
    "split": prose.split,
    "query": prose.query,
    "revision": prose.revise,
    "paragraphs": prose.revise_paragraphs,
    "answer": prose.finish,
    "article": prose.article,
    "outline": prose.outline,
    "plan": prose.plan,
    "segment": prose.segment,
    "combine": prose.combine,
    "finish": prose.join,
    "check": prose.check,
    "comparison": procedures.compare,
    "procedures": extraction.find_procedures,
    "verdict": extraction.verdict,
}
"""The function that writes each format, by the id of the prompt's `reply_format` section."""

_CHUNK = re.compile(r"\s*+\S+\s*|\s++")


class ExtractiveModel(BaseChatModel):
    """A chat model without a language model: deterministic, offline and fast, and only as good as its evidence.

    It recombines the sentences in the sections of the prompt (`stepcraft.text.sections`) in the format that the
    `reply_format` section names. A prompt of no known format gets the first sentences of its evidence or of its last
    message, so that any messages get a reply. Usage counts words.
    """

    @property
    def _llm_type(self) -> str:
        return NAME

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: object) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"] = "stepcraft"
        params["ls_model_name"] = str(kwargs.get("model") or NAME)
        return params

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - the signature is LangChain's
        **kwargs: object,  # noqa: ARG002
    ) -> ChatResult:
        text = reply_to(messages, stop)
        message = AIMessage(text, usage_metadata=_usage(messages, text), response_metadata=_metadata())
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,  # noqa: ARG002 - the signature is LangChain's
    ) -> Iterator[ChatGenerationChunk]:
        text = reply_to(messages, stop)
        for word in _CHUNK.findall(text):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=word))
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=chunk)
            yield chunk
        last = AIMessageChunk(
            content="",
            usage_metadata=_usage(messages, text),
            response_metadata=_metadata(),
            chunk_position="last",
        )
        yield ChatGenerationChunk(message=last)


def reply_to(messages: Sequence[BaseMessage], stop: Sequence[str] | None = None) -> str:
    """Return the reply to messages, up to the first stop sequence; never empty without one."""
    texts = [str(message.text) for message in messages]
    material = Material(section for text in texts for section in parse(text))
    write = REPLIES.get(material.format)
    reply = write(material) if write else ""
    reply = reply or prose.gist(material, texts[-1] if texts else "")
    ends = [reply.index(end) for end in stop or () if end and end in reply]
    return reply[: min(ends)] if ends else reply


def _usage(messages: Sequence[BaseMessage], text: str) -> UsageMetadata:
    asked, written = sum(len(str(message.text).split()) for message in messages), len(text.split())
    return UsageMetadata(input_tokens=asked, output_tokens=written, total_tokens=asked + written)


def _metadata() -> dict[str, str]:
    return {"model_name": NAME, "model_provider": "stepcraft", "finish_reason": "stop"}
