"""`open_source`: a source of evidence by its name."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepcraft.errors import BadInput, SourceFailure
from stepcraft.files import named_path
from stepcraft.secrets import without_secrets

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever

K = 5
"""The default number of passages."""

KINDS = (
    "corpus:PATH (files and folders, several with commas between them), web, memory or memory:URL (procedures), "
    "weaviate://host:8080/Collection, or package.module:attribute (a LangChain retriever of your own)"
)
"""The kinds of source, for messages."""

_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*):([A-Za-z_]\w*(?:\.\w+)*)")


def open_source(
    spec: str,
    *,
    k: int = K,
    embeddings: "str | Embeddings | None" = None,
    progress: Callable[[int], None] | None = None,
) -> "BaseRetriever":
    """Open a source of evidence as a LangChain retriever.

    `k` may also be given with a call: `source.invoke(query, k=10)`.

    Args:
        spec: `corpus:docs` or `corpus:docs,notes.md` (files and folders: see `open_corpus`), `web` or `web:ENGINE`
            (see `open_web`), `memory` (STEPCRAFT_MEMORY, else the bundled procedures) or `memory:procedures.db`
            (any URL of `open_memory`), `weaviate://host:8080/Collection` (procedures, or documents of your own:
            see `WeaviateDocuments`), `package.module:attribute` (a LangChain retriever, or a function without
            arguments that returns one).
        k: the number of passages to find.
        embeddings: the embeddings of a corpus or a memory, as `open_corpus` and `open_memory` take them.
        progress: for a corpus, called with the number of files done so far.

    Raises:
        BadInput: the spec is not understood or not allowed, or names nothing that exists.
        SourceFailure: the index of a corpus, or a server, cannot be used.
        MemoryFailure: a memory cannot be used.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    spec = spec.strip()
    kind, colon, rest = spec.partition(":")
    if kind == "corpus" and colon:
        from stepcraft.sources.corpus.retriever import open_corpus  # noqa: PLC0415 - loads numpy and langchain-core

        return open_corpus(corpus_paths(rest), k=k, embeddings=embeddings, progress=progress)
    if kind == "web":
        from stepcraft.sources.web.retriever import open_web  # noqa: PLC0415 - loads langchain-core

        return open_web(spec, k=k)
    if kind == "memory":
        from stepcraft.memory.open import open_memory  # noqa: PLC0415 - loads langchain-core

        return open_memory(rest or None, embeddings=embeddings, create=False).as_retriever(k)
    if kind.startswith("weaviate"):
        from stepcraft.sources.weaviate import open_collection  # noqa: PLC0415 - loads the client

        return open_collection(spec, k=k, embeddings=embeddings)
    if is_dotted(spec):
        from stepcraft.sources.langchain import RetrieverAdapter  # noqa: PLC0415 - loads langchain-core

        return RetrieverAdapter(retriever=_imported(spec), spec=spec, k=k)
    is_path = Path(spec).suffix or _exists(spec)
    hint = f": corpus:{spec} for documents, memory:{spec} for procedures" if is_path else ""
    raise BadInput(f"{without_secrets(spec)!r} is no source of evidence; name {KINDS}{hint}")


def corpus_paths(text: str) -> list[str]:
    """The paths of a corpus: the whole text if it is that of a file or folder, else the parts between its commas.

    Raises:
        BadInput: one of them is no path.
    """
    if text.strip() and _exists(text):
        return [text]
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        named_path(part)
    return parts


def _exists(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # it is too long, or names a user who does not exist
        return False


def _imported(spec: str) -> "BaseRetriever":
    """The retriever under a dotted name, or what the function under it returns."""
    from langchain_core.retrievers import BaseRetriever  # noqa: PLC0415 - heavy

    found = named_object(spec)
    if not isinstance(found, BaseRetriever):
        raise BadInput(
            f"{spec} is a {type(found).__name__}; name a LangChain retriever, or a function without arguments "
            "that makes one"
        )
    return found


def is_dotted(spec: str) -> bool:
    """Whether a spec has the form package.module:attribute."""
    return _ATTRIBUTE.fullmatch(spec) is not None


def named_object(spec: str) -> Any:  # noqa: ANN401 - whatever stands there
    """What stands under package.module:attribute; what it returns, if it can be called.

    Raises:
        BadInput: the module or the attribute does not exist, or the module needs another one.
        SourceFailure: the module cannot be imported, or the function fails.
    """
    from langchain_core.retrievers import BaseRetriever  # noqa: PLC0415 - heavy

    module, _, attribute = spec.partition(":")
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        name = error.name or ""
        if name and (module == name or module.startswith(f"{name}.")):
            raise BadInput(
                f"there is no module {name} for the source {spec!r}; name {KINDS}"
            ) from error
        raise BadInput(
            f"the module {module} of the source {spec!r} needs {name}; install it"
        ) from error
    except Exception as error:
        raise SourceFailure(f"the module {module} cannot be imported: {_reason(error)}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise BadInput(f"{module} has no {attribute}; check the name in the source {spec!r}")
        found = getattr(found, name)
    if not isinstance(found, BaseRetriever) and callable(found):
        try:
            found = found()
        except Exception as error:
            raise SourceFailure(f"the source {spec} cannot be made: {_reason(error)}") from error
    return found


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(without_secrets(str(error)).split())[:300]}"
