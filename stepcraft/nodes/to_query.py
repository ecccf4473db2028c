"""Write a query for each part, for engines that truncate or misread long queries (RAT §3.2).

The model is not called if the statements in the parts serve as queries.
"""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.base import PartQuerySettings
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.nodes.finish import finishing_calls
from stepcraft.nodes.split import part_query
from stepcraft.text.sections import Section

_FORMAT = 'For each part one line "PART <number>: <query>", and nothing else.'
_QUERY = re.compile(
    r"^\W{0,6}PART[ \t]+(\d{1,4})\W{0,6}[:\uff1a][ \t*_]*(\S.*)$", re.MULTILINE | re.IGNORECASE
)


def ask_for_queries(state: Any, settings: PartQuerySettings) -> list[BaseMessage]:
    """Show the question and the parts that have no query yet."""
    parts = [
        Section("part", str(number), part["text"])
        for number, part in enumerate(state["parts"], 1)
        if not part["queries"]
    ]
    return prompt(
        settings.to_query_instructions, _FORMAT, "queries", [*asked(state["task"]), *parts]
    )


def read_queries(reply: str, state: Any, _settings: PartQuerySettings) -> dict[str, Any]:
    """Return the parts with their queries.

    If the reply omits a part, the text of the part is its query.

    Raises:
        UnreadableReply: There is no query in the reply.
    """
    queries = {int(number): query.strip() for number, query in _QUERY.findall(reply)}
    if not queries:
        raise UnreadableReply('there was no line "PART <number>: <query>" in it.')
    return _with_queries(state, queries)


def by_their_words(state: Any, _reason: str) -> dict[str, Any]:
    """Use the text of each part as its query."""
    return _with_queries(state, {})


def _with_queries(state: Any, queries: dict[int, str]) -> dict[str, Any]:
    return {
        "parts": [
            part
            if part["queries"]
            else {**part, "queries": [queries.get(number) or part_query(part["text"])]}
            for number, part in enumerate(state["parts"], 1)
        ]
    }


to_query = ModelNode(
    "to_query",
    ask_for_queries,
    read_queries,
    by_their_words,
    skip=lambda state, _settings: None if state["model_queries"] else {},
    keep_back=lambda settings: 1 + finishing_calls(settings),
    started="Writing a query for each part.",
)
