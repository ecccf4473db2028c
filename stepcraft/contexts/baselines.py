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

LIKE_EXAMPLES = """\
Answer the question. The evidence holds procedures for other goals, picked at random: they show how
detailed a good procedure is and what it looks like, not what to say. Where the question asks how
something is done, write a procedure like them; else answer it as it asks. Do not mention the
examples."""

STEP_BY_STEP = """\
Answer the question from what you know. First think it through step by step in writing; then answer
it for a reader who sees the answer alone."""

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


class CotContext(Settings):
    """The settings of one run of the chain-of-thought baseline."""

    answer_instructions: str = instructions("answer", STEP_BY_STEP)


class RagContext(SearchSettings):
    """The settings of one run of RAG."""

    k: int = in_nodes(5, "retrieve", ge=1, le=50)
    """Passages that the search returns."""
    answer_instructions: str = instructions("answer", FROM_EVIDENCE)


class FewShotContext(SearchSettings):
    """The settings of one run of the few-shot baseline."""

    k: int = in_nodes(3, "sample", ge=1, le=50)
    """Procedures that are shown."""
    sample_seed: int = in_nodes(0, "sample")
    """Seed of the random choice of procedures."""
    answer_instructions: str = instructions("answer", LIKE_EXAMPLES)


class ReactContext(SearchSettings):
    """The settings of one run of the agent."""

    max_searches: int = in_nodes(5, "agent", ge=1, le=50)
    """Limit on the searches of a run."""
    agent_instructions: str = instructions("agent", AGENT)
    answer_instructions: str = instructions("answer", FROM_EVIDENCE)
