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
from stepcraft.memory.procedure import Procedure
from stepcraft.retrieval.target import RetrievalTarget


class SampleNode(Runnable[Any, dict[str, Any]]):
    """Chooses k procedures at random; the same seed chooses the same procedures, whatever their order in the memory.

    Every procedure of the memory is read. A memory that fails or takes too long gives no examples and a warning.

    Args:
        target: The memory of the graph.
    """

    def __init__(self, target: RetrievalTarget) -> None:
        self.name = "sample"
        self.target = target

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """The examples as evidence."""
        context = FewShotContext.current(input)
        seconds = Budget.of("sample", input, context).seconds_left()
        try:
            return {"evidence": within(seconds, partial(self._examples, context))}
        except TimeoutError:
            why = "it took longer than the deadline allows"
        except StepcraftError as failure:
            why = str(failure)
        return {"evidence": [], "warnings": [f"sample: there are no examples: {why}"]}

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        return await asyncio.wrap_future(in_thread(partial(self.invoke, input, config)))

    def _examples(self, context: FewShotContext) -> list[Evidence]:
        def order(procedure: Procedure) -> bytes:
            return blake2b(f"{context.seed}/{procedure.id}".encode()).digest()

        memory = self.target.open_memory(context)
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
