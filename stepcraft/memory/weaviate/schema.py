"""How a collection of procedures is laid out in Weaviate, and whether one that is there is such a collection."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import weaviate
from weaviate.classes.config import Configure, DataType, Property, VectorDistances
from weaviate.collections.classes.config import CollectionConfig

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.memory.vectors import MadeWith
from stepcraft.memory.weaviate.url import Place

SEARCHED = ("input", "output", "steps", "cjk")
"""The properties whose words are searched."""

CONTENT = ("input", "output", "steps", "source", "metadata")
"""The properties that a procedure is made of."""

_TYPES = {
    "input": DataType.TEXT,
    "output": DataType.TEXT,
    "steps": DataType.TEXT_ARRAY,
    "source": DataType.TEXT,
    "metadata": DataType.TEXT,
    "created": DataType.DATE,
    "cjk": DataType.TEXT,
}
_ABOUT = "Procedures of stepcraft, made with "


def made_with(client: weaviate.WeaviateClient, place: Place) -> MadeWith | None:
    """What the collection was made with, as its description says; None if there is none.

    Raises:
        MemoryFailure: the collection has another shape, or was not made by stepcraft.
    """
    if not client.collections.exists(place.collection):
        return None
    config = client.collections.use(place.collection).config.get()
    _check_shape(config, place)
    try:
        found = json.loads((config.description or "").removeprefix(_ABOUT))
        return MadeWith(str(found["embeddings"]), int(found["dimensions"]), str(found["template"]))
    except (ValueError, LookupError, TypeError) as error:
        raise MemoryFailure(
            f"the collection {place.collection} does not say which embeddings it was made with, so that stepcraft "
            "did not make it; name another one"
        ) from error


def make(client: weaviate.WeaviateClient, place: Place, wanted: MadeWith) -> None:
    """Make the collection."""
    client.collections.create(
        place.collection,
        description=_ABOUT + json.dumps(asdict(wanted), ensure_ascii=False),
        properties=[_property(name, kind) for name, kind in _TYPES.items()],
        vector_config=Configure.Vectors.self_provided(
            quantizer=_quantizer(place.quantizer),
            vector_index_config=Configure.VectorIndex.hnsw(distance_metric=VectorDistances.COSINE),
        ),
        replication_config=Configure.replication(factor=place.replicas) if place.replicas else None,
        multi_tenancy_config=Configure.multi_tenancy(enabled=True) if place.tenant else None,
    )


def check_tenant(client: weaviate.WeaviateClient, place: Place, *, create: bool) -> None:
    """Look whether the tenant is there, and make it if so told.

    Raises:
        BadInput: there is no such tenant.
    """
    tenants = client.collections.use(place.collection).tenants
    if not place.tenant or tenants.exists(place.tenant):
        return
    if not create:
        raise BadInput(
            f"{place.name}: the collection {place.collection} has no tenant {place.tenant!r}; "
            "check the name, or import procedures into it first"
        )
    tenants.create(place.tenant)


def _property(name: str, kind: DataType) -> Property:
    text = kind is not DataType.DATE
    return Property(
        name=name,
        data_type=kind,
        index_searchable=(name in SEARCHED) if text else None,
        index_filterable=name == "source",
    )


def _quantizer(name: str) -> Any:  # noqa: ANN401 - the client's classes for it are private
    kinds = Configure.VectorIndex.Quantizer
    made: Mapping[str, Any] = {"rq": kinds.rq, "pq": kinds.pq, "bq": kinds.bq, "sq": kinds.sq}
    return made[name]() if name else None


def _check_shape(config: CollectionConfig, place: Place) -> None:
    found = {item.name: item.data_type for item in config.properties}
    wrong = [
        f"its property {name} is {found[name].value}, not {kind.value}"
        if name in found
        else f"it has no property {name} ({kind.value})"
        for name, kind in _TYPES.items()
        if found.get(name) is not kind
    ]
    wrong += _wrong_vector(config)
    if wrong:
        raise MemoryFailure(
            f"the collection {place.collection} has another shape: {'; '.join(wrong)}; name another collection"
        )
    if config.multi_tenancy_config.enabled and not place.tenant:
        raise BadInput(f"{place.name} names no tenant, and the collection has tenants; add ?tenant=NAME")
    if place.tenant and not config.multi_tenancy_config.enabled:
        raise BadInput(
            f"{place.name} names a tenant, and the collection has none; leave out tenant={place.tenant}"
        )


def _wrong_vector(config: CollectionConfig) -> list[str]:
    vector = (config.vector_config or {}).get("default")
    if vector is None:
        return ["it has no vector called default"]
    metric = getattr(vector.vector_index_config, "distance_metric", None)
    return (
        [] if metric is VectorDistances.COSINE else [f"its vectors are compared by {metric}, not by cosine"]
    )
