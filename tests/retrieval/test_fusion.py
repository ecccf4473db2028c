"""Choosing the passages for several queries together."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from typing_extensions import override

from stepcraft import build_rpg
from stepcraft.errors import SourceFailure
from stepcraft.evidence import Evidence, key_of
from stepcraft.retrieval.fusion import fused
from stepcraft.retriever import Source
from tests.scripted import ScriptedModel
from tests.shelf import shown as seen


def passage(name: str) -> Evidence:
    return Evidence(id=name, title=name, text=f"About {name}.", source="", score=0.0)


def chosen(found: dict[str, str], k: int, **beside: str) -> dict[str, str]:
    lists = {query: [[*map(passage, names)]] for query, names in found.items()}
    result = fused(lists, k, lambda each: map(passage, beside.get(each["id"], "")))
    return {query: "".join(each["id"] for each in passages) for query, passages in result.items()}


def test_what_two_queries_find_displaces_what_one_ranks_low() -> None:
    assert chosen({"one": "abcx", "two": "defx"}, 3) == {"one": "abxc", "two": "de"}


def test_what_stands_beside_the_best_displaces_the_worst() -> None:
    assert chosen({"one": "abcd", "two": "aefg"}, 4, a="z") == {"one": "azbcd", "two": "ef"}


names = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8).map("".join)


@given(st.dictionaries(st.text(max_size=3), names, max_size=5), st.integers(1, 4))
def test_there_are_as_many_as_the_first_of_all_searches_and_none_twice(
    found: dict[str, str], k: int
) -> None:
    lists = {query: [[*map(passage, found[query])]] for query in found}
    result = fused(lists, k, lambda each: [passage(each["id"] * 2)])
    count = Counter(key_of(each) for passages in result.values() for each in passages)
    assert set(count.values()) <= {1}
    assert count.total() == len({name for each in found.values() for name in each[:k]})
    assert result.keys() == found.keys()


class Pages(Source):
    """Finds the pages whose word stands in the query; each is followed by its second half."""

    fails: bool = False

    @override
    def _search(self, query: str, k: int) -> list[Document]:
        words = [word for word in ("arch", "mayor", "granite", "toll") if word in query]
        return [Document(page_content=f"Of the {word}.", id=word) for word in words][:k]

    @override
    def beside(self, id: str) -> list[Document]:
        if self.fails:
            raise SourceFailure("the shelf is closed")
        return [Document(page_content=f"More of the {id}.", id=f"{id}-2")]


@pytest.mark.parametrize(
    ("fails", "shown"),
    [
        (False, ["More of the arch.", "Of the arch.", "Of the mayor."]),
        (True, ["Of the arch.", "Of the mayor.", "Of the toll."]),
    ],
)
def test_the_next_passage_of_a_page_that_all_queries_find_is_read_too(
    *, fails: bool, shown: list[str]
) -> None:
    plan = "KIND: long\n- arch, mayor\n- arch, toll"
    model = ScriptedModel([plan, "NOTHING", "It stands.", "NO CHANGE"])
    graph = build_rpg(model=model, sources=Pages(fails=fails))
    graph.invoke({"question": "arch?"})
    assert sorted(seen(model.calls[1].prompt, "passage")) == shown
