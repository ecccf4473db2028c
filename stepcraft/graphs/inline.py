"""Functions of the state that need no thread."""

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import set_config_context


class InlineNode(Runnable[Any, Any]):
    """A router, or a node that asks nobody: LangGraph would give a plain function a thread each time."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.name = function.__name__
        self.function = function

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """What the function makes of the state."""
        with set_config_context(config or {}) as context:
            return context.run(self.function, input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`: there is nothing to wait for."""
        return self.invoke(input, config)
