"""The settings of the baselines, with the instructions of their nodes."""

from stepcraft.contexts.base import (
    LENGTHS,
    WRITE_INSTRUCTIONS,
    SearchSettings,
    Settings,
    in_nodes,
    instructions,
)

DIRECT = (
    "Answer the question from what you know. Be exact: give the names, numbers, calls and settings "
    "that matter. Where the question asks for a procedure, write its steps as a numbered list."
)

FROM_EVIDENCE = """\
Answer the question. The evidence holds what was found on it; it may be on something else, in part
or in whole.
Rely on the evidence where it speaks of what is asked, with its exact names, numbers, calls and
settings; where it is silent, say what you know. Answer every part of the question; where it
asks for a procedure, write its steps as a numbered list. Do not mention the evidence."""

AGENT = """\
Answer the question from what you find with the search tool. Search before you answer, and search
again as often as what you found is not enough: for each thing that the answer needs, one short and
specific query that names it in full. You can make several searches at once, up to {most} in all, in
as many rounds as you like. Where a search finds nothing of use, try other words. When you know
enough, write the answer, and write it by the instructions below."""


class DirectContext(Settings):
    """The settings for a run of the direct baseline."""

    answer_instructions: str = instructions("answer", DIRECT)


class RagContext(SearchSettings):
    """The settings for a run of RAG."""

    answer_instructions: str = instructions("answer", FROM_EVIDENCE)


class ReactContext(SearchSettings):
    """The settings for a run of the ReAct agent."""

    max_searches: int = in_nodes(30, "agent", ge=1, le=200)
    """Maximum number of searches in a run; the agent is told this number. After the round of
    searches that reaches it, the agent is told to answer.
    """
    agent_instructions: str = instructions("agent", AGENT)
    """Instructions to the agent; {most} is replaced by `max_searches`."""
    answer_instructions: str = instructions("answer", f"{WRITE_INSTRUCTIONS}\n{LENGTHS['full']}")
    """Instructions for writing the answer, which the agent also receives."""
