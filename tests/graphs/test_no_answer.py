"""A run that ends without an answer says why, and claims none."""

import pytest

from stepcraft.errors import NoAnswer
from stepcraft.graphs.registry import GRAPHS, context_of, get_graph


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_deadline_that_leaves_no_time_for_an_answer(graph: str) -> None:
    source = {"retriever": "memory"} if graph in {"rag", "rat", "rpg", "react"} else {}
    context = context_of(graph)(deadline_s=1e-9, **source)
    with pytest.raises(
        NoAnswer, match=r"^no \w+ (was|were) written: the run stopped early: the deadline of 1e-09 s"
    ) as ended:
        get_graph(graph, allow="*").invoke({"question": "bake bread"}, context=context)
    assert str(ended.value).endswith("has passed; raise deadline_s for a complete answer")
