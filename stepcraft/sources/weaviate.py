"""Collections of Weaviate as a source of evidence: procedures of stepcraft, or documents that others store."""

import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

# Whole before its parts: two threads that enter it by different parts would wait for each other.
import weaviate  # noqa: F401 # pyright: ignore[reportUnusedImport]
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from weaviate.classes.config import DataType
from weaviate.classes.query import HybridFusion, MetadataQuery

from stepcraft.errors import BadInput, MemoryFailure, SourceFailure
from stepcraft.index import Embedder, query_vector, query_words
from stepcraft.memory.open import open_memory
from stepcraft.memory.weaviate.connection import Connection, Session
from stepcraft.memory.weaviate.url import Address, parse_url
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.secrets import without_secrets
from stepcraft.sources.base import Source
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from stepcraft.memory.weaviate.connection import Action

_OPTIONS = {"text", "title", "embeddings"}
_TEXTS = ("text", "content", "page_content", "body", "passage", "abstract", "summary")
_TITLES = ("title", "name", "heading", "headline")
_SOURCES = ("source", "url", "link", "path")
_PROCEDURE = {"input", "output", "steps"}
_PAGE = 1000
"""How many objects are listed at a time."""
_SCORE = MetadataQuery(score=True)
_ALPHA = 0.4
"""The weight of the vectors in a hybrid search, as in a corpus."""


class WeaviateDocuments(Source):
    """Documents of any collection: `weaviate://host:8080/Collection?text=body&title=name`.

    `text` and `title` name the properties, unless these have common names. Search is by words (BM25), and also by
    vectors if `embeddings=` names the model that made those in the collection, such as `wordllama`.
    """

    connection: Any
    """The Connection to the collection."""
    address: Address
    """The collection, and the server that holds it."""
    text: str
    """The property that a model reads."""
    title: str = ""
    """The property with the title; "" for none."""
    source: str = ""
    """The property with the origin of a document; "" for none."""
    embedder: Any = None
    """Makes the vectors of queries; None for search by words alone."""

    def close(self) -> None:
        """Close the connection; it may be called twice."""
        self.connection.close()

    def listed(self) -> Iterator[tuple[str, str]]:
        """The id and the source of every document, in the order of the ids, a page at a time.

        Raises:
            SourceFailure: the server cannot be used.
        """
        last: str | None = None
        while True:
            page = self._call(partial(self._page, after=last))
            for item in page:
                yield str(item.uuid), self._source(item)
            if len(page) < _PAGE:
                return
            last = str(page[-1].uuid)

    def document(self, id: str) -> Document | None:  # noqa: A002 - the field is called id
        """The document with this id, or None.

        Raises:
            SourceFailure: the server cannot be used.
        """
        found = self._call(lambda session: session.objects.query.fetch_object_by_id(id))
        return self._document(found, {}) if found else None

    def _call(self, action: "Action[Any]") -> Any:  # noqa: ANN401 - the client's classes are private
        connection: Connection = self.connection
        try:
            return connection.call(action)
        except MemoryFailure as error:
            raise SourceFailure(str(error)) from error

    async def _page(self, session: Session, after: str | None) -> list[Any]:
        wanted = [self.source] if self.source else []
        page = await session.objects.query.fetch_objects(
            limit=_PAGE, after=after, return_properties=wanted
        )
        return list(page.objects)

    def _source(self, found: Any) -> str:  # noqa: ANN401 - the client's classes for it are private
        return _text(found.properties.get(self.source)) or f"{self.address.collection}/{found.uuid}"

    def _found(self, query: str, k: int) -> list[Document]:
        words = " ".join(query_words(query))
        if not words:
            return []
        embedder: Embedder | None = self.embedder
        try:
            vector = query_vector(embedder, clean(query)) if embedder else None
        except MemoryFailure as error:
            raise SourceFailure(str(error)) from error
        numbers = None if vector is None else vector.tolist()
        hits = self._call(lambda session: self._search(session, words, numbers, k))
        best = (
            1
            if vector is not None
            else max((hit.metadata.score or 0 for hit in hits), default=0) or 1
        )
        return [self._document(hit, {"score": (hit.metadata.score or 0) / best}) for hit in hits]

    async def _search(
        self, session: Session, words: str, vector: list[float] | None, k: int
    ) -> list[Any]:
        query = session.objects.query
        shared: dict[str, Any] = {
            "query": words,
            "query_properties": [name for name in (self.text, self.title) if name],
            "limit": k,
            "return_metadata": _SCORE,
        }
        if vector is None:
            return list((await query.bm25(**shared)).objects)
        fusion = HybridFusion.RELATIVE_SCORE
        return list(
            (await query.hybrid(vector=vector, alpha=_ALPHA, fusion_type=fusion, **shared)).objects
        )

    def _document(self, found: Any, facts: Mapping[str, Any]) -> Document:  # noqa: ANN401 - the client's classes for it are private
        metadata = {
            "title": _text(found.properties.get(self.title)),
            "source": self._source(found),
            **facts,
        }
        return Document(
            page_content=_text(found.properties.get(self.text)),
            metadata=metadata,
            id=str(found.uuid),
        )


def _text(value: str | list[str] | None) -> str:
    return "\n".join(value) if isinstance(value, list) else value or ""


def open_collection(
    url: str, *, k: int = 5, embeddings: "str | Embeddings | None" = None
) -> BaseRetriever:
    """Open a collection as a retriever: of procedures if it has their properties and none is named, else of documents.

    Raises:
        BadInput: the URL is malformed, or there is no such collection, or it has no such property.
        SourceFailure: the server cannot be used.
        MemoryFailure: a collection of procedures cannot be used.
    """
    address, options = parse_spec(url)
    server = address.server
    if server is None:
        return open_memory(url, embeddings=embeddings, create=False).as_retriever(k)
    connection = Connection(address, lambda: server)
    try:
        names = connection.call(lambda session: _text_properties(session, address))
        if options or not set(names) >= _PROCEDURE:
            documents = WeaviateDocuments(
                connection=connection,
                address=address,
                text=_property(address, names, "text", options, _TEXTS),
                title=_property(address, names, "title", options, _TITLES),
                source=next((name for name in _SOURCES if name in names), ""),
                embedder=resolve_embeddings(options.get("embeddings", "none")),
                k=k,
            )
            weakref.finalize(documents, connection.release)
            return documents
    except MemoryFailure as error:
        connection.close()
        raise SourceFailure(str(error)) from error
    except BaseException:
        connection.close()
        raise
    connection.close()
    return open_memory(url, embeddings=embeddings, create=False).as_retriever(k)


def parse_spec(url: str) -> tuple[Address, dict[str, str]]:
    """Return the collection of a URL, and the options that concern documents.

    Raises:
        BadInput: the URL is malformed.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise BadInput(f"{without_secrets(url)} is no URL; check its host and port") from error
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = {name: value for name, value in pairs if name in _OPTIONS}
    others = urlencode([(name, value) for name, value in pairs if name not in _OPTIONS])
    return parse_url(urlunsplit(parts._replace(query=others))), options


async def _text_properties(session: Session, address: Address) -> list[str]:
    if not await session.client.collections.exists(address.collection):
        raise BadInput(
            f"{address.name}: there is no collection {address.collection}; check the name"
        )
    config = await session.client.collections.use(address.collection).config.get()
    texts = (DataType.TEXT, DataType.TEXT_ARRAY)
    return [item.name for item in config.properties if item.data_type in texts]


def _property(
    address: Address,
    names: list[str],
    option: str,
    options: dict[str, str],
    common: tuple[str, ...],
) -> str:
    """The property that an option names, or one with a common name; "" for a title where there is none."""
    named = options.get(option, "")
    found = (
        named
        if named in names
        else next((name for name in common if name in names and not named), "")
    )
    if not found and (named or option == "text"):
        wrong = (
            f"no text property {named!r}" if named else "no property that is called text or alike"
        )
        raise BadInput(
            f"{address.name}: {address.collection} has {wrong}; it has {', '.join(names) or 'none'}: "
            f"name one, as in ?{option}={names[0] if names else 'body'}"
        )
    return found
