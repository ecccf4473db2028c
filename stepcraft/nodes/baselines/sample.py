"""Choose random procedures of a memory as examples (the few-shot baseline)."""

import asyncio
import heapq
from functools import partial
from hashlib import blake2b
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from stepcraft.concurrency import in_thread, within
from stepcraft.contexts.baselines import FewShotContext
from stepcraft.errors import StepcraftError
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budget
from stepcraft.llm.resources import GraphResources
from stepcraft.memory.procedure import Procedure
from stepcraft.progress import Said, counted, tell


class SampleNode(Runnable[Any, dict[str, Any]]):
    """Chooses k procedures at random; the same seed chooses the same procedures, whatever their order in the memory.

    Every procedure of the memory is read. A memory that fails or takes too long gives no examples and a warning.

    Args:
        resources: What the graph was built with, the memory among it.
    """

    def __init__(self, resources: GraphResources) -> None:
        self.name = self.node = "sample"
        self.description = "Choose random procedures as examples."
        self.resources = resources

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """The examples as evidence."""
        context = FewShotContext.current(input)
        seconds = Budget.of("sample", input, context).seconds_left()
        try:
            examples = within(seconds, partial(self._examples, context))
        except TimeoutError:
            why = "it took longer than the deadline allows"
        except StepcraftError as failure:
            why = str(failure)
        else:
            tell(self.resources.method, self.node, "finished", lambda: _told(examples))
            return {"evidence": examples}
        warning = f"sample: there are no examples: {why}"
        tell(self.resources.method, self.node, "failed", lambda: Said(warning, {"reason": warning}))
        return {"evidence": [], "warnings": [warning]}

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        return await asyncio.wrap_future(in_thread(partial(self.invoke, input, config)))

    def _examples(self, context: FewShotContext) -> list[Evidence]:
        def order(procedure: Procedure) -> bytes:
            return blake2b(f"{context.seed}/{procedure.id}".encode()).digest()

        memory = self.resources.searched.open_memory(context)
        return [
            Evidence(
                id=procedure.id,
                title=procedure.output,
                text=procedure.text(memory.template),
                source=procedure.source,
                score=0.0,
            )
            for procedure in heapq.nsmallest(context.k, memory, key=order)
        ]


def _told(examples: list[Evidence]) -> Said:
    shown = examples[:5]
    return Said(
        f"Chose {counted(len(examples), 'procedure')} as examples.",
        {
            "found": len(examples),
            "titles": [one["title"] for one in shown],
            "ids": [one["id"] for one in shown],
        },
    )
