"""What a run searches, as the builder and the settings name it."""

from __future__ import annotations

from typing import Any

import pytest

from stepcraft.contexts.rpg import RpgContext
from stepcraft.retrieval.target import RetrievalTarget
from tests.kitchen import small_memory
from tests.shelf import Shelf


@pytest.mark.parametrize(
    ("memory", "sources", "named", "expected"),
    [
        ("object", None, {}, True),
        (None, "object", {}, True),
        ("object", "object", {}, True),
        (None, None, {}, False),
        ("m.db", None, {}, False),
        ("object", "corpus:docs", {}, False),
        ("object", None, {"memory": "other"}, False),
        (None, "object", {"sources": ["other"]}, False),
    ],
)
def test_only_objects_are_searched_without_a_thread_to_open_them(
    memory: str | None, sources: str | None, named: dict[str, Any], expected: bool
) -> None:
    target = RetrievalTarget.of(
        small_memory() if memory == "object" else memory,
        Shelf() if sources == "object" else sources,
        None,
        prefers_memory=False,
    )
    assert target.is_open(RpgContext(**named)) is expected
