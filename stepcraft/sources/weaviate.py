"""Collections of Weaviate as a source of evidence: procedures of stepcraft, or documents of your own."""

import weakref
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import weaviate
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from weaviate.classes.config import DataType
from weaviate.classes.query import HybridFusion, MetadataQuery

from stepcraft.errors import BadInput, MemoryFailure, SourceFailure
from stepcraft.index import Embedder, query_vector, query_words
from stepcraft.memory.open import open_memory
from stepcraft.memory.protocol import ALPHA
from stepcraft.memory.weaviate.client import objects_of
from stepcraft.memory.weaviate.link import Link
from stepcraft.memory.weaviate.url import Place, place_of
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.sources.base import Source
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_OPTIONS = {"text", "title", "embeddings"}
_TEXTS = ("text", "content", "page_content", "body", "passage", "abstract", "summary")
_TITLES = ("title", "name", "heading", "headline")
_SOURCES = ("source", "url", "link", "path")
_OURS = {"input", "output", "steps"}
_SCORE = MetadataQuery(score=True)


class WeaviateDocuments(Source):
    """Documents that something else keeps in a collection: `weaviate://host:8080/Collection?text=body&title=name`.

    `text` and `title` name the properties, if they are not called so or alike. Search is by words (BM25), and by
    vectors too if `embeddings=wordllama`, say, names the model that made those in the collection.
    """

    link: Any
    """The connection."""
    place: Place
    """The collection, and the server that it is in."""
    text: str
    """The property that holds what a model reads."""
    title: str = ""
    """The property that holds the title; "" for none."""
    source: str = ""
    """The property that says where a document is from; "" for none."""
    embedder: Any = None
    """What makes the vectors of queries; None for words alone."""

    def close(self) -> None:
        """Close the connection; it may be called twice."""
        self.link.close()

    def _found(self, query: str, k: int) -> list[Document]:
        words = " ".join(query_words(query))
        if not words:
            return []
        link: Link = self.link
        embedder: Embedder | None = self.embedder
        try:
            vector = query_vector(embedder, clean(query)) if embedder else None
            numbers = None if vector is None else vector.tolist()
            hits = link.call(lambda held: self._hits(held.objects, words, numbers, k))
        except MemoryFailure as error:
            raise SourceFailure(str(error)) from error
        best = max((hit.metadata.score or 0 for hit in hits), default=0) or 1
        return [self._document(hit, 1 if vector is not None else best) for hit in hits]

    def _hits(self, objects: Any, query: str, vector: list[float] | None, k: int) -> list[Any]:  # noqa: ANN401 - the client's collections are generic
        properties = [name for name in (self.text, self.title) if name]
        if vector is None:
            found = objects.query.bm25(query, query_properties=properties, limit=k, return_metadata=_SCORE)
        else:
            found = objects.query.hybrid(
                query,
                vector=vector,
                alpha=ALPHA,
                query_properties=properties,
                fusion_type=HybridFusion.RELATIVE_SCORE,
                limit=k,
                return_metadata=_SCORE,
            )
        return list(found.objects)

    def _document(self, hit: Any, best: float) -> Document:  # noqa: ANN401 - the client's classes for it are private
        held = hit.properties
        facts = {
            "title": _text(held.get(self.title)),
            "source": _text(held.get(self.source)) or f"{self.place.collection}/{hit.uuid}",
            "score": (hit.metadata.score or 0) / best,
        }
        return Document(page_content=_text(held.get(self.text)), metadata=facts, id=str(hit.uuid))


def _text(value: str | list[str] | None) -> str:
    return "\n".join(value) if isinstance(value, list) else value or ""


def open_collection(url: str, *, k: int = 5, embeddings: "str | Embeddings | None" = None) -> BaseRetriever:
    """A collection as a retriever: of procedures if it has their properties and none is named, else of documents.

    Raises:
        BadInput: the URL is not understood, or there is no such collection, or it has no such property.
        SourceFailure: the server cannot be used.
        MemoryFailure: a collection of procedures cannot be used.
    """
    if url.startswith("weaviate+embedded:"):
        return open_memory(url, embeddings=embeddings, create=False).as_retriever(k)
    plain, options = _without_options(url)
    place = place_of(plain)
    server = place.server
    assert server  # noqa: S101 - only an embedded one has none
    link = Link(place.name, lambda: server, partial(objects_of, place=place))
    try:
        names = link.call(lambda held: _text_properties(held.client, place))
        if options or not set(names) >= _OURS:
            return _documents(link, place, names, options, k)
    except MemoryFailure as error:
        link.close()
        raise SourceFailure(str(error)) from error
    except BaseException:
        link.close()
        raise
    link.close()
    return open_memory(url, embeddings=embeddings, create=False).as_retriever(k)


def _without_options(url: str) -> tuple[str, dict[str, str]]:
    """The URL of the collection alone, and what it says about documents."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    others = urlencode([pair for pair in pairs if pair[0] not in _OPTIONS])
    return urlunsplit(parts._replace(query=others)), {
        name: value for name, value in pairs if name in _OPTIONS
    }


def _documents(
    link: Link, place: Place, names: list[str], options: dict[str, str], k: int
) -> WeaviateDocuments:
    documents = WeaviateDocuments(
        link=link,
        place=place,
        text=_chosen(place, names, "text", options, _TEXTS),
        title=_chosen(place, names, "title", options, _TITLES),
        source=next((name for name in _SOURCES if name in names), ""),
        embedder=resolve_embeddings(options.get("embeddings", "none")),
        k=k,
    )
    weakref.finalize(documents, link.close)
    return documents


def _text_properties(client: weaviate.WeaviateClient, place: Place) -> list[str]:
    if not client.collections.exists(place.collection):
        raise BadInput(f"{place.name}: there is no collection {place.collection}; check the name")
    config = client.collections.use(place.collection).config.get()
    texts = (DataType.TEXT, DataType.TEXT_ARRAY)
    return [item.name for item in config.properties if item.data_type in texts]


def _chosen(
    place: Place, names: list[str], what: str, options: dict[str, str], usual: tuple[str, ...]
) -> str:
    """The property that an option names, or one with a usual name; "" for a title that there is not."""
    named = options.get(what, "")
    found = named if named in names else next((name for name in usual if name in names and not named), "")
    if not found and (named or what == "text"):
        wrong = f"no text property {named!r}" if named else "no property that is called text or alike"
        raise BadInput(
            f"{place.name}: {place.collection} has {wrong}; it has {', '.join(names) or 'none'}: "
            f"name one, as in ?{what}={names[0] if names else 'body'}"
        )
    return found
