"""The keyless model: it puts replies together from the sections that it is given and knows nothing else."""

import re
from collections.abc import Callable, Iterator, Sequence

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from stepcraft.models.keyless import planning, recombine, thinking
from stepcraft.models.keyless.material import Example, Material
from stepcraft.text.lists import numbered, read_bullets, read_steps
from stepcraft.text.sections import NOT_SAID, parse
from stepcraft.text.sentences import sentences

NAME = "extractive"

_COUNT = re.compile(r"\b(\d{1,2})\b")
_CHUNK = re.compile(r"\s*\S+\s*|\s+")


class ExtractiveModel(BaseChatModel):
    """A chat model without a language model: deterministic, offline, quick, and only as good as its evidence.

    It reads the sections of a prompt (`stepcraft.sections`), the form of the reply among them, and recombines the
    sentences that stand in them. It replies to any messages.
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
        text = _until(reply_to(messages), stop)
        message = AIMessage(text, usage_metadata=_usage(messages, text), response_metadata=_metadata())
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,  # noqa: ARG002 - the signature is LangChain's
    ) -> Iterator[ChatGenerationChunk]:
        text = _until(reply_to(messages), stop)
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


def reply_to(messages: Sequence[BaseMessage]) -> str:
    """The reply to some messages, in the form that their `reply_format` section asks for; never empty."""
    texts = [str(message.text) for message in messages]
    sections = [section for text in texts for section in parse(text)]
    form = next((section for section in sections if section.name == "reply_format"), None)
    material = Material([section for section in sections if section.name != "reply_format"])
    make = _REPLIES.get(form.id) if form else None
    reply = make(material, form.text) if make and form else ""
    return reply or _gist(material, texts)


def _write_steps(material: Material, _form: str) -> str:
    goal, resources, steps = material.text("goal"), material.text("resources"), material.steps
    if steps and (edits := read_bullets(material.text("edits"))):
        steps = recombine.edit(goal, steps, edits, material.knowledge)
    elif steps:
        steps = recombine.revise(goal, resources, steps, material.knowledge)
    else:
        notes = Example("", tuple(material.notes))
        steps = recombine.draft(goal, resources, [*material.examples, notes])
    return numbered(steps)


def _criticise(material: Material, _form: str) -> str:
    return recombine.criticise(material.text("resources"), material.steps)


def _ask(material: Material, form: str) -> str:
    count = _COUNT.search(form)
    goal = material.text("goal") or material.text("question")
    asked = recombine.questions(goal, material.text("resources"), int(count[1]) if count else 4)
    return numbered(asked)


def _answer(material: Material, _form: str) -> str:
    return recombine.answer(material.text("question") or material.text("goal"), material.examples)


def _reply(material: Material, _form: str) -> str:
    """From the evidence; without any, no more than what is asked."""
    question, passages = material.text("question"), material.text("evidence")
    if not passages:
        return thinking.thoughts(question)
    told = _answer(material, "")
    return told if told != NOT_SAID else thinking.answer(question, passages)


def _reason(material: Material, form: str) -> str:
    thoughts = _think(material, form)
    return f"{thoughts}\n\nANSWER\n{thoughts.rpartition(chr(10) * 2)[2]}"


def _think(material: Material, _form: str) -> str:
    return thinking.thoughts(material.text("question"))


def _query(material: Material, _form: str) -> str:
    return thinking.query(material.text("question"), material.text("text"), material.text("thought"))


def _revise(material: Material, _form: str) -> str:
    evidence = [section.text for section in material.sections if section.name == "evidence"]
    thought = material.text("thought")
    return thinking.revision(material.text("question"), material.text("text"), thought, evidence)


def _finish(material: Material, _form: str) -> str:
    return thinking.answer(material.text("question"), material.text("text"))


def _article(material: Material, _form: str) -> str:
    return f"# {material.text('question')}\n\n{_finish(material, '')}"


def _plan(material: Material, _form: str) -> str:
    return planning.plan(material.text("question"), read_steps(material.text("plans")), material.text("text"))


def _segment(material: Material, form: str) -> str:
    evidence = [section for section in material.sections if section.name == "evidence"]
    question, plan, text = (material.text(name) for name in ("question", "plan", "text"))
    return planning.segment(question, plan, text, evidence, cites="[1]" in form)


def _combine(material: Material, _form: str) -> str:
    return planning.combined(material.text("question"), material.text("text"))


_REPLIES: dict[str, Callable[[Material, str], str]] = {
    "steps": _write_steps,
    "critique": _criticise,
    "questions": _ask,
    "text": _answer,
    "reply": _reply,
    "reasoned": _reason,
    "thoughts": _think,
    "query": _query,
    "revision": _revise,
    "answer": _finish,
    "article": _article,
    "plan": _plan,
    "segment": _segment,
    "combine": _combine,
}


def _gist(material: Material, texts: Sequence[str]) -> str:
    """The first sentences of the evidence, or of what was said last, for a prompt of no known form."""
    told = material.text("evidence") or (texts[-1] if texts else "")
    return " ".join(sentences(told[:2000])[:3]) or "There is nothing to work with."


def _until(text: str, stop: Sequence[str] | None) -> str:
    """The text before the first stop sequence."""
    ends = [text.index(end) for end in stop or () if end and end in text]
    return text[: min(ends)] if ends else text


def _usage(messages: Sequence[BaseMessage], text: str) -> UsageMetadata:
    asked, told = sum(len(str(message.text).split()) for message in messages), len(text.split())
    return UsageMetadata(input_tokens=asked, output_tokens=told, total_tokens=asked + told)


def _metadata() -> dict[str, str]:
    return {"model_name": NAME, "model_provider": "stepcraft", "finish_reason": "stop"}
