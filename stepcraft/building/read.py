"""What a model finds in one document, as a record; where it fails, the record says why."""

from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from stepcraft.building.documents import Document, Listed, digest_of
from stepcraft.building.extract import MODEL_NODES, build_extract
from stepcraft.building.ledger import Record
from stepcraft.building.settings import ExtractContext
from stepcraft.errors import ModelFailure, ModelUnknown
from stepcraft.llm.resources import BuilderOptions, Resources
from stepcraft.models.resolve import model_name, resolve_model
from stepcraft.progress import counted
from stepcraft.secrets import without_secrets

_PASSING = {"model", "node_models", "max_calls", "deadline_s"}
"""Settings that change nothing of what is found, and the models, which count by their names."""


@dataclass
class Reader:
    """Asks a model for the procedures of documents.

    Args:
        settings: The settings of the extraction.
        choice: The model of its nodes.

    Raises:
        BadInput: The model is neither a chat model nor a name.
        ModelUnknown: There is no such model.
    """

    settings: ExtractContext
    choice: BaseChatModel | str | None = None

    def __post_init__(self) -> None:
        models: BuilderOptions = {"model": self.choice} if self.choice else {}
        resources = Resources.of("extract", ExtractContext, models)
        self._graph = build_extract(**models)
        choices = [resources.choice(node, self.settings) for node in MODEL_NODES]
        names = [each if isinstance(each, str) else model_name(each) for each in choices]
        for choice in choices:
            resolve_model(choice)  # a name that is unknown fails before anything is made
        self.model = names[MODEL_NODES.index("extract")]
        """The name of the model that reads the documents."""
        chosen = self.settings.model_dump(exclude=_PASSING, exclude_defaults=True)
        self.identity = digest_of(names, chosen)
        """Identifies the models and the settings."""

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
            [document.note] if document.note else [],
        )
        config: RunnableConfig = {
            "run_name": without_secrets(document.title or document.source)[:200],
            "metadata": {"stepcraft_source": without_secrets(document.source)},
            "max_concurrency": max_concurrency,
        }
        values: Any = vars(document)
        try:
            result = await self._graph.ainvoke(values, config, context=self.settings)
        except (ModelUnknown, ModelFailure):
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
