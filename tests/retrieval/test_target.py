"""What a run searches, as the builder and the settings name it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepcraft import BadInput
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


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sources whose names contain the values of variables that are named as secrets."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    specs = []
    for name in ("postgres", "rabbitmq"):
        monkeypatch.setenv(f"{name.upper()}_PASSWORD", name)
        (tmp_path / "docs" / name).mkdir(parents=True)
        (tmp_path / "docs" / name / "a.md").write_text(f"The {name} port.")
        specs.append(f"corpus:{tmp_path}/docs/{name}")
    return specs


def found(target: RetrievalTarget, **named: Any) -> list[tuple[str, str]]:
    """Return the label and the first passage of each source of a run."""
    return [
        (each.label.rpartition("/")[2], each.retriever.invoke("port")[0].page_content)
        for each in target.open(RpgContext(**named))
    ]


POSTGRES, RABBITMQ = ("***", "The postgres port."), ("*** (2)", "The rabbitmq port.")


@pytest.mark.parametrize("is_registered", [False, True])
def test_sources_that_look_alike_once_masked_are_all_searched(
    specs: list[str], monkeypatch: pytest.MonkeyPatch, is_registered: bool
) -> None:
    if is_registered:
        monkeypatch.setenv("STEPCRAFT_SOURCES", ";".join(specs))
    sources = None if is_registered else specs
    target = RetrievalTarget.of(None, sources, "none", prefers_memory=False)
    if not is_registered:
        assert found(target) == [POSTGRES, RABBITMQ]
        assert len(target.digests()) == 2
    assert found(target, sources=specs[::-1]) == [RABBITMQ, POSTGRES]
    assert found(target, sources=specs[1:]) == [RABBITMQ]
    masked = specs[0].replace("postgres", "***")
    assert found(target, sources=[f"{masked} (2)"]) == [RABBITMQ]  # as the error lists it
    with pytest.raises(BadInput) as error:
        found(target, sources=["corpus:docs"])
    assert f"registered are {masked}, {masked} (2) (" in str(error.value)
    assert not any(spec in str(error.value) for spec in specs)


def test_a_source_is_also_named_by_its_masked_spec(specs: list[str]) -> None:
    sources = [*specs[1:], "weaviate://me:Tr0ub4dor&3@host/Docs", Shelf(), Shelf()]
    target = RetrievalTarget.of(None, sources, "none", prefers_memory=False)
    masked = specs[1].replace("rabbitmq", "***")
    assert found(target, sources=[masked]) == [("***", "The rabbitmq port.")]
    target.check_names(RpgContext(sources=["weaviate://me:***@host/Docs", "Shelf-4"]))
    with pytest.raises(BadInput, match="may not name"):
        target.check_names(RpgContext(sources=["Shelf-2"]))


def test_a_spec_that_is_named_twice_has_one_digest(specs: list[str]) -> None:
    sources = {"first": specs[0], "second": specs[0]}
    target = RetrievalTarget.of(None, sources, "none", prefers_memory=False)
    assert [*target.digests()] == [specs[0].replace("postgres", "***")]
