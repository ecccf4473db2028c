"""What a parent's state needs that runs several graphs of this package, one after the other or in one superstep."""

from typing import Annotated

from typing_extensions import TypedDict

from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Usage, add_usage, add_warnings
from stepcraft.nodes.retrieve import distinct_ids

__all__ = ["MergedResults", "add_answer", "add_usage", "add_warnings", "merge_evidence"]


def merge_evidence(left: list[Evidence], right: list[Evidence]) -> list[Evidence]:
    """A reducer: the passages of both lists in order, each once and with its better score.

    Two sources may have the same id for different passages; the later one gets a suffix that depends on its text.
    """
    merged: dict[str, Evidence] = {}
    for passage in (passage for found in distinct_ids([left or [], right or []]) for passage in found):
        known = merged.setdefault(passage["id"], passage)
        known["score"] = max(known["score"], passage["score"])
    return list(merged.values())


def add_answer(left: list[str], right: str | list[str]) -> list[str]:
    """A reducer: a list with the answer of one more graph, or with several."""
    return [*(left or []), *([right] if isinstance(right, str) else right)]


class MergedResults(TypedDict, total=False):
    """Keys for the state of a parent that runs several graphs; inherit from it."""

    evidence: Annotated[list[Evidence], merge_evidence]
    """The passages of all graphs, each once."""
    warnings: Annotated[list[str], add_warnings]
    """The warnings of all graphs, each once."""
    usage: Annotated[Usage, add_usage]
    """The model calls and tokens of all graphs, in total and by node."""
