"""Figures that the papers report, for the benchmarks that they measured.

Shares are from 0 to 1, as ours are. The figures stand beside ours for orientation: models, prompts and retrieved
passages differ.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One figure of a paper."""

    paper: str
    method: str
    score: str
    """The name of our score where there is one that measures the same, else the paper's."""
    value: float
    model: str = ""
    """As the paper names it; "" where its figure is not of one model alone or none is named beside it."""


def _wins(of: str, wins: float, losses: float, ties: float) -> tuple[Figure, ...]:
    shares = {"wins": wins, "losses": losses, "ties": ties}
    return tuple(
        Figure("AAG", "AAG against RAG", f"{name} ({of})", share) for name, share in shares.items()
    )


def _rpg(score: str, value: float, *more: Figure) -> tuple[Figure, ...]:
    return (Figure("RPG", "RPG", score, value, "Llama2-7B"), *more)


def _unselected(score: str, value: float) -> Figure:
    return Figure("RPG", "RPG without paragraph selection", score, value, "Llama2-7B")


_RAT = "RAT"
_EXECUTABLE = (
    Figure(_RAT, "baseline", "executable", 0.193),
    Figure(_RAT, "RAT", "executable", 0.767),
)
_LCSTEP = _wins("LCStep, which LGStep takes the place of", 0.696, 0.125, 0.179)
_RECIPENLG = _wins("RecipeNLG", 0.857, 0.076, 0.067)
_CHAMP = _wins("CHAMP", 0.537, 0.315, 0.148)
_FIGURES: dict[str, tuple[Figure, ...]] = {
    "humaneval": (
        Figure(_RAT, "baseline", "pass@1", 0.573, "GPT-4"),
        Figure(_RAT, "RAT", "pass@1", 0.693, "GPT-4"),
        Figure(_RAT, "CoT (ablation)", "pass@1", 0.473),
        Figure(_RAT, "RAG-1 (ablation)", "pass@1", 0.506),
        Figure(_RAT, "CoT+RAG (ablation)", "pass@1", 0.539),
        Figure(_RAT, "RAT, non-causal (ablation)", "pass@1", 0.573),
        Figure(_RAT, "RAT, causal (ablation)", "pass@1", 0.592),
    ),
    "gsm8k": (
        Figure(_RAT, "baseline", "right", 0.659, "GPT-3.5"),
        Figure(_RAT, "RAT", "right", 0.714, "GPT-3.5"),
    ),
    "gsm-hard": (
        Figure(_RAT, "baseline", "right", 0.513, "GPT-3.5"),
        Figure(_RAT, "RAT", "right", 0.673, "GPT-3.5"),
    ),
    "textworld": _EXECUTABLE,
    "writing": (
        Figure(_RAT, "baseline", "TrueSkill", 24.4),
        Figure(_RAT, "RAT", "TrueSkill", 29.1),
    ),
    "asqa": _rpg(
        "ROUGE-Lsum",
        0.376,
        Figure("RPG", "RPG", "MAUVE", 0.844, "Llama2-7B"),
        _unselected("ROUGE-Lsum", 0.348),
    ),
    "2wikimultihopqa": _rpg("F1", 0.336, _unselected("F1", 0.302)),
    "popqa": _rpg("accuracy", 0.56),
    "pubhealth": _rpg("accuracy", 0.734, _unselected("accuracy", 0.723)),
    "lgstep-test": _LCSTEP,
    "lgstep-val": _LCSTEP,
    "recipenlg-test": _RECIPENLG,
    "recipenlg-val": _RECIPENLG,
    "champ-test": _CHAMP,
    "champ-val": _CHAMP,
}


def published(benchmark: str) -> tuple[Figure, ...]:
    """The papers' figures for a benchmark; none for questions of one's own."""
    return _FIGURES.get(benchmark, ())
