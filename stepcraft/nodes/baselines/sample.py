"""Pick some procedures of the memory at random, as examples."""

import asyncio
import heapq
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from stepcraft.concurrency import within
from stepcraft.contexts.baselines import FewShotContext
from stepcraft.errors import StepcraftError, without_secrets
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budget
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory

Opened = Callable[[FewShotContext], ProcedureMemory]


class SampleNode(Runnable[Any, dict[str, Any]]):
    """The same seed picks the same procedures of a memory, in whatever order it keeps them. It reads them all."""

    def __init__(self, opened: Opened, settings: type[FewShotContext]) -> None:
        self.name = "sample"
        self.opened = opened
        self.settings = settings

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """The examples; without any where the memory fails or takes too long."""
        context = self.settings.current()
        seconds = Budget.of("sample", input, context).seconds_left()
        try:
            return {"evidence": within(seconds, lambda: _sampled(self.opened(context), context))}
        except TimeoutError:
            return _without("it took longer than the deadline allows")
        except StepcraftError as failure:
            return _without(without_secrets(str(failure)))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        return await asyncio.to_thread(self.invoke, input, config)


def _sampled(memory: ProcedureMemory, context: FewShotContext) -> list[Evidence]:
    seed, k = context.seed, context.k

    def drawn(procedure: Procedure) -> bytes:
        return blake2b(f"{seed}/{procedure.id}".encode()).digest()

    return [_example(procedure, memory.template) for procedure in heapq.nsmallest(k, memory, key=drawn)]


def _example(procedure: Procedure, template: str) -> Evidence:
    return Evidence(
        id=procedure.id,
        title=procedure.output,
        text=procedure.text(template),
        source=procedure.source,
        score=0.0,
    )


def _without(why: str) -> dict[str, Any]:
    return {"evidence": [], "warnings": [f"sample: there are no examples: {why}"]}
