"""The model calls in a run: their usage and, on request, their prompts and replies."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult
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
    prompt: str
    """The messages, each with its role."""
    reply: str
    error: str
    tokens: dict[str, int]
    """The provider's counts: `input_tokens`, `output_tokens`, `cached_input_tokens`."""
    seconds: float
    from_cache: bool
    """Whether the reply came from LangChain's cache, and so cost nothing."""


class CallRecorder(BaseCallbackHandler):
    """Tracks the model calls in a run, including runs that fail."""

    run_inline = True

    def __init__(self) -> None:
        # Threads in one run add their own calls, which a dict supports without a lock.
        self._calls: dict[UUID, Call] = {}
        self._began: dict[UUID, float] = {}

    def calls(self) -> list[Call]:
        """Return the calls in the order in which they began."""
        return list(self._calls.values())

    def usage(self) -> dict[str, Any]:
        """Return the total number of calls and tokens, and the same per model under `models`.

        Replies without token counts are also counted under `uncounted`, if there are any. Replies
        from a cache cost nothing and are counted only under `from_cache`.
        """
        models: dict[str, Counter[str]] = {}
        total, calls = Counter(no_tokens()), self.calls()
        paid = [call for call in calls if not call["from_cache"]]
        for call in paid:
            for counts in (total, models.setdefault(call["model"], Counter(no_tokens()))):
                counts.update(calls=1, **call["tokens"])
                if not call["error"] and not total_tokens(call["tokens"]):
                    counts["uncounted"] += 1
        return {**total, "models": models, "from_cache": len(calls) - len(paid)}

    # LangChain also calls this for chat models, with their messages as one string.
    def on_llm_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the signature of the handler
        prompts: list[str],
        *,
        run_id: UUID,
        metadata: Mapping[str, Any] | None = None,
        **_: Any,  # noqa: ANN401
    ) -> None:
        """Record the prompt."""
        about = metadata or {}
        self._calls[run_id] = Call(
            node=str(about.get("langgraph_checkpoint_ns", "")).partition(":")[0],
            model=str(about.get("ls_model_name") or ""),
            prompt=without_secrets(prompts[0]),
            reply="",
            error="it was cancelled",  # which no callback reports
            tokens={},
            seconds=0.0,
            from_cache=False,
        )
        self._began[run_id] = time.monotonic()

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:  # noqa: ANN401
        """Record the reply, the tokens and the provider's name for the model."""
        generation = response.generations[0][0]
        message = getattr(generation, "message", None)
        call, reply = self._ended(run_id, ""), generation.text
        if isinstance(message, AIMessage):
            about, tools = message.response_metadata, message.tool_calls
            call["model"] = str(about.get("model_name") or about.get("model") or call["model"])
            reply += "".join(f"\n[{tool['name']} {tool['args']}]" for tool in tools)
            call["tokens"] = token_counts(message)
            # LangChain marks a reply from its cache like this.
            usage: Mapping[str, Any] = message.usage_metadata or {}
            call["from_cache"] = usage.get("total_cost") == 0
        call["reply"] = without_secrets(reply)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ANN401
        """Record why there is no reply."""
        self._ended(run_id, reason_of(error))

    def _ended(self, run_id: UUID, error: str) -> Call:
        call = self._calls[run_id]
        call["error"] = error
        call["seconds"] = round(time.monotonic() - self._began[run_id], 3)
        return call


def reason_of(failure: BaseException) -> str:
    """Return a short description of a failure, without secrets."""
    return without_secrets(f"{type(failure).__name__}: {failure}")[:1000]


def no_tokens() -> dict[str, Any]:
    """Return the usage when there are no calls."""
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def total_tokens(usage: Mapping[str, Any]) -> int:
    """Return the number of tokens read and written."""
    return int(usage.get("input_tokens", 0) + usage.get("output_tokens", 0))
