"""Add the steps that a person approved to the run's memory, as a procedure for the goal."""

from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from stepcraft.contexts.aag import AagContext
from stepcraft.llm.resources import Resources
from stepcraft.memory.procedure import Procedure
from stepcraft.nodes.begin import store_of_run
from stepcraft.progress import emit, quoted
from stepcraft.secrets import masked_line

NO_RESOURCES = "nothing in particular"
"""The `input` of a procedure whose goal named no resources."""


def remember(
    state: Any, config: RunnableConfig, resources: Resources[AagContext]
) -> dict[str, Any]:
    """Add the steps to the memory; return the procedure's id, or "" with a warning on failure.

    A failure to remember the steps does not fail the run.
    """
    settings = resources.settings(state)
    approved = state["reviews"][-1]
    thread = str(config.get("configurable", {}).get("thread_id") or "")
    try:
        procedure = Procedure(
            input=state["task_resources"] or NO_RESOURCES,
            output=state["task"],
            steps=tuple(state["steps"]),
            source=f"aag thread {thread}".strip(),
            tags=settings.where,
            metadata={"approved": {"by": approved["by"], "at": approved["at"], "thread": thread}},
        )
        report = resources.target.memory(settings, store_of_run()).add([procedure])
    except GraphBubbleUp:
        raise
    except Exception as error:
        return _forgotten(resources.graph, masked_line(error) or type(error).__name__)
    if report.failed:
        return _forgotten(resources.graph, report.failed[0].reason)
    emit(resources.graph, "remember", f"Remembered the steps for {quoted(state['task'])}.")
    return {"remembered": procedure.id}


def _forgotten(graph: str, problem: str) -> dict[str, Any]:
    emit(graph, "remember", f"The steps were not remembered: {problem}")
    return {"remembered": "", "warnings": [f"the steps were not remembered: {problem}"]}
