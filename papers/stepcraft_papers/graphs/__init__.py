"""The papers' algorithms and baselines, for comparison and reproduction."""

from stepcraft.graphs.registry import GraphInfo

_CONTEXTS = "stepcraft_papers.contexts"

AAG_PAPER = GraphInfo(
    "stepcraft_papers.graphs.aag:build_aag_paper",
    f"{_CONTEXTS}:AagPaperContext",
    "AAG as its paper has it: questions, answers, critic and edits",
    ("question", "resources"),
    prefers_memory=True,
)
RAT_PAPER = GraphInfo(
    "stepcraft_papers.graphs.rat:build_rat_paper",
    f"{_CONTEXTS}:RatPaperContext",
    "RAT as its paper has it: thought by thought",
)
RPG_PAPER = GraphInfo(
    "stepcraft_papers.graphs.rpg:build_rpg_paper",
    f"{_CONTEXTS}:RpgPaperContext",
    "RPG as its paper has it: plan, select and answer in a loop",
    ("question", "kind"),
)
COT = GraphInfo(
    "stepcraft_papers.graphs.baselines:build_cot",
    f"{_CONTEXTS}:CotContext",
    "For arithmetic and logic: the model thinks step by step, then answers, in one call",
)
FEW_SHOT = GraphInfo(
    "stepcraft_papers.graphs.baselines:build_few_shot",
    f"{_CONTEXTS}:FewShotContext",
    "For a goal, in one call: written after the pattern of random procedures",
    prefers_memory=True,
)
