"""What a model finds in one document, as a record; where it fails, the record says why."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from stepcraft.building.documents import Document, Listed
from stepcraft.building.extract import MODEL_NODES, build_extract
from stepcraft.building.ledger import Record
from stepcraft.building.settings import ExtractContext
from stepcraft.errors import ModelFailure, ModelUnknown
from stepcraft.llm.resources import BuilderOptions, Resources
from stepcraft.models.resolve import aresolve_model, model_name
from stepcraft.progress import counted
from stepcraft.secrets import without_secrets

_PASSING = {"model", "node_models", "max_calls", "deadline_s"}
"""Settings that change nothing of what is found, and the models, which count by their names."""


class Reader:
    """Asks a model for the procedures of documents.

    Args:
        settings: The settings of the extraction.
        models: The models of its nodes.
        callbacks: The callbacks of every run.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """

    def __init__(
        self,
        settings: ExtractContext,
        models: BuilderOptions,
        callbacks: Sequence[BaseCallbackHandler] = (),
    ) -> None:
        self.settings = settings
        self._graph = build_extract(**models)
        self._callbacks = callbacks
        resources = Resources.of("extract", ExtractContext, models)
        self._models = {node: resources.choice(node, settings) for node in MODEL_NODES}
        names: Mapping[str, str] = {
            node: choice if isinstance(choice, str) else model_name(choice)
            for node, choice in self._models.items()
        }
        self.model = names["extract"]
        """The name of the model that reads the documents."""
        chosen = settings.model_dump(exclude=_PASSING, exclude_defaults=True)
        text = json.dumps([names, chosen], sort_keys=True)
        self.identity = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        """Identifies the models and the settings."""

    async def check_models(self) -> None:
        """Make the models ready.

        Raises:
            ModelUnknown: There is no such model.
        """
        for choice in self._models.values():
            await aresolve_model(choice)

    async def read(self, listed: Listed, document: Document, max_concurrency: int) -> Record:
        """Have a model read a document.

        Args:
            listed: How it is listed.
            document: The document.
            max_concurrency: The most of its parts that are read at the same time.

        Raises:
            ModelUnknown: There is no such model.
            ModelFailure: The model refuses every call.
        """
        record = Record(
            listed.source,
            listed.spec,
            listed.stamp,
            document.title,
            document.digest,
            self.identity,
            self.model,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            warnings=[document.note] if document.note else [],
        )
        config: RunnableConfig = {
            "run_name": without_secrets(document.title or document.source)[:200],
            "callbacks": [*self._callbacks],
            "metadata": {"stepcraft_source": without_secrets(document.source)},
            "max_concurrency": max_concurrency,
        }
        names = ("title", "text", "source", "kind", "succeeded", "outcome")
        values: Any = {name: getattr(document, name) for name in names}
        try:
            result = await self._graph.ainvoke(values, config, context=self.settings)
        except (GraphBubbleUp, ModelUnknown, ModelFailure):
            raise
        except Exception as error:
            record.error = without_secrets(f"{type(error).__name__}: {error}")[:1000]
            return record
        record.procedures, record.rejected = result["procedures"], result["rejected"]
        record.usage, record.warnings = result["usage"], record.warnings + result["warnings"]
        if result["unread"]:
            parts = counted(result["unread"], "part")
            record.error = f"{parts} of it could not be read: {result['warnings'][-1]}"
        return record
