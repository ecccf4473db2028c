"""A collection of Weaviate opened as a memory: made, or agreed with."""

import os
from typing import TYPE_CHECKING

import weaviate

from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.index import Embedder
from stepcraft.memory.procedure import TEMPLATE, checked_template
from stepcraft.memory.vectors import MadeWith
from stepcraft.memory.weaviate.schema import check_tenant, made_with, make
from stepcraft.memory.weaviate.url import Place
from stepcraft.models.embeddings import VARIABLE, resolve_embeddings

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


def opened(
    client: weaviate.WeaviateClient,
    place: Place,
    embeddings: "str | Embeddings | None",
    template: str | None,
    *,
    create: bool,
) -> tuple[Embedder | None, MadeWith]:
    """The embedder and what the collection was made with; makes the collection if so told.

    Raises:
        BadInput: there is no such collection or tenant, or no such embedding model.
        MemoryFailure: the collection has another shape, or was made with other embeddings or another template.
    """
    found = made_with(client, place)
    asked = embeddings if embeddings is not None else os.environ.get(VARIABLE) or None
    if found is None:
        if not create:
            raise BadInput(
                f"{place.name}: there is no collection {place.collection}; check the name, or import procedures first"
            )
        embedder = resolve_embeddings(asked)
        dimensions = len(embedder.embed_query("procedure")) if embedder else 0
        name = embedder.name if embedder else "none"
        found = MadeWith(name, dimensions, checked_template(template or TEMPLATE))
        make(client, place, found)
    else:
        embedder = _agreed(place, found, asked, template)
    check_tenant(client, place, create=create)
    return embedder, found


def _agreed(
    place: Place, found: MadeWith, asked: "str | Embeddings | None", template: str | None
) -> Embedder | None:
    if template is not None and checked_template(template) != found.template:
        raise MemoryFailure(
            f"{place.name} was made with template {found.template!r}, not {template!r}: leave it out, or fill a new one"
        )
    if asked is None:
        try:
            return resolve_embeddings(found.embeddings)
        except BadInput as error:
            raise MemoryFailure(
                f"{place.name} was made with embeddings {found.embeddings!r} ({error}); give them as embeddings=, "
                "or 'none' to search by words alone"
            ) from error
    embedder = resolve_embeddings(asked)
    if embedder and embedder.name != found.embeddings:
        raise MemoryFailure(
            f"{place.name} was made with embeddings {found.embeddings!r}, not {embedder.name!r}: "
            f"open it with {found.embeddings!r}, or fill a new collection"
        )
    return embedder
