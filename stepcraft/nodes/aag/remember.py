"""Add the steps that a person approved to the memory of the run, as a procedure for the goal."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import uuid4

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.runtime import get_runtime

from stepcraft.access import caller
from stepcraft.concurrency import in_thread
from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, MemoryFailure, StepcraftError
from stepcraft.llm.resources import GraphResources
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.resolve import model_name
from stepcraft.nodes.aag.names import CheckedName, NamesNode
from stepcraft.nodes.aag.response import Review, approval
from stepcraft.progress import Said, quoted, tell
from stepcraft.secrets import without_secrets
from stepcraft.text.addressed import addressed
from stepcraft.text.clean import normalised

NO_RESOURCES = "nothing in particular"
"""The input of a procedure whose goal named no resources."""

_WRITERS = ("draft", "revise", "edit")
_LOOKED_AT = 10
"""How many procedures that are found for the goal may be an earlier version."""


class RememberNode(Runnable[Any, dict[str, Any]]):
    """Remembers the approved steps. Whatever prevents that costs the remembering and not the run.

    A procedure that the memory has is not added again. Where the memory has one for the same goal and resources that
    was remembered in this way, it takes the new steps, and what it was stands in the `history` of its metadata.

    Args:
        resources: What the graph was built with.
        names: Looks up the names of the steps.
    """

    def __init__(self, resources: GraphResources, names: NamesNode) -> None:
        self.name = self.node = "remember"
        self.description = "Add the approved steps to the memory, as a procedure for the goal."
        self.resources = resources
        self.names = names

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """The id of the procedure; "" with a warning where it was not remembered."""
        try:
            update: dict[str, Any] = {"remembered": self._remember(input, config or {})}
            said = Said(
                f"Remembered the steps for {quoted(input['question'])}.", {"remembered": update["remembered"]}
            )
        except StepcraftError as error:
            why = f"the steps were not remembered: {error}"
            update = {"remembered": "", "warnings": [why]}
            said = Said(f"{why[0].upper()}{why[1:]}.", {"warnings": [why]}, skipped=True)
        tell(self.resources.method, self.node, "finished", lambda: said)
        return update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, in a thread, because memories block."""
        return await asyncio.wrap_future(in_thread(partial(self.invoke, input, config)))

    def _remember(self, state: Mapping[str, Any], config: RunnableConfig) -> str:
        """Add the procedure, and return its id.

        Raises:
            BadInput: The run may not, nobody approved the steps, or something speaks against them and nobody forced it.
            MemoryFailure: The memory cannot be written.
        """
        context = self.resources.settings(state)
        self.resources.policy.check_remember()
        approved = approval(state)
        if approved is None:
            raise BadInput("nobody has approved them as they are now")
        flags = flags_of(state, self.names.check(state, context))
        if flags and not approved["force"]:
            raise BadInput(f'{"; ".join(flags)}; accept with "force": true to remember such steps')
        memory = self.resources.searched.open_memory(context)
        procedure = Procedure(
            input=state["resources_text"] or NO_RESOURCES,
            output=state["question"],
            steps=tuple(state["steps"]),
            **self._origin(approved, state, context, config),
        )
        return _add(memory, procedure)

    def _origin(
        self, approved: Review, state: Mapping[str, Any], context: Context, config: RunnableConfig
    ) -> dict[str, Any]:
        """Where the procedure comes from: its `source`, and in its metadata who approved what when."""
        info: Any = getattr(get_runtime(), "execution_info", None)
        run = str(getattr(info, "run_id", None) or config.get("metadata", {}).get("run_id") or "")
        thread = str(config.get("configurable", {}).get("thread_id") or "")
        wrote = [node for node in _WRITERS if node in state["usage"]["nodes"]] or ["draft"]
        choices = [self.resources.models.choice(node, context) for node in wrote]
        names = dict.fromkeys(one if isinstance(one, str) else model_name(one) for one in choices)
        at_server = caller()
        record = {
            "by": at_server.identity if at_server else approved["by"],
            "at": approved["at"],
            "run": run,
            "thread": thread,
            "model": without_secrets(", ".join(names)),
        }
        places = [f"{what} {name}" for what, name in (("run", run), ("thread", thread)) if name]
        source = " ".join([self.resources.method, ", ".join(places)]).strip()
        return {"source": source, "metadata": {"approved": record}}


def flags_of(state: Mapping[str, Any], names: Sequence[CheckedName]) -> list[str]:
    """What speaks against remembering the steps of a state, as clauses; empty if nothing does."""
    flags: list[str] = []
    if len(state["steps"]) < 2:
        flags.append("there are fewer than two steps")
    if _same(state["question"], state["resources_text"]):
        flags.append("the goal and the resources are the same")
    texts = [state["question"], state["resources_text"], *state["steps"]]
    if sentence := next(filter(None, map(addressed, texts)), ""):
        flags.append(f"a sentence gives instructions to a model: {quoted(sentence)}")
    if unknown := [f"{one['name']} (step {one['step']})" for one in names if not one["verified"]]:
        stand = "stands" if len(unknown) == 1 else "stand"
        flags.append(f"{', '.join(unknown)} {stand} neither in the goal nor in any procedure")
    return flags


def _add(memory: ProcedureMemory, procedure: Procedure) -> str:
    """Add a procedure once, or as the new version of one that was remembered earlier; return its id."""
    known = memory.get(procedure.id)
    if known is not None and _has_content_of(known, procedure):
        return known.id
    found = [one.procedure for one in memory.search(procedure.output, _LOOKED_AT, alpha=0)]
    for earlier in filter(None, [known, *found]):
        if earlier.metadata.get("approved") and _same_task(earlier, procedure):
            if _has_content_of(earlier, procedure):
                return earlier.id
            procedure = _next_version(earlier, procedure)
            break
    else:
        if known is not None:  # somebody has written something else under the id of this content
            procedure = replace(procedure, id=str(uuid4()))
    report = memory.add([procedure])
    if report.failed:
        raise MemoryFailure(report.failed[0].reason)
    return procedure.id


def _next_version(earlier: Procedure, procedure: Procedure) -> Procedure:
    """The procedure under the id of an earlier one, which becomes a version of it."""
    of_all = {name: earlier.metadata[name] for name in ("votes", "also") if name in earlier.metadata}
    version = {
        "output": earlier.output,
        "input": earlier.input,
        "steps": list(earlier.steps),
        "source": earlier.source,
        "metadata": {
            name: value for name, value in earlier.metadata.items() if name not in {*of_all, "history"}
        },
        "until": procedure.metadata["approved"]["at"],
    }
    past: Any = earlier.metadata.get("history")
    history = [*(past if isinstance(past, list) else []), version]
    return replace(procedure, id=earlier.id, metadata={**procedure.metadata, **of_all, "history": history})


def _same_task(one: Procedure, other: Procedure) -> bool:
    return _same(one.output, other.output) and _same(one.input, other.input)


def _has_content_of(one: Procedure, other: Procedure) -> bool:
    return (
        _same_task(one, other)
        and len(one.steps) == len(other.steps)
        and all(map(_same, one.steps, other.steps))
    )


def _same(one: str, other: str) -> bool:
    return normalised(one).casefold() == normalised(other).casefold()
