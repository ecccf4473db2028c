"""Read documents into records with a model, and estimate the number of model calls needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig

from stepcraft.building.documents import Document, Listed, digest_of
from stepcraft.building.duplicates import NEAREST
from stepcraft.building.extract import build_extract
from stepcraft.building.ledger import Ledger, Record
from stepcraft.building.nodes import extract, parts_of
from stepcraft.building.settings import ExtractContext
from stepcraft.building.sources import Source, list_documents
from stepcraft.errors import Failed, ModelFailure, ModelUnknown
from stepcraft.llm.resources import BuilderOptions, Resources
from stepcraft.models.resolve import ChatModel, model_name, resolve_model
from stepcraft.progress import counted
from stepcraft.secrets import without_secrets
from stepcraft.sources.corpus.content import markdown_headings

_PASSING = {"model", "node_models", "max_calls", "deadline_s"}
"""Settings excluded from the identity: those that do not affect the results, and the models, which
are identified by name.
"""


@dataclass
class Reader:
    """Asks a model for the procedures in documents; if it fails, the record says why.

    Args:
        settings: The settings for the extraction.
        choice: The model for the nodes of the extraction graph.

    Raises:
        BadInput: The model is neither a chat model nor a name.
        ModelUnknown: There is no such model.
    """

    settings: ExtractContext
    choice: ChatModel | str | None = None

    def __post_init__(self) -> None:
        models: BuilderOptions = {"model": self.choice or ""}
        self._graph = build_extract(**models)
        resources = Resources.of("extract", ExtractContext, models)
        choice = resources.choice(extract.name, self.settings)
        resolve_model(choice)  # an unknown name fails before anything is created
        self.model = model_name(choice)
        """The name of the model that reads the documents."""
        chosen = self.settings.model_dump(exclude=_PASSING, exclude_defaults=True)
        self.identity = digest_of(self.model, chosen)
        """A digest that identifies the model and the settings."""

    async def read(self, listed: Listed, document: Document, max_concurrency: int) -> Record:
        """Read a document with the model and return its record.

        Args:
            listed: The listing entry of the document.
            document: The document.
            max_concurrency: The maximum number of its parts that are read at the same time.

        Raises:
            ModelUnknown: There is no such model.
            ModelFailure: The model refuses every call.
        """
        record = Record(
            listed.source,
            listed.stamp,
            document.title,
            document.digest,
            self.identity,
            self.model,
            [document.note] if document.note else [],
            root=listed.root,
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


@dataclass
class Estimate:
    """An estimate of the model calls that a document will take."""

    source: str
    characters: int
    done: bool
    """Whether a model has already read it, so that it is not read again."""
    calls_to_read: int
    calls: int
    """The maximum number of calls, including comparisons with similar procedures."""


def estimate(
    sources: Sequence[Source], reader: Reader, ledger: Ledger | None
) -> tuple[list[Estimate], list[Failed]]:
    """Return the number of calls for each document, and the unreadable documents.

    Each part takes one call, and each procedure takes further calls to compare it with its nearest
    ones, if they are similar. The maximum holds if no call is repeated and no part teaches more
    tasks than it has headings.

    Args:
        sources: As for `build_memory`.
        reader: The model and the settings.
        ledger: The records of earlier builds, if there are any.

    Raises:
        BadInput: A source cannot be used.
        SourceFailure: A source cannot be opened.
    """
    listing, estimates = list_documents(sources), list[Estimate]()
    for listed, document in listing.read():
        done = bool(ledger and ledger.same(document.digest, reader.identity))
        parts = len(parts_of(document.text, reader.settings))
        if document.kind == "transcript":  # one call to ask whether it succeeded, and a single task
            reading, tasks = parts * 2, parts
        else:
            reading, tasks = parts, max(parts, len(markdown_headings(document.text)))
        if done:
            reading = tasks = 0
        most = reading + NEAREST * tasks
        estimates.append(Estimate(listed.source, len(document.text), done, reading, most))
    return estimates, listing.failed
