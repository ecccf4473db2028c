"""The results reported in the papers, and our methods to compare them with.

Proportions range from 0 to 1, as in our results. Models, prompts and retrieved passages differ from
ours.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A row in one of a paper's tables."""

    label: str
    """The system that the paper measured."""
    method: str = ""
    """Our corresponding method, as `stepcraft eval run --methods` takes it."""
    value: float | None = None
    """The value in the paper, or None if it reports none."""
    score: str = ""
    """The name of our score if one measures the same thing, or else the paper's."""


def _wins(wins: float, losses: float, ties: float) -> tuple[Figure, ...]:
    shares = {"wins": wins, "losses": losses, "ties": ties}
    return tuple(Figure("AAG against RAG", "aag_paper", n, score) for score, n in shares.items())


FIGURES: dict[str, tuple[Figure, ...]] = {
    "humaneval": (
        Figure("GPT-4", "direct", 0.573, "pass@1"),
        Figure("RAT with GPT-4", "rat_paper", 0.693, "pass@1"),
    ),
    "gsm8k": (
        Figure("GPT-3.5", "direct", 0.659, "right"),
        Figure("RAT with GPT-3.5", "rat_paper", 0.714, "right"),
    ),
    "gsm-hard": (
        Figure("GPT-3.5", "direct", 0.513, "right"),
        Figure("RAT with GPT-3.5", "rat_paper", 0.673, "right"),
    ),
    "textworld": (
        Figure("without retrieval", "direct", 0.193, "executable"),
        Figure("RAT", "rat_paper", 0.767, "executable"),
    ),
    "writing": (
        Figure("without retrieval", "direct", 24.4, "TrueSkill"),
        Figure("RAT", "rat_paper", 29.1, "TrueSkill"),
    ),
    "asqa": (
        Figure("RPG with Llama2-7B", "rpg_paper", 0.376, "ROUGE-Lsum"),
        Figure("RPG with Llama2-7B", "rpg_paper", 0.844, "MAUVE"),
    ),
    "2wikimultihopqa": (Figure("RPG with Llama2-7B", "rpg_paper", 0.336, "F1"),),
    "popqa": (Figure("RPG with Llama2-7B", "rpg_paper", 0.56, "accuracy"),),
    "pubhealth": (Figure("RPG with Llama2-7B", "rpg_paper", 0.734, "accuracy"),),
    # Measured on LCStep, which LGStep takes the place of.
    "lgstep-test": _wins(0.696, 0.125, 0.179),
    "recipenlg-test": _wins(0.857, 0.076, 0.067),
    "champ-test": _wins(0.537, 0.315, 0.148),
}
"""The papers' results, by benchmark name."""

RAT_ABLATIONS = {
    "humaneval": (
        Figure("CoT", "cot", 0.473, "pass@1"),
        Figure("RAG-1", "rat_paper:query_from=question", 0.506, "pass@1"),
        Figure("CoT+RAG", "rat_paper:query_from=draft", 0.539, "pass@1"),
        Figure("RAT, non-causal", "rat_paper:causal=false", 0.573, "pass@1"),
        Figure("RAT", "rat_paper", 0.592, "pass@1"),
    )
}
"""Of RAT §4."""


def _rpg(score: str, whole: float, unselected: float) -> tuple[Figure, ...]:
    return (
        Figure("without plans", "rpg_paper:plan=false", None, score),
        Figure("without retrieval", "rpg_paper:retrieve=false", None, score),
        Figure("without paragraph selection", "rpg_paper:select=false", unselected, score),
        Figure("RPG", "rpg_paper", whole, score),
    )


RPG_ABLATIONS = {
    "asqa": _rpg("ROUGE-Lsum", 0.376, 0.348),
    "2wikimultihopqa": _rpg("F1", 0.336, 0.302),
    "pubhealth": _rpg("accuracy", 0.734, 0.723),
}
"""The results of RPG's ablation study, by benchmark."""

AAG_ABLATIONS = (
    Figure("RAG", "rag"),
    Figure("NOQG", "aag_paper:questions=false"),
    Figure("NOAG", "aag_paper:answers=false"),
    Figure("NOCR", "aag_paper:critic=false"),
    Figure("NOAG-NOCR", "aag_paper:answers=false:critic=false"),
    Figure("N = 3", "aag_paper:n_questions=3"),
    Figure("N = 6", "aag_paper:n_questions=6"),
    Figure("AAG", "aag_paper"),
)
"""A judge compares each of them with RAG; the paper reports values only for AAG."""
