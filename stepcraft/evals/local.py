"""Running the samples of an evaluation in this process."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from threading import Lock
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7

from stepcraft.evals.directory import Outcome
from stepcraft.evals.methods import AnyMethod, Method, OwnMethod
from stepcraft.evals.prices import add_tokens, no_tokens
from stepcraft.evals.samples import Sample
from stepcraft.llm.resources import VERSION

VERSIONS = {
    "stepcraft": VERSION,
    **{name: version(name) for name in ("langgraph", "langchain-core")},
}
"""The versions of what runs a method."""


class Local:
    """Runs samples in this process.

    Args:
        methods: The methods.
        callbacks: The callbacks of every run, such as a tracer.
    """

    def __init__(
        self,
        methods: Mapping[str, AnyMethod],
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> None:
        self._callbacks = callbacks
        self._graphs = {
            name: method.graph if isinstance(method, OwnMethod) else method.compiled()
            for name, method in methods.items()
        }

    def writer(self, method: AnyMethod, node: str = "answer") -> str:
        """Return the name of the model that a node asks; "" for a graph of one's own."""
        return "" if isinstance(method, OwnMethod) else method.model(node)

    async def run(self, method: AnyMethod, sample: Sample, outcome: Outcome) -> None:
        """Run a method on a sample and write the outcome, its usage also where it fails.

        Raises:
            Exception: The graph failed, or its output is no JSON.
        """
        calls, trace = Calls(), uuid7()
        config: RunnableConfig = {
            "run_id": trace,
            "callbacks": [calls, *self._callbacks],
            "metadata": {"stepcraft_sample": sample["id"]},
        }
        outcome["trace"], outcome["versions"] = str(trace), VERSIONS
        graph = self._graphs[method.name]
        result: Any = {}
        try:
            if isinstance(method, OwnMethod):
                result = await graph.ainvoke(method.given(sample), config, context=method.context)
                output = dict(method.output(result))
                json.dumps(output)
                result = result if isinstance(result, Mapping) else {}
            else:
                given = method.given(sample["question"], sample.get("resources", ""))
                result = await graph.ainvoke(
                    given, config, context=method.context(sample.get("seed"))
                )
                output = {name: result[name] for name in graph.output_channels if name in result}
                output.pop("messages", None)
            outcome["output"] = {
                name: part for name, part in output.items() if name not in {"usage", "warnings"}
            }
        finally:
            outcome["usage"] = calls.usage()
            outcome["warnings"] = (
                list(result.get("warnings", ())) if isinstance(method, Method) else []
            )
            outcome["models"] = sorted(calls.models)


class Calls(BaseCallbackHandler):
    """Counts the model calls of a run by its nodes, those of a run that fails included."""

    run_inline = True

    def __init__(self) -> None:
        self.models: set[str] = set()
        self._nodes: dict[str, dict[str, int]] = {}
        self._node_of: dict[UUID, str] = {}
        self._lock = Lock()

    @property
    def ignore_chain(self) -> bool:
        """Steps of a graph are no calls."""
        return True

    def usage(self) -> dict[str, Any]:
        """Return what was used so far, in total and by node."""
        total = no_tokens()
        for used in self._nodes.values():
            for name, count in used.items():
                total[name] = total.get(name, 0) + count
        return {**total, "nodes": {name: dict(used) for name, used in self._nodes.items()}}

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the signature of the handler
        messages: list[list[BaseMessage]],  # noqa: ARG002
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **_: Any,  # noqa: ANN401
    ) -> None:
        """Count a call, for the node of the graph itself where a subgraph makes it."""
        node = str((metadata or {}).get("langgraph_checkpoint_ns", "")).partition(":")[0]
        with self._lock:
            self._node_of[run_id] = node
            self._nodes.setdefault(node, no_tokens())["calls"] += 1

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:  # noqa: ANN401 - the signature of the handler
        """Count the tokens that the provider reports, and note its name of the model."""
        for generation in (each for several in response.generations for each in several):
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if not isinstance(message, AIMessage):
                continue
            metadata = message.response_metadata
            with self._lock:
                if name := metadata.get("model_name") or metadata.get("model"):
                    self.models.add(str(name))
                add_tokens(self._nodes[self._node_of[run_id]], message)
