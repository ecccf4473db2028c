"""Passages and scripts for RPG, shared by the tests of nodes and graphs."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document

from tests.shelf import section

PASSAGES: list[Any] = [
    {
        "id": "bridge",
        "title": "Stari Most",
        "text": "The Old Bridge of Mostar was built in 1566. Its builder was Mimar Haldruvin. "
        "The bridge of Mostar was destroyed in 1993.",
        "source": "bridges.md",
    },
    {
        "id": "serun",
        "title": "Mimar Serun",
        "text": "Mimar Serun taught Mimar Haldruvin. Mimar Serun was born in Kayseri.",
    },
    {"id": "bread", "text": "Rye bread is baked slowly."},
]
QUESTION = {"question": "Who built the Old Bridge of Mostar, and who taught him?"}
GIVEN = {**QUESTION, "passages": PASSAGES}
PLANS = ["the builder of the Old Bridge of Mostar", "who taught Mimar Haldruvin", "the birth of Mimar Serun"]


def documents(_query: str) -> list[Document]:
    """The same passages as a retriever finds them."""
    return [
        Document(
            passage["text"],
            id=passage["id"],
            metadata={"title": passage.get("title", ""), "score": 1 - place / 10},
        )
        for place, passage in enumerate(PASSAGES)
    ]


def planner(plans: Sequence[str] = PLANS, combined: str = "Mimar Serun") -> Callable[[str, str], str]:
    """Plans in this order, then that the answer is complete; each segment names its plan, and the finish joins them.

    What it replies depends on its prompt alone, so that the order of the calls does not matter.
    """

    def reply(node: str, prompt: str) -> str:
        made = len(section(prompt, "plans").splitlines())
        if node == "plan":
            return plans[made] if made < len(plans) else "<complete>"
        if node == "outline":
            return "\n".join(["long", *(f"- {topic}" for topic in plans)])
        if node == "combine":
            return section(prompt, "text") if 'reply_format id="finish"' in prompt else combined
        said = f"On {section(prompt, 'plan') or 'the question'}: so it was"
        again = section(prompt, "text").count(said)
        return f"{said}{' again' * again}."

    return reply
