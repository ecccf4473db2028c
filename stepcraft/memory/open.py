"""Open a procedural memory by its URL."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stepcraft.errors import BadInput
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.urls import POSTGRES, path_of, scheme_of

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langgraph.store.base import BaseStore

BUNDLED = "the bundled procedures"
"""The name of the memory with the procedures that ship with the package."""

MEMORY_VARIABLE = "STEPCRAFT_MEMORY"
"""The environment variable with the default URL."""


def open_memory(
    url: str | os.PathLike[str] | None = None,
    *,
    embeddings: "str | Embeddings | None" = None,
    store: "BaseStore | None" = None,
    create: bool = True,
) -> ProcedureMemory:
    """Open a memory by its URL.

    Args:
        url: `procedures.db` (a SQLite file), `procedures.jsonl` or `.csv` (read into memory,
            read-only), `store:` or `store:name/space` (LangGraph's store, passed as `store`),
            `store+postgresql://user@host/database/name/space` (LangGraph's store in Postgres, see
            PostgresMemory), `weaviate://host:8080/Collection` or
            `weaviate+cloud://cluster/Collection` (see WeaviateMemory). None means the URL in
            STEPCRAFT_MEMORY, or else the procedures that ship with the package (read-only).
        embeddings: "wordllama", "none", an `init_embeddings` string or an Embeddings object. None
            means the model that an existing database was made with, or else STEPCRAFT_EMBEDDINGS,
            or else the best model that needs no key.
        store: The store that a `store:` URL refers to.
        create: Whether to create a missing database or collection.

    Raises:
        BadInput: The URL is malformed or not allowed, or its file cannot be read as procedures.
        MemoryFailure: The database cannot be opened, or was made with other embeddings.
    """
    where = os.fspath(url if url is not None else os.environ.get(MEMORY_VARIABLE, "")).strip()
    scheme = scheme_of(where)
    if scheme == "store":
        from stepcraft.memory.store import StoreMemory  # noqa: PLC0415 - loads langgraph

        if store is None:
            raise BadInput(
                f"{where} names LangGraph's store: compile the graph with a store, or pass store= "
                "to open_memory"
            )
        return StoreMemory(store, where[len("store:") :])
    if scheme == POSTGRES:
        try:
            from stepcraft.memory.postgres import PostgresMemory  # noqa: PLC0415 - optional
        except ImportError as error:
            raise BadInput(
                f"{where} needs the packages of Postgres ({error}): pip install "
                "'stepcraft[postgres]'"
            ) from error
        return PostgresMemory(where, embeddings=embeddings, create=create)
    if scheme.startswith("weaviate"):
        from stepcraft.memory.weaviate.memory import WeaviateMemory  # noqa: PLC0415 - loads grpc

        return WeaviateMemory(where, embeddings=embeddings, create=create)
    from stepcraft.memory.local import LocalMemory  # noqa: PLC0415 - loads numpy

    path = path_of(where) if where else Path(__file__).with_name("lgstep.jsonl")
    name = "" if where else BUNDLED
    return LocalMemory(path, embeddings=embeddings, create=create, name=name)
