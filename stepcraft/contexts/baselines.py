"""The settings of the baselines, with the instructions of their nodes."""

from stepcraft.contexts.base import SearchSettings, Settings, in_nodes, instructions

DIRECT = (
    "Answer the question from what you know. Be exact: give the names, numbers, calls and settings "
    "that matter."
)

FROM_EVIDENCE = """\
Answer the question. The evidence holds what was found on it; it may be on something else, in part
or in whole.
Rely on the evidence where it speaks of what is asked, with its exact names, numbers, calls and
settings; where it is silent, say what you know. Answer every part of the question. Do not mention
the evidence."""

AGENT = """\
Answer the question. Search before you answer, and search again where what you found is not enough:
for each thing that the question needs, one short and specific query that names it in full. Where a
search finds nothing of use, try other words once. When you know enough, or no more searches are
made, answer every part of the question with exact names, numbers, calls and settings; where the
evidence is silent, say what you know. The answer goes to a reader who sees it alone: do not mention
searches or evidence."""


class DirectContext(Settings):
    """The settings of one run of the direct baseline."""

    answer_instructions: str = instructions("answer", DIRECT)


class RagContext(SearchSettings):
    """The settings of one run of RAG."""

    k: int = in_nodes(5, "retrieve", ge=1, le=50)
    """Passages that the search returns."""
    answer_instructions: str = instructions("answer", FROM_EVIDENCE)


class ReactContext(SearchSettings):
    """The settings of one run of the agent."""

    max_searches: int = in_nodes(5, "agent", ge=1, le=50)
    """Limit on the searches of a run."""
    agent_instructions: str = instructions("agent", AGENT)
    answer_instructions: str = instructions("answer", FROM_EVIDENCE)
