"""The collection of procedures in Weaviate: made, or read of what it was made with."""

import json

from weaviate.classes.config import (
    Configure,
    DataType,
    Property,
    Tokenization,
    VectorDistances,
)

from stepcraft.errors import MemoryFailure
from stepcraft.memory.weaviate.connection import Connection, Objects
from stepcraft.memory.weaviate.url import Address

CONTENT = [
    *["input", "output", "steps", "source", "metadata"],
    *["tags", "key", "expires", "outcomes", "versions"],
]
"""The properties that make a procedure."""

WORDS = ("words", "parts", "words_version")
"""The properties of which the first two are searched, and how both were made."""


def recorded(objects: Objects) -> str | None:
    """Return the embeddings that the collection was made with; None if it is missing.

    Raises:
        MemoryFailure: Somebody else made the collection.
    """
    if not objects.exists():
        return None
    config = objects.config.get()
    try:
        embeddings = str(json.loads(config.description or "")["embeddings"])
    except (ValueError, TypeError, LookupError) as error:
        raise MemoryFailure(
            f"the collection {objects.name} does not say which embeddings it was made with, so "
            "that stepcraft did not make it; name another one"
        ) from error

    for name in {*CONTENT, *WORDS} - {each.name for each in config.properties}:
        objects.config.add_property(_property(name))  # of a collection of an earlier version
    return embeddings


def _property(name: str) -> Property:
    is_searched, is_value = name in ("words", "parts"), name in ("tags", "key", "words_version")
    return Property(
        name=name,
        data_type=DataType.TEXT_ARRAY if name in ("steps", "tags") else DataType.TEXT,
        index_searchable=is_searched,
        index_filterable=is_value or name == "source",
        tokenization=Tokenization.WHITESPACE
        if is_searched
        else Tokenization.FIELD
        if is_value
        else Tokenization.WORD,
    )


def create_collection(
    connection: Connection, embeddings: str, address: Address, objects: Objects
) -> None:
    """Make the collection for vectors of these embeddings; "none" for no vectors."""
    client = connection.client()
    quantizer = getattr(Configure.VectorIndex.Quantizer, address.quantization or "none", None)
    if address.quantization and not quantizer:
        raise MemoryFailure(
            f"the installed weaviate-client has no quantization {address.quantization}; update it"
        )
    client.collections.create(
        objects.name,
        description=json.dumps({"embeddings": embeddings}, ensure_ascii=False),
        properties=[_property(name) for name in (*CONTENT, *WORDS)],
        vector_config=Configure.Vectors.self_provided(
            # Procedures of one domain lie close together, where Weaviate's own settings miss many
            # of the nearest: recall@10 of 0.86 among 100,000 procedures. These find 0.987 (with an
            # ef of 512: 0.975) for a few milliseconds, where a run spends seconds in the model.
            vector_index_config=Configure.VectorIndex.hnsw(
                distance_metric=VectorDistances.COSINE,
                ef=1024,
                ef_construction=256,
                max_connections=64,
                quantizer=quantizer() if quantizer else None,
            ),
        ),
        multi_tenancy_config=Configure.multi_tenancy(enabled=bool(address.tenant)),
        replication_config=Configure.replication(factor=address.replicas),
    )


def add_tenant(objects: Objects, tenant: str) -> None:
    """Make a tenant, unless it is there.

    Raises:
        MemoryFailure: The collection has no tenants, or has them and none is named.
    """
    has_tenants = objects.config.get().multi_tenancy_config.enabled
    if has_tenants != bool(tenant):
        problem = "has tenants: name one as ?tenant=NAME"
        if tenant:
            problem = "has no tenants: leave tenant= out, or name another collection"
        raise MemoryFailure(f"the collection {objects.name} {problem}")
    if tenant and not objects.tenants.exists(tenant):
        objects.tenants.create(tenant)
