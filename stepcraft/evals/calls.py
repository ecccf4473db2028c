"""The model calls in a run: their usage and, on request, their prompts and replies."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from typing_extensions import TypedDict

from stepcraft.llm.usage import token_counts
from stepcraft.secrets import without_secrets


class Call(TypedDict):
    """A single model call."""

    node: str
    """The node of the outermost graph that made the call, even if it did so through a subgraph."""
    model: str
    """The model's name as given by its provider, or else as requested, or "" if neither is known.
    """
    prompt: list[tuple[str, str]]
    """The role and the text of each message."""
    reply: str
    error: str
    tokens: dict[str, int]
    """The provider's counts: `input_tokens`, `output_tokens`, `cached_input_tokens`."""
    seconds: float
    from_cache: bool
    """Whether the reply came from LangChain's cache, so that it cost nothing."""


class Calls(BaseCallbackHandler):
    """Tracks the model calls in a run, including runs that fail."""

    run_inline = True

    def __init__(self) -> None:
        # Threads in one run add their own calls, which a dict supports without a lock.
        self._calls: dict[UUID, Call] = {}
        self._began: dict[UUID, float] = {}
        """The start time of each call that has not ended."""

    @property
    def ignore_chain(self) -> bool:
        """Ignore chain events, since the steps of a graph are not model calls."""
        return True

    def calls(self) -> list[Call]:
        """Return the calls in the order in which they began."""
        for run_id in list(self._began):  # cancelled, which no callback reports
            self._ended(run_id)["error"] = "it was cancelled"
        return list(self._calls.values())

    def usage(self) -> dict[str, Any]:
        """Return the total number of calls and tokens, and the same per model under `models`.

        Replies from a cache cost nothing and are counted only under `from_cache`.
        """
        models: dict[str, Counter[str]] = {}
        total, reused = Counter(no_tokens()), 0
        for call in self.calls():
            reused += call["from_cache"]
            if not call["from_cache"]:
                for counts in (total, models.setdefault(call["model"], Counter(no_tokens()))):
                    counts.update(calls=1, **call["tokens"])
        used = {**total, "models": {name: dict(counts) for name, counts in models.items()}}
        return {**used, "from_cache": reused} if reused else used

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the signature of the handler
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Record the prompt."""
        self._begin(run_id, messages[0], options)

    def on_llm_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the signature of the handler
        prompts: list[str],
        *,
        run_id: UUID,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Record the prompt of a model that is not a chat model."""
        self._begin(run_id, [HumanMessage(prompts[0])], options)

    def _begin(
        self, run_id: UUID, prompt: Sequence[BaseMessage], options: Mapping[str, Any]
    ) -> None:
        metadata: Mapping[str, Any] = options.get("metadata") or {}
        self._calls[run_id] = Call(
            node=str(metadata.get("langgraph_checkpoint_ns", "")).partition(":")[0],
            model=str(metadata.get("ls_model_name") or ""),
            prompt=[(message.type, without_secrets(message.text)) for message in prompt],
            reply="",
            error="",
            tokens={},
            seconds=0.0,
            from_cache=False,
        )
        self._began[run_id] = time.monotonic()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:  # noqa: ANN401
        """Record the reply, the tokens and the provider's name for the model."""
        generation = response.generations[0][0]
        message = generation.message if isinstance(generation, ChatGeneration) else None
        call = self._ended(run_id)
        call["reply"] = without_secrets(generation.text)
        if isinstance(message, AIMessage):
            about, tools = message.response_metadata, message.tool_calls
            call["model"] = str(about.get("model_name") or about.get("model") or call["model"])
            call["reply"] += "".join(f"\n[{tool['name']} {tool['args']}]" for tool in tools)
            call["tokens"] = token_counts(message)
            # LangChain marks a reply from its cache like this.
            usage: Mapping[str, Any] = message.usage_metadata or {}
            call["from_cache"] = usage.get("total_cost") == 0

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ANN401
        """Record why there is no reply."""
        self._ended(run_id)["error"] = reason_of(error)

    def _ended(self, run_id: UUID) -> Call:
        call = self._calls[run_id]
        began = self._began.pop(run_id, None)
        if began is not None:
            call["seconds"] = round(time.monotonic() - began, 3)
        return call


def reason_of(failure: BaseException) -> str:
    """Return a short description of a failure, without secrets."""
    return without_secrets(f"{type(failure).__name__}: {failure}")[:1000]


def no_tokens() -> dict[str, int]:
    """Return the usage when there are no calls."""
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def total_tokens(usage: Mapping[str, Any]) -> int:
    """Return the number of tokens read and written."""
    return int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))
