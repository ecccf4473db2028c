"""Running the samples of an evaluation in this process."""

import json
from collections.abc import Callable, Mapping, Sequence
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
from stepcraft.evals.samples import Sample
from stepcraft.graphs.compile import Graph, resources_of
from stepcraft.graphs.registry import outputs_of
from stepcraft.llm.budget import NodeUsage
from stepcraft.llm.resources import VERSION
from stepcraft.models.resolve import model_name

VERSIONS = {
    "stepcraft": VERSION,
    **{name: version(name) for name in ("langgraph", "langchain-core")},
}
"""The versions of what runs a method."""


class Local:
    """Runs samples in this process.

    Args:
        methods: The methods.
        graph_of: What makes the graph of a method of this package.
        callbacks: The callbacks of every run, such as a tracer.
    """

    def __init__(
        self,
        methods: Mapping[str, AnyMethod],
        graph_of: Callable[[Method], Graph],
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> None:
        self._callbacks = callbacks
        self._graphs = {
            name: method.graph if isinstance(method, OwnMethod) else graph_of(method)
            for name, method in methods.items()
        }
        self._outputs = {
            name: outputs_of(method.graph) for name, method in methods.items() if isinstance(method, Method)
        }

    def writer(self, method: AnyMethod, node: str = "answer") -> str:
        """The name of the model that a node asks; "" for a graph that is not of this package."""
        try:
            models = resources_of(self._graphs[method.name]).models
        except KeyError:
            return ""
        if isinstance(method, OwnMethod):
            return ""
        choice = models.choice(node, method.context())
        return choice if isinstance(choice, str) else model_name(choice)

    async def run(self, method: AnyMethod, sample: Sample, outcome: Outcome) -> None:
        """Run a method on a sample and write what came of it into the outcome, its usage also where it fails.

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
                result = await graph.ainvoke(given, config, context=method.context(sample.get("seed")))
                output = {name: result[name] for name in self._outputs[method.name]}
            outcome["output"] = {
                name: part for name, part in output.items() if name not in {"usage", "warnings"}
            }
        finally:
            counted = isinstance(method, Method) and "usage" in result
            outcome["usage"] = result["usage"] if counted else calls.usage()
            outcome["warnings"] = list(result["warnings"]) if counted else []
            outcome["models"] = sorted(calls.models)


class Calls(BaseCallbackHandler):
    """Counts the model calls of a run, those of a run that fails included."""

    run_inline = True

    def __init__(self) -> None:
        self.models: set[str] = set()
        self._used: NodeUsage = {"calls": 0, "input_tokens": 0, "output_tokens": 0}
        self._lock = Lock()

    @property
    def ignore_chain(self) -> bool:
        """Steps of a graph are no calls."""
        return True

    def usage(self) -> dict[str, Any]:
        """What was used so far."""
        return {**self._used, "nodes": {}}

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the signature of the handler
        messages: list[list[BaseMessage]],  # noqa: ARG002
        *,
        run_id: UUID,  # noqa: ARG002
        **_: Any,  # noqa: ANN401
    ) -> None:
        """Count a call."""
        with self._lock:
            self._used["calls"] += 1

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002, ANN401 - the signature of the handler
        """Count the tokens that the provider reports, and note its name of the model."""
        for generation in (one for several in response.generations for one in several):
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if not isinstance(message, AIMessage):
                continue
            with self._lock:
                if name := message.response_metadata.get("model_name") or message.response_metadata.get(
                    "model"
                ):
                    self.models.add(str(name))
                if used := message.usage_metadata:
                    self._used["input_tokens"] += used["input_tokens"]
                    self._used["output_tokens"] += used["output_tokens"]
                    if cached := used.get("input_token_details", {}).get("cache_read"):
                        before = self._used.get("cached_input_tokens", 0)
                        self._used["cached_input_tokens"] = before + cached
