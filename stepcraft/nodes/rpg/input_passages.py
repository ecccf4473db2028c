"""Passages that a caller gives instead of letting them be searched for."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired

from langchain_core.documents import Document
from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.nodes.retrieve import evidence_of
from stepcraft.text.clean import clean


class Passage(TypedDict):
    """A passage as a caller gives it."""

    text: str
    id: NotRequired[str]
    title: NotRequired[str]
    source: NotRequired[str]


def given_passages(given: object) -> tuple[list[Evidence], list[str]]:
    """The passages as evidence, each under an id of its own, and what a reader should know of them.

    Raises:
        BadInput: they are no list, or one is neither a text nor a mapping that has one.
    """
    if not isinstance(given, Sequence) or isinstance(given, str | bytes):
        raise BadInput(f"passages must be a list, not {type(given).__name__}: {given!r:.80}")
    found = [_evidence(passage, place) for place, passage in enumerate(given)]
    told = [passage for passage in found if passage["text"].strip()]
    if not told:
        return [], ["the passages are empty; the answer is written without evidence"]
    empty = len(found) - len(told)
    return _told_apart(told), [f"{empty} of {len(found)} passages are empty and left out"] if empty else []


def _evidence(passage: object, place: int) -> Evidence:
    if isinstance(passage, str):
        return evidence_of(Document(clean(passage)))
    if isinstance(passage, Mapping) and isinstance(passage.get("text"), str):
        facts = {name: _plain(passage.get(name)) for name in ("id", "title", "source")}
        return evidence_of(Document(clean(passage["text"]), metadata=facts))
    raise BadInput(f"passages[{place}] must be a text or have one under 'text', not {passage!r:.80}")


def _plain(value: Any) -> str:  # noqa: ANN401 - whatever a caller gives
    return "" if value is None else clean(str(value)).strip()


def _told_apart(passages: Sequence[Evidence]) -> list[Evidence]:
    """The same passage once; another one under the same id gets a number behind it."""
    kept: dict[str, Evidence] = {}
    for passage in passages:
        id_, number = passage["id"], 1
        while id_ in kept and kept[id_]["text"] != passage["text"]:
            number += 1
            id_ = f"{passage['id']}#{number}"
        kept.setdefault(id_, {**passage, "id": id_})
    return list(kept.values())
