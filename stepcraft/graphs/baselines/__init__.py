"""The baselines that the methods are compared with: graphs of one model call, and an agent."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepcraft.graphs.baselines.cot import CotContext, build_cot
    from stepcraft.graphs.baselines.direct import DirectContext, build_direct
    from stepcraft.graphs.baselines.few_shot import FewShotContext, build_few_shot
    from stepcraft.graphs.baselines.rag import RagContext, build_rag
    from stepcraft.graphs.baselines.react import ReactContext, build_react

_HOME = {
    "CotContext": "cot",
    "DirectContext": "direct",
    "FewShotContext": "few_shot",
    "RagContext": "rag",
    "ReactContext": "react",
    "build_cot": "cot",
    "build_direct": "direct",
    "build_few_shot": "few_shot",
    "build_rag": "rag",
    "build_react": "react",
}

__all__ = [
    "CotContext",
    "DirectContext",
    "FewShotContext",
    "RagContext",
    "ReactContext",
    "build_cot",
    "build_direct",
    "build_few_shot",
    "build_rag",
    "build_react",
]


def __getattr__(name: str) -> object:
    """Import a baseline when it is first used, because LangChain's agents, which only `react` needs, import slowly."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
