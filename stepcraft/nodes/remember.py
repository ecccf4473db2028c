"""Add the steps that a person approved to the run's memory, as a procedure for the goal."""

from typing import Any

from langchain_core.runnables import RunnableConfig

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import StepcraftError
from stepcraft.llm.resources import Resources
from stepcraft.memory.procedure import Procedure
from stepcraft.nodes.begin import store_of_run
from stepcraft.progress import emit, quoted

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
    procedure = Procedure(
        input=state["task_resources"] or NO_RESOURCES,
        output=state["task"],
        steps=tuple(state["steps"]),
        source=f"aag thread {thread}".strip(),
        tags=settings.where,
        metadata={"approved": {"by": approved["by"], "at": approved["at"], "thread": thread}},
    )
    try:
        report = resources.target.memory(settings, store_of_run()).add([procedure])
        problem = report.failed[0].reason if report.failed else ""
    except StepcraftError as error:
        problem = str(error)
    if problem:
        emit(resources.graph, "remember", f"The steps were not remembered: {problem}")
        return {"remembered": "", "warnings": [f"the steps were not remembered: {problem}"]}
    emit(resources.graph, "remember", f"Remembered the steps for {quoted(state['task'])}.")
    return {"remembered": procedure.id}
