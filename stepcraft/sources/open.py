"""Open a source of evidence by name."""

import os
import re
from collections.abc import Callable
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from stepcraft.errors import BadInput
from stepcraft.secrets import excerpt
from stepcraft.sources.shared.urls import is_shared

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*(?:\.\w+)*)")


def open_source(
    spec: str,
    *,
    k: int = 5,
    embeddings: "str | Embeddings | None" = None,
) -> "BaseRetriever":
    """Open a source of evidence as a LangChain retriever.

    `k` may also be passed per call: `source.invoke(query, k=10)`.

    Args:
        spec: `corpus:docs` or `corpus:docs,faq.csv?title=Question&text=Answer` for files, folders
            and URLs, with the fields of records (see `open_corpus`); `web` or `web:ENGINE` (see
            `open_web`); `weaviate://host:8080/Collection` or `postgresql://host/database/name` for
            a corpus on a server (see `open_shared`); `memory` for STEPCRAFT_MEMORY or else the
            bundled procedures; `memory:procedures.db` for another memory (any URL for
            `open_memory`); or `package.module:attribute` for a LangChain retriever or search tool,
            or a function without arguments that returns one.
        k: The number of passages to find.
        embeddings: The embeddings for a corpus or a memory, as for `open_corpus` and `open_memory`.

    Raises:
        BadInput: The spec is not understood or not allowed, or names something that does not exist.
        SourceFailure: The index of a corpus, or a server, is unusable.
        MemoryFailure: A memory is unusable.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    spec = spec.strip()
    kind, rest = _kind_of(spec), spec.partition(":")[2]
    if kind == "corpus":
        from stepcraft.sources.corpus.retriever import open_corpus

        paths, fields = corpus_paths(rest)
        return open_corpus(paths, k=k, embeddings=embeddings, **fields)
    if kind == "web":
        from stepcraft.sources.web.retriever import open_web

        return open_web(spec, k=k)
    if kind == "server":
        from stepcraft.sources.shared.retriever import open_shared

        return open_shared(spec, k=k, embeddings=embeddings)
    if kind == "memory":
        from stepcraft.memory.open import open_memory

        return open_memory(rest or None, embeddings=embeddings, create=False).as_retriever(k)
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.tools import BaseTool

    from stepcraft.sources.langchain import RetrieverAdapter, ToolRetriever

    source = named_object(spec)
    if isinstance(source, BaseTool):
        source = ToolRetriever.of(source)
    if isinstance(source, BaseRetriever):
        return RetrieverAdapter(retriever=source, spec=spec, k=k)
    raise BadInput(
        f"{spec} is a {type(source).__name__}; name a retriever or a search tool of LangChain, "
        "or a function without arguments that makes one"
    )


def check_source(spec: str) -> None:
    """Check a spec without opening the source.

    Raises:
        BadInput: The spec is not understood, or there is no such file or folder.
    """
    spec = spec.strip()
    if _kind_of(spec) == "corpus":
        from stepcraft.sources.corpus.files import roots_of

        roots_of(corpus_paths(spec.partition(":")[2])[0])


def _kind_of(spec: str) -> str:
    """Return what kind of source a spec names.

    Raises:
        BadInput: The spec is not understood.
    """
    kind, colon, _ = spec.partition(":")
    if kind in {"web", "memory"} or (kind == "corpus" and colon):
        return kind
    if is_shared(spec):
        return "server"
    if is_dotted(spec):
        return "object"
    raise BadInput(
        f"{excerpt(spec)} is no source of evidence; name corpus:PATH (files and folders, several "
        "with commas between them), weaviate://host:8080/Collection or postgresql://host/database/"
        "name (a corpus in a server), web, memory or memory:URL (procedures), or "
        "package.module:attribute (a LangChain retriever of your own)"
    )


def corpus_paths(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the comma-separated paths of a corpus, and the options after a "?".

    The name of a file or folder may itself contain a comma or a "?".

    Raises:
        BadInput: Another path follows the options, or they stand twice.
    """
    if os.path.exists(os.path.expanduser(text)):  # noqa: PTH110, PTH111 - whatever the text is
        return [text], {}
    paths, _, query = text.rpartition("?")
    options = dict(parse_qsl(query))
    if paths and options and options.keys() <= {"title", "text"}:
        names, more = corpus_paths(paths)
        if more or "," in query:
            raise BadInput("name the fields once, after all paths, and write a comma in one as %2C")
        return names, options
    return [*filter(None, map(str.strip, text.split(",")))], {}


def is_dotted(spec: str) -> bool:
    """Return whether a spec has the form package.module:attribute."""
    return _ATTRIBUTE.fullmatch(spec) is not None


def named_object(spec: str, *, is_called: Callable[[Any], bool] = callable) -> Any:  # noqa: ANN401 - any object
    """Return the object at package.module:attribute, or the result of calling it.

    Args:
        spec: The spec of the object.
        is_called: Returns whether to call the object to get the result; by default, every
            callable is called.

    Raises:
        BadInput: Importing it or calling it fails.
    """
    try:
        target = resolve_name(spec)
        return target() if is_called(target) else target
    except Exception as error:
        raise BadInput(f"{spec} cannot be made: {excerpt(error, 300)}") from error
