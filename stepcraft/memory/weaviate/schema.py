"""The collection of procedures in Weaviate: made, or agreed with where there is one."""

import json
import os
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from weaviate.classes.config import Configure, DataType, Property, Reconfigure, VectorDistances

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Embedder
from stepcraft.memory.procedure import TEMPLATE, checked_template
from stepcraft.memory.weaviate.connection import Connection, Objects
from stepcraft.memory.weaviate.url import Address
from stepcraft.models.embeddings import VARIABLE, resolve_embeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

SEARCHED = ("input", "output", "steps", "cjk")
"""The properties whose words are searched."""

# Procedures of one domain lie close together, where Weaviate's own defaults miss many of the
# nearest: recall@10 of 0.86 among 100,000 procedures. These settings find 0.987 (ef=512: 0.975) for
# a few milliseconds a search, where a run spends seconds in the model.
_INDEX = {"ef": 1024, "ef_construction": 256, "max_connections": 64}

_TYPES = {
    "input": DataType.TEXT,
    "output": DataType.TEXT,
    "steps": DataType.TEXT_ARRAY,
    "source": DataType.TEXT,
    "metadata": DataType.TEXT,
    "cjk": DataType.TEXT,
}


@dataclass(frozen=True)
class MadeWith:
    """The embedding model and template behind the vectors of a collection."""

    embeddings: str
    """The name of the model; "none" for a collection without vectors."""
    dimensions: int
    template: str


def open_collection(
    connection: Connection,
    address: Address,
    embeddings: "str | Embeddings | None",
    template: str | None,
    *,
    create: bool,
) -> tuple[Embedder | None, MadeWith]:
    """Return the embedder of the collection and what it was made with; create it if it is missing.

    Raises:
        BadInput: There is no such collection, tenant or embedding model.
        MemoryFailure: The collection has another shape or index, or was made with other embeddings
            or another template.
    """
    wanted = embeddings if embeddings is not None else os.environ.get(VARIABLE) or None
    made_with = connection.call(partial(_made_with, address=address))
    if made_with:
        embedder = _agreed_embedder(address, made_with, wanted, template)
    elif not create:
        raise BadInput(
            f"{address.name}: there is no collection {address.collection}; check the name, or "
            "import procedures first"
        )
    else:
        embedder = resolve_embeddings(wanted)
        made_with = MadeWith(
            embedder.name if embedder else "none",
            len(embedder.embed_query("procedure")) if embedder else 0,
            checked_template(template or TEMPLATE),
        )
        connection.call(partial(_create, connection, address, made_with))
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
    if config.multi_tenancy_config.enabled != bool(tenant := address.options.tenant):
        raise BadInput(
            f"{address.name}: the collection {address.collection} "
            + (
                f"has no tenants; leave out {tenant=}"
                if tenant
                else "has tenants; add ?tenant=NAME"
            )
        )
    index: Any = (config.vector_config or {})["default"].vector_index_config
    wanted = _named_index(address)
    for name in ("ef_construction", "max_connections"):
        if wanted.get(name, getattr(index, name)) != getattr(index, name):
            raise MemoryFailure(
                f"{address.name}: the collection {address.collection} was created with "
                f"{name}={getattr(index, name)}, which cannot be changed to {wanted[name]}: leave "
                f"{name}= out of the URL, or copy the procedures into a new collection (stepcraft "
                "memory copy)"
            )
    if wanted.get("ef", index.ef) != index.ef:
        hnsw = Reconfigure.VectorIndex.hnsw(ef=wanted["ef"])
        await objects.config.update(
            vector_config=Reconfigure.Vectors.update(name="default", vector_index_config=hnsw)
        )
    return made_with


async def _create(
    connection: Connection, address: Address, made_with: MadeWith, _: Objects
) -> None:
    client, options = await connection.client(), address.options
    index = {**_INDEX, **_named_index(address)}
    quantizer = getattr(Configure.VectorIndex.Quantizer, options.quantizer or "none")
    await client.collections.create(
        address.collection,
        description=json.dumps(asdict(made_with), ensure_ascii=False),
        properties=[
            Property(
                name=name,
                data_type=kind,
                index_searchable=name in SEARCHED,
                index_filterable=name == "source",
            )
            for name, kind in _TYPES.items()
        ],
        vector_config=Configure.Vectors.self_provided(
            quantizer=quantizer() if options.quantizer else None,
            vector_index_config=Configure.VectorIndex.hnsw(
                distance_metric=VectorDistances.COSINE,
                ef=index["ef"],
                ef_construction=index["ef_construction"],
                max_connections=index["max_connections"],
            ),
        ),
        replication_config=Configure.replication(factor=options.replicas)
        if options.replicas
        else None,
        multi_tenancy_config=Configure.multi_tenancy() if options.tenant else None,
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


def _named_index(address: Address) -> dict[str, int]:
    return {name: value for name in _INDEX if (value := getattr(address.options, name))}


def _agreed_embedder(
    address: Address, made_with: MadeWith, wanted: "str | Embeddings | None", template: str | None
) -> Embedder | None:
    if template is not None and checked_template(template) != made_with.template:
        raise MemoryFailure(
            f"{address.name} was made with template {made_with.template!r}, not {template!r}: "
            "leave it out, or fill a new collection"
        )
    try:
        embedder = resolve_embeddings(made_with.embeddings if wanted is None else wanted)
    except BadInput as error:
        if wanted is not None:
            raise
        raise MemoryFailure(
            f"{address.name} was made with embeddings {made_with.embeddings!r} ({error}); "
            "give them as embeddings=, or 'none' to search by words alone"
        ) from error
    if embedder and embedder.name != made_with.embeddings:
        raise MemoryFailure(
            f"{address.name} was made with embeddings {made_with.embeddings!r}, not "
            f"{embedder.name!r}: open it with {made_with.embeddings!r}, or fill a new collection"
        )
    return embedder
