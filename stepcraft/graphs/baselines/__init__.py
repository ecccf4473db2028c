"""What the methods are compared with: graphs of one call or one agent, with the same input and output keys."""

from stepcraft.graphs.baselines.cot import CotContext, build_cot
from stepcraft.graphs.baselines.direct import DirectContext, build_direct
from stepcraft.graphs.baselines.few_shot import FewShotContext, build_few_shot
from stepcraft.graphs.baselines.rag import RagContext, build_rag
from stepcraft.graphs.baselines.react import ReactContext, build_react

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
