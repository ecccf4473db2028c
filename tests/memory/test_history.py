"""Versions of procedures: what becomes one, what stays, and what another memory and a file make of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stepcraft import BadInput, Procedure, open_memory
from stepcraft.memory.feedback import counts, with_vote
from stepcraft.memory.files import read_all, write_jsonl
from stepcraft.memory.history import MAX_VERSIONS, current, merged, restored, revised, versions
from stepcraft.memory.transfer import compare, copy
from tests.kitchen import dish

FIRST = dish(1)
APPROVAL = {"by": "Ana", "at": "2026-01-01", "thread": "1", "run": "2"}


def changed(number: int, **fields: object) -> Procedure:
    """Another text under the id of the first one."""
    return dish(number, id=FIRST.id, **fields)


def outputs(procedure: Procedure) -> list[str]:
    return [version["output"] for version in versions(procedure)]


def test_votes_and_links_belong_to_the_procedure() -> None:
    kept = with_vote(replace(FIRST, metadata={"also": ["a"]}), 1)
    added = merged(kept, changed(2, metadata={"also": ["b"]}))
    assert (counts(added), added.metadata["also"]) == ((1, 0), ["a", "b"])
    assert merged(kept, FIRST) == kept


def test_an_approval_belongs_to_its_text() -> None:
    kept = replace(
        FIRST, metadata={"approved": APPROVAL, "stale": "the page is gone", "built": {"model": "m"}}
    )
    assert merged(kept, FIRST) == kept
    assert merged(kept, replace(FIRST, source="a book")).metadata["approved"] == APPROVAL
    other = merged(kept, changed(2))
    assert other.metadata.keys() == {"history"}
    assert versions(other)[0]["metadata"] == kept.metadata
    assert revised(other, restored()(other)).metadata["approved"] == APPROVAL


def test_a_mark_alone_is_no_version() -> None:
    marked = revised(FIRST, replace(FIRST, metadata={"stale": "the page is gone"}))
    assert marked.metadata == {"stale": "the page is gone"}
    assert revised(marked, replace(marked, metadata={})) == FIRST


def test_the_users_own_metadata_is_part_of_a_version() -> None:
    kept = revised(replace(FIRST, metadata={"page": 7}), FIRST)
    assert [version["metadata"] for version in versions(kept)] == [{"page": 7}]


def test_an_update_keeps_votes_that_the_change_forgot() -> None:
    assert counts(revised(with_vote(FIRST, -1), changed(2))) == (0, 1)


def test_the_oldest_versions_go() -> None:
    kept = FIRST
    for number in range(2, MAX_VERSIONS + 4):
        kept = merged(kept, changed(number))
    assert outputs(kept) == [f"dish {number}" for number in range(3, MAX_VERSIONS + 3)]


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (0, "no version 0; its earlier versions are 1 to 1"),
        (2, "no version 2"),
        (-1, "no version -1"),
    ],
)
def test_a_version_that_there_is_not(number: int, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        restored(number)(merged(FIRST, changed(2)))
    with pytest.raises(BadInput, match="no earlier version; it has not been changed"):
        restored(number)(FIRST)


@pytest.mark.parametrize("broken", ["much", 7, [7], [{"output": "x"}], {"a": 1}, [None]])
def test_what_others_wrote_under_our_names_is_passed_over(broken: object) -> None:
    kept = replace(
        FIRST, metadata={"history": broken, "votes": broken, "stale": broken, "also": broken}
    )
    assert (versions(kept), counts(kept)) == ([], (0, 0))
    assert merged(kept, FIRST) == kept
    assert outputs(merged(kept, changed(2))) == ["dish 1"]
    assert current(kept)["output"] == "dish 1"


@pytest.mark.parametrize(
    "odd",
    [
        {"steps": 5},
        {"steps": "xyz"},
        {"steps": [5]},
        {"output": 5},
        {"source": 5},
        {"metadata": "x"},
    ],
)
def test_an_entry_with_values_of_other_kinds_is_no_version(odd: dict[str, object]) -> None:
    entry = {"output": "dish 0", "input": "flour", "steps": ["Bake."]}
    kept = replace(FIRST, metadata={"history": [entry, {**entry, **odd}]})
    assert outputs(kept) == ["dish 0"]
    assert revised(kept, restored()(kept)).steps == ("Bake.",)


@pytest.mark.parametrize("own", ["12", 12, {"likes": 12}, ["12"]])
def test_what_the_user_keeps_under_our_names_stays(own: object) -> None:
    imported = replace(FIRST, metadata={"votes": own, "history": own})
    rated = with_vote(merged(imported, changed(2)), 1)
    assert (counts(rated), outputs(rated)) == ((1, 0), ["dish 1"])
    entries = own if isinstance(own, list) else [own]
    assert [rated.metadata[name][:-1] for name in ("votes", "history")] == [entries, entries]
    again = merged(rated, changed(2, metadata={"votes": own, "history": own}))
    assert again == rated, "importing the file again takes no vote away"


def test_a_damaged_version_is_not_restored() -> None:
    entry = {"output": "dish 0", "input": "flour", "steps": []}
    with pytest.raises(BadInput, match="steps is empty"):
        restored()(replace(FIRST, metadata={"history": [entry]}))


def test_versions_and_votes_are_copied_exported_and_compared(tmp_path: Path) -> None:
    with (
        open_memory(tmp_path / "a.db", embeddings="none") as ours,
        open_memory(tmp_path / "b.db", embeddings="none") as theirs,
    ):
        ours.add([FIRST, dish(3)])
        copy(ours, theirs)
        ours.add([changed(2)])
        ours.update(FIRST.id, lambda kept: with_vote(kept, 1))
        theirs.update(FIRST.id, lambda kept: with_vote(kept, -1))
        assert compare(ours, [changed(2), dish(3)]).equal, (
            "a file need not know of votes and versions"
        )
        report = copy(ours, theirs)
        assert (report.added, report.present, report.updated) == (0, 1, 1)
        assert copy(ours, theirs).present == 2
        both = theirs.get(FIRST.id)
        assert both
        assert (outputs(both), counts(both)) == (["dish 1"], (1, 1))
        write_jsonl(theirs, tmp_path / "c.jsonl")
        assert compare(theirs, read_all(tmp_path / "c.jsonl")).equal
        assert [kept.id for kept in compare(ours, read_all(tmp_path / "c.jsonl")).different] == [
            FIRST.id
        ]
