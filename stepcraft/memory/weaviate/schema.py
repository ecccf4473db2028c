"""The layout of a collection of procedures in Weaviate: creating one, and agreeing with an existing one."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from weaviate.classes.config import Configure, DataType, Property, Reconfigure, VectorDistances
from weaviate.collections.classes.config import CollectionConfig

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Embedder
from stepcraft.memory.procedure import TEMPLATE, checked_template
from stepcraft.memory.protocol import MadeWith
from stepcraft.memory.weaviate.connection import Connection, Session
from stepcraft.memory.weaviate.url import Address, IndexSettings
from stepcraft.models.embeddings import VARIABLE, resolve_embeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

SEARCHED = ("input", "output", "steps", "cjk")
"""The properties whose words are searched."""

CONTENT = ("input", "output", "steps", "source", "metadata")
"""The properties that make up a procedure."""

DEFAULT_INDEX = IndexSettings(ef=1024, ef_construction=256, max_connections=64)
"""The HNSW settings of a new collection.

Procedures of one domain lie close together, where Weaviate's own defaults miss many of the nearest: recall@10 of
0.86 among 100,000 procedures and 0.77 among 1,000,000. These settings find 0.987 among 100,000 (ef=512: 0.975) for a
few milliseconds a search, where a run spends seconds in the model.
"""

_TYPES = {
    "input": DataType.TEXT,
    "output": DataType.TEXT,
    "steps": DataType.TEXT_ARRAY,
    "source": DataType.TEXT,
    "metadata": DataType.TEXT,
    "created": DataType.DATE,
    "cjk": DataType.TEXT,
}
_DESCRIPTION = "Procedures of stepcraft, made with "


def open_collection(
    connection: Connection,
    address: Address,
    embeddings: "str | Embeddings | None",
    template: str | None,
    *,
    create: bool,
) -> tuple[Embedder | None, MadeWith]:
    """Open the collection, created if it is missing, and return its embedder and what it was made with.

    Raises:
        BadInput: there is no such collection, tenant or embedding model.
        MemoryFailure: the collection has another shape or index, or was made with other embeddings or another
            template.
    """
    found = connection.call(lambda session: _made_with(session, address))
    asked = embeddings if embeddings is not None else os.environ.get(VARIABLE) or None
    if found is None:
        if not create:
            raise BadInput(
                f"{address.name}: there is no collection {address.collection}; check the name, or import procedures first"
            )
        embedder = resolve_embeddings(asked)
        dimensions = len(embedder.embed_query("procedure")) if embedder else 0
        made_with = MadeWith(
            embedder.name if embedder else "none",
            dimensions,
            checked_template(template or TEMPLATE),
        )
        connection.call(lambda session: _create(session, address, made_with))
    else:
        made_with = found
        embedder = _agreed_embedder(address, made_with, asked, template)
    if address.tenant:
        connection.call(lambda session: _open_tenant(session, address, create=create))
    return embedder, made_with


async def _made_with(session: Session, address: Address) -> MadeWith | None:
    """What the collection was made with, as its description says; None if there is no collection."""
    if not await session.client.collections.exists(address.collection):
        return None
    collection = session.client.collections.use(address.collection)
    config = await collection.config.get()
    _check_shape(config, address)
    try:
        found = json.loads((config.description or "").removeprefix(_DESCRIPTION))
        made_with = MadeWith(
            str(found["embeddings"]), int(found["dimensions"]), str(found["template"])
        )
    except (ValueError, LookupError, TypeError) as error:
        raise MemoryFailure(
            f"the collection {address.collection} does not say which embeddings it was made with, so that stepcraft "
            "did not make it; name another one"
        ) from error
    if ef := _changed_ef(config, address):
        await collection.config.update(
            vector_config=Reconfigure.Vectors.update(
                name="default", vector_index_config=Reconfigure.VectorIndex.hnsw(ef=ef)
            )
        )
    return made_with


def _changed_ef(config: CollectionConfig, address: Address) -> int | None:
    """The `ef` to set, None if it is as the URL says.

    Raises:
        MemoryFailure: the URL names a value that cannot be changed in an existing collection.
    """
    index = config.vector_config["default"].vector_index_config if config.vector_config else None
    found = {name: getattr(index, name, None) for name in asdict(address.index)}
    for name, wanted in asdict(address.index).items():
        if wanted not in (None, found[name]) and (name != "ef" or found["ef"] is None):
            raise MemoryFailure(
                f"{address.name}: the collection {address.collection} was created with {name}={found[name]}, which "
                f"cannot be changed to {wanted}: leave {name}= out of the URL, or copy the procedures into a new "
                "collection (stepcraft memory copy)"
            )
    return address.index.ef if address.index.ef != found["ef"] else None


async def _create(session: Session, address: Address, made_with: MadeWith) -> None:
    named = {name: value for name, value in asdict(address.index).items() if value is not None}
    index = replace(DEFAULT_INDEX, **named)
    kinds = Configure.VectorIndex.Quantizer
    quantizers: Mapping[str, Any] = {"rq": kinds.rq, "pq": kinds.pq, "bq": kinds.bq, "sq": kinds.sq}
    await session.client.collections.create(
        address.collection,
        description=_DESCRIPTION + json.dumps(asdict(made_with), ensure_ascii=False),
        properties=[
            Property(
                name=name,
                data_type=kind,
                index_searchable=None if kind is DataType.DATE else name in SEARCHED,
                index_filterable=name == "source",
            )
            for name, kind in _TYPES.items()
        ],
        vector_config=Configure.Vectors.self_provided(
            quantizer=quantizers[address.quantizer]() if address.quantizer else None,
            vector_index_config=Configure.VectorIndex.hnsw(
                distance_metric=VectorDistances.COSINE,
                ef=index.ef,
                ef_construction=index.ef_construction,
                max_connections=index.max_connections,
            ),
        ),
        replication_config=Configure.replication(factor=address.replicas)
        if address.replicas
        else None,
        multi_tenancy_config=Configure.multi_tenancy(enabled=True) if address.tenant else None,
    )


async def _open_tenant(session: Session, address: Address, *, create: bool) -> None:
    tenants = session.client.collections.use(address.collection).tenants
    if await tenants.exists(address.tenant):
        return
    if not create:
        raise BadInput(
            f"{address.name}: the collection {address.collection} has no tenant {address.tenant!r}; "
            "check the name, or import procedures into it first"
        )
    await tenants.create(address.tenant)


def _check_shape(config: CollectionConfig, address: Address) -> None:
    found = {item.name: item.data_type for item in config.properties}
    wrong = [
        f"its property {name} is {found[name].value}, not {kind.value}"
        if name in found
        else f"it has no property {name} ({kind.value})"
        for name, kind in _TYPES.items()
        if found.get(name) is not kind
    ]
    vector = (config.vector_config or {}).get("default")
    if vector is None:
        wrong.append("it has no vector called default")
    elif (
        metric := getattr(vector.vector_index_config, "distance_metric", None)
    ) is not VectorDistances.COSINE:
        wrong.append(f"its vectors are compared by {metric}, not by cosine")
    if wrong:
        raise MemoryFailure(
            f"the collection {address.collection} has another shape: {'; '.join(wrong)}; name another collection"
        )
    if config.multi_tenancy_config.enabled and not address.tenant:
        raise BadInput(
            f"{address.name} names no tenant, and the collection has tenants; add ?tenant=NAME"
        )
    if address.tenant and not config.multi_tenancy_config.enabled:
        raise BadInput(
            f"{address.name} names a tenant, and the collection has none; leave out tenant={address.tenant}"
        )


def _agreed_embedder(
    address: Address, made_with: MadeWith, asked: "str | Embeddings | None", template: str | None
) -> Embedder | None:
    if template is not None and checked_template(template) != made_with.template:
        raise MemoryFailure(
            f"{address.name} was made with template {made_with.template!r}, not {template!r}: "
            "leave it out, or fill a new collection"
        )
    if asked is None:
        try:
            return resolve_embeddings(made_with.embeddings)
        except BadInput as error:
            raise MemoryFailure(
                f"{address.name} was made with embeddings {made_with.embeddings!r} ({error}); "
                "give them as embeddings=, or 'none' to search by words alone"
            ) from error
    embedder = resolve_embeddings(asked)
    if embedder and embedder.name != made_with.embeddings:
        raise MemoryFailure(
            f"{address.name} was made with embeddings {made_with.embeddings!r}, not {embedder.name!r}: "
            f"open it with {made_with.embeddings!r}, or fill a new collection"
        )
    return embedder
