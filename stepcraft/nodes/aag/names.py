"""Look up the names in the code of the steps, without a model: a name that stands nowhere may be invented."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context
from stepcraft.errors import StepcraftError
from stepcraft.evidence import Evidence
from stepcraft.llm.resources import GraphResources
from stepcraft.memory.local import LocalMemory
from stepcraft.progress import Said, counted, tell
from stepcraft.schema import described
from stepcraft.text.names import mentions, names_in

_SHOWN = 5
"""How many procedures with a name are listed."""
_MOST = 200
"""How many names of a procedure are looked up."""
_MANY = 20_000
"""A memory of more procedures is not read for names."""


@described
class CheckedName(TypedDict):
    """A name in the code of the steps."""

    name: str
    """The name."""
    step: int
    """The number of the first step that has it."""
    found_in: list[str]
    """"goal", "resources", or the ids of procedures and passages that have it; the first five."""
    verified: bool
    """Whether it was found anywhere."""


class NamesNode(Runnable[Any, dict[str, Any]]):
    """Looks up each name of the steps in the goal, the resources and the evidence, then in the memory.

    A memory that is not kept in a file of this machine, or a very large one, is not read: there, a name is verified by
    the evidence alone.

    Args:
        resources: What the graph was built with.
    """

    def __init__(self, resources: GraphResources) -> None:
        self.name = self.node = "check_names"
        self.description = "Look up the names in the code of the steps, without a model."
        self.resources = resources

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """The names of the steps, in the order in which they come."""
        update = {"names": self.check(input, self.resources.settings(input))}
        tell(self.resources.method, self.node, "finished", lambda: _told(update))
        return update

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        names = await asyncio.to_thread(self.check, input, self.resources.settings(input))
        update = {"names": names}
        tell(self.resources.method, self.node, "finished", lambda: _told(update))
        return update

    def check(self, state: Mapping[str, Any], context: Context) -> list[CheckedName]:
        """The names of the steps in a state, in the order in which they come; it may block."""
        names = dict(islice(names_in(state["steps"]).items(), _MOST))
        found = {name: _found_at_hand(name, state) for name in names}
        missing = [name for name, places in found.items() if not places]
        found |= self._found_in_memory(missing, context)
        return [
            CheckedName(name=name, step=step, found_in=found[name][:_SHOWN], verified=bool(found[name]))
            for name, step in names.items()
        ]

    def _found_in_memory(self, names: Sequence[str], context: Context) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in names}
        try:
            memory = self.resources.searched.open_memory(context) if names else None
            if isinstance(memory, LocalMemory) and memory.count() <= _MANY:
                for procedure in memory:
                    text = "\n".join((procedure.output, procedure.input, *procedure.steps))
                    for name in names:
                        if mentions(text, name):
                            found[name].append(procedure.id)
        except StepcraftError:
            return found  # the searches have reported what is wrong with the memory
        return found


def _told(update: Mapping[str, Any]) -> Said:
    names: Sequence[CheckedName] = update["names"]
    unverified = [one["name"] for one in names if not one["verified"]]
    if not names:
        return Said("There are no names in the code of the steps.", {"names": 0}, skipped=True)
    outcome = f"{len(unverified)} unknown" if unverified else "all known"
    return Said(
        f"Looked up {counted(len(names), 'name')} in the code of the steps: {outcome}.",
        {"names": len(names), "unverified": unverified},
    )


def _found_at_hand(name: str, state: Mapping[str, Any]) -> list[str]:
    evidence: Sequence[Evidence] = state["evidence"]
    texts = {
        "goal": state["question"],
        "resources": state["resources_text"],
        **{passage["id"]: f"{passage['title']}\n{passage['text']}" for passage in evidence},
    }
    return [place for place, text in texts.items() if mentions(text, name)]
