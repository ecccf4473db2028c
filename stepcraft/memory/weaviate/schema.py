"""The collection of procedures in Weaviate: made, or agreed with where there is one."""

import json
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from weaviate.classes.config import Configure, DataType, Property, Reconfigure, VectorDistances

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Embedder
from stepcraft.memory.local import recorded_embedder
from stepcraft.memory.weaviate.connection import Connection, Objects
from stepcraft.memory.weaviate.url import Address

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

CONTENT = ["input", "output", "steps", "source", "metadata"]
"""The properties that make a procedure."""

SEARCHED = ("input", "output", "steps", "cjk")
"""The properties whose words are searched."""

# Procedures of one domain lie close together, where Weaviate's own defaults miss many of the
# nearest: recall@10 of 0.86 among 100,000 procedures. This setting finds 0.987 (512: 0.975) for a
# few milliseconds a search, where a run spends seconds in the model.
_EF = 1024


@dataclass(frozen=True)
class MadeWith:
    """The embedding model behind the vectors of a collection."""

    embeddings: str
    """The name of the model; "none" for a collection without vectors."""
    dimensions: int


def open_collection(
    connection: Connection,
    address: Address,
    embeddings: "str | Embeddings | None",
    *,
    create: bool,
) -> tuple[Embedder | None, MadeWith]:
    """Return the embedder of the collection and what it was made with; create it if it is missing.

    Raises:
        BadInput: There is no such collection, tenant or embedding model.
        MemoryFailure: The collection has another shape, or was made with other embeddings.
    """
    made_with = connection.call(partial(_made_with, address=address))
    if not made_with and not create:
        raise BadInput(
            f"{address.name}: there is no collection {address.collection}; check the name, or "
            "import procedures first"
        )
    recorded = made_with.embeddings if made_with else None
    embedder = recorded_embedder(address.name, embeddings, recorded)
    if not made_with:
        made_with = MadeWith(
            embedder.name if embedder else "none",
            len(embedder.embed_query("procedure")) if embedder else 0,
        )
        connection.call(partial(_create, connection, address, made_with))
    if embedder and embedder.name != made_with.embeddings:
        raise MemoryFailure(
            f"{address.name} was made with embeddings {made_with.embeddings!r}, not "
            f"{embedder.name!r}: open it with the former, or fill a new collection"
        )
    if address.options.tenant:
        connection.call(partial(_open_tenant, address=address, create=create))
    return embedder, made_with


async def _made_with(objects: Objects, address: Address) -> MadeWith | None:
    """Return what the collection was made with, as its description says; None if it is missing."""
    if not await objects.exists():
        return None
    config = await objects.config.get()
    try:
        made_with = MadeWith(**json.loads(config.description or ""))
    except (ValueError, TypeError) as error:
        raise MemoryFailure(
            f"the collection {address.collection} does not say which embeddings it was made with, "
            "so that stepcraft did not make it; name another one"
        ) from error
    if config.multi_tenancy_config.enabled != bool(address.options.tenant):
        what = "tenants; add" if config.multi_tenancy_config.enabled else "no tenants; leave out"
        raise BadInput(
            f"{address.name}: the collection {address.collection} has {what} ?tenant=NAME"
        )
    index: Any = (config.vector_config or {})["default"].vector_index_config
    if (ef := address.options.ef) not in (0, index.ef):
        hnsw = Reconfigure.VectorIndex.hnsw(ef=ef)
        await objects.config.update(
            vector_config=Reconfigure.Vectors.update(name="default", vector_index_config=hnsw)
        )
    return made_with


async def _create(
    connection: Connection, address: Address, made_with: MadeWith, _: Objects
) -> None:
    client, options = await connection.client(), address.options
    quantizers: Any = Configure.VectorIndex.Quantizer
    await client.collections.create(
        address.collection,
        description=json.dumps(asdict(made_with), ensure_ascii=False),
        properties=[
            Property(
                name=name,
                data_type=DataType.TEXT_ARRAY if name == "steps" else DataType.TEXT,
                index_searchable=name in SEARCHED,
                index_filterable=name == "source",
            )
            for name in (*CONTENT, "cjk")
        ],
        vector_config=Configure.Vectors.self_provided(
            quantizer=getattr(quantizers, options.quantizer)() if options.quantizer else None,
            vector_index_config=Configure.VectorIndex.hnsw(
                distance_metric=VectorDistances.COSINE,
                ef=options.ef or _EF,
                ef_construction=options.ef_construction,
                max_connections=options.max_connections,
            ),
        ),
        replication_config=Configure.replication(factor=options.replicas or None),
        multi_tenancy_config=Configure.multi_tenancy(enabled=bool(options.tenant)),
    )


async def _open_tenant(objects: Objects, *, address: Address, create: bool) -> None:
    tenant = address.options.tenant
    if await objects.tenants.exists(tenant):
        return
    if not create:
        raise BadInput(
            f"{address.name}: the collection {address.collection} has no tenant {tenant!r}; "
            "check the name, or import procedures into it first"
        )
    await objects.tenants.create(tenant)
