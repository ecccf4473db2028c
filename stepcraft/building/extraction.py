"""What a model finds in one document, as a record: with its usage, its cost and its trace, also where it fails."""

import asyncio
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.uuid import uuid7
from langgraph.errors import GraphBubbleUp

from stepcraft.building.directory import Record
from stepcraft.building.documents import Document, Listed
from stepcraft.building.extract import MODEL_NODES, build_extract, headings_in
from stepcraft.building.settings import ExtractContext
from stepcraft.errors import BadInput, ModelFailure, ModelUnknown, RunStopped
from stepcraft.evals.local import Calls
from stepcraft.evals.prices import Prices
from stepcraft.llm.resources import BuilderOptions, Resources
from stepcraft.llm.usage import Usage, no_usage
from stepcraft.models.resolve import aresolve_model, model_name
from stepcraft.secrets import without_secrets

METHOD = "extract"
"""The node that reads documents, and the name of its graph."""

_PASSING = {"model", "node_models", "max_calls", "deadline_s"}
"""Settings that change nothing of what is found, and the models, which count by their names."""
_REFUSALS = 10
"""So many refusals in a row end a build in which a model has answered before."""


class Extraction:
    """Asks a model for the procedures of documents.

    Args:
        settings: The settings of the extraction.
        prices: What tokens cost.
        model: The model of all nodes.
        node_models: Another model for some nodes.
        callbacks: The callbacks of every run.
        turns: Limits the calls at the same time, of all that share it.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """

    def __init__(
        self,
        settings: ExtractContext,
        prices: Prices,
        *,
        model: BaseChatModel | str | None,
        node_models: Mapping[str, BaseChatModel | str] | None = None,
        callbacks: Sequence[BaseCallbackHandler] = (),
        turns: asyncio.Semaphore | None = None,
    ) -> None:
        self.settings = settings
        self.prices = prices
        models: BuilderOptions = {"node_models": node_models or {}}
        if model is not None:
            models["model"] = model
        self._graph = build_extract(turns, **models)
        self._resources = Resources.of(METHOD, ExtractContext, models)
        self._callbacks = callbacks
        self._refusals = 0
        self.answered = False
        """Whether a model has answered, now or in an earlier build with these settings."""
        self.model = self.model_of(METHOD)
        """The name of the model that reads the documents."""
        self.identity = self._identity()
        """Identifies the models and the settings."""

    def model_of(self, node: str) -> str:
        """The name of the model that a node asks."""
        choice = self._choice(node)
        return choice if isinstance(choice, str) else model_name(choice)

    async def check_models(self) -> None:
        """Make the models ready.

        Raises:
            ModelUnknown: There is no such model.
        """
        for node in MODEL_NODES:
            await aresolve_model(self._choice(node))

    def cost(self, usage: Mapping[str, Any]) -> float | None:
        """What a usage costs in USD; None where a price is unknown."""
        return self.prices.cost(usage, lambda node: self.model_of(node or METHOD))

    def begun(self, listed: Listed) -> Record:
        """The record of a document of which nothing is known yet."""
        return Record(
            source=listed.source,
            title="",
            digest="",
            settings=self.identity,
            spec=listed.spec,
            model=self.model,
            began=datetime.now(UTC).isoformat(timespec="seconds"),
            trace="",
            error="",
            procedures=[],
            rejected=[],
            warnings=[],
            usage=no_usage(),
            seconds=0.0,
            usd=0.0,
            placed=None,
            stale=[],
        )

    async def run(self, document: Document, listed: Listed) -> Record:
        """Have a model read a document; where that fails, the record says why.

        Args:
            document: The document.
            listed: How it is listed.

        Raises:
            ModelUnknown: There is no such model.
            RunStopped: The model refuses every call.
        """
        began, record = time.monotonic(), self.begun(listed)
        record["title"], record["digest"] = document.title, document.digest
        if document.note:
            record["warnings"].append(document.note)
        if document.text.strip():
            await self._ask(document, record)
        else:
            record["warnings"].append("it has no text")
        record["seconds"] = round(time.monotonic() - began, 3)
        return record

    async def _ask(self, document: Document, record: Record) -> None:
        calls, trace = Calls(), uuid7()
        record["trace"] = str(trace)
        config: RunnableConfig = {
            "run_id": trace,
            "run_name": without_secrets(document.title or document.source)[:200],
            "callbacks": [calls, *self._callbacks],
            "metadata": {"stepcraft_source": without_secrets(document.source)},
        }
        given: Any = {
            "title": document.title,
            "text": document.text,
            "source": document.source,
            "kind": document.kind,
        }
        if document.headings:
            given["headings"] = headings_in(document.text, document.headings)
        if document.kind == "transcript":
            given |= {"succeeded": document.succeeded, "outcome": document.outcome}
        try:
            result = await self._graph.ainvoke(given, config, context=self.settings)
        except (GraphBubbleUp, ModelUnknown):
            raise
        except Exception as failure:
            reason = (
                str(failure)
                if isinstance(failure, BadInput)
                else f"{type(failure).__name__}: {failure}"
            )
            record["error"] = without_secrets(reason)[:1000]
            record["usage"] = Usage(**calls.usage())  # type: ignore[typeddict-item]
            self._check_refusals(failure)
        else:
            if result["usage"]["calls"]:
                self._refusals, self.answered = 0, True
            record["procedures"], record["rejected"] = result["procedures"], result["rejected"]
            record["usage"] = result["usage"]
            record["warnings"] += result["warnings"]
            if unread := result["unread"]:
                parts = "1 part" if unread == 1 else f"{unread} parts"
                why = f": {result['warnings'][-1]}" if result["warnings"] else ""
                record["error"] = f"{parts} of it could not be read{why}"
        finally:
            record["usd"] = self.cost(record["usage"])

    def _check_refusals(self, failure: Exception) -> None:
        """Raise RunStopped where the model refuses every call; one document may be one that it refuses."""
        if not isinstance(failure, ModelFailure):
            return
        self._refusals += 1
        if not self.answered or self._refusals >= _REFUSALS:
            raise RunStopped(f"the build was stopped: {failure}") from failure

    def _choice(self, node: str) -> BaseChatModel | str:
        return self._resources.choice(node, self.settings)

    def _identity(self) -> str:
        chosen = {
            "models": {node: self.model_of(node) for node in MODEL_NODES},
            "settings": self.settings.model_dump(exclude=_PASSING, exclude_defaults=True),
        }
        text = json.dumps(chosen, sort_keys=True)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
