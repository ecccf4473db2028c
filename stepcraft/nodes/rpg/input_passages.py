"""Passages in the input of a run, which are used instead of a search."""

from collections.abc import Mapping, Sequence
from typing import NotRequired

from langchain_core.documents import Document
from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.nodes.retrieve import evidence_of
from stepcraft.schema import described
from stepcraft.secrets import excerpt
from stepcraft.text.clean import clean


@described
class Passage(TypedDict):
    """A passage in the input of a run."""

    text: str
    """The passage."""
    id: NotRequired[str]
    """What it is cited as in the result."""
    title: NotRequired[str]
    """The title that the model is shown."""
    source: NotRequired[str]
    """Where it is from: a file, an address."""


def given_passages(given: object) -> tuple[list[Evidence], list[str]]:
    """The passages as evidence, each under a unique id, and warnings on them.

    Raises:
        BadInput: They are not a list, or one is neither a text nor a mapping with a text.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise BadInput(f"passages must be a list, not {type(given).__name__}: {excerpt(given)}")
    read = [_evidence(passage, place) for place, passage in enumerate(given)]
    passages = [passage for passage in read if passage["text"].strip()]
    if not passages:
        return [], ["the passages are empty; the answer is written without evidence"]
    empty = len(read) - len(passages)
    warnings = [f"{empty} of {len(read)} passages are empty and left out"] if empty else []
    return _with_unique_ids(passages), warnings


def _evidence(passage: object, place: int) -> Evidence:
    if isinstance(passage, str):
        return evidence_of(Document(clean(passage)))
    if isinstance(passage, Mapping) and isinstance(passage.get("text"), str):
        labels = {name: passage.get(name) for name in ("id", "title", "source")}
        texts = {name: "" if label is None else clean(str(label)).strip() for name, label in labels.items()}
        return evidence_of(Document(clean(passage["text"]), metadata=texts))
    raise BadInput(f"passages[{place}] must be a text or have one under 'text', not {excerpt(passage)}")


def _with_unique_ids(passages: Sequence[Evidence]) -> list[Evidence]:
    """Each passage once; a different passage with the same id has a number appended to it."""
    kept: dict[str, Evidence] = {}
    for passage in passages:
        id_, number = passage["id"], 1
        while id_ in kept and kept[id_]["text"] != passage["text"]:
            number += 1
            id_ = f"{passage['id']}#{number}"
        kept.setdefault(id_, {**passage, "id": id_})
    return list(kept.values())
