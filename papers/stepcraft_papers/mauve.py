"""MAUVE: how similar a method's answers are to right ones (Pillutla et al. 2021; RPG §4).

It compares two sets of texts by their features and says nothing about a single answer. The
published scores use features from GPT-2 large and thousands of texts; scores from other features or
fewer texts can only be used to compare methods within one evaluation.
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.directory import read_outcomes
from stepcraft.index import unit_vectors
from stepcraft.models.embeddings import resolve_embeddings

GPT2 = "gpt2-large"
"""The model for the features in the published scores; it requires torch and a download."""
_FEWEST = 100
"""With fewer texts, the library forms fewer than ten clusters and its score is arbitrary."""
_SEED = 25
"""The library's default seed."""


def mauve_scores(directory: Path, features: str = GPT2) -> dict[str, float]:
    """Return the MAUVE score of each method, from 0 to 1; higher is closer to the right answers.

    Each text consists of the question followed by the answer; if there are several right answers,
    the first is used.

    Args:
        directory: The directory of an evaluation.
        features: "gpt2-large", or the name of embeddings.

    Raises:
        BadInput: A package is missing, there is no such evaluation or embedding model, or a method
            has fewer than 100 samples with a right answer.
    """
    packages = ["mauve", "torch", "transformers"] if features == GPT2 else ["mauve"]
    if missing := [name for name in packages if find_spec(name) is None]:
        raise BadInput(
            f"MAUVE with the features {features!r} needs {' and '.join(missing)}: pip install "
            '"stepcraft-papers[mauve]" torch transformers, or name embeddings such as wordllama'
        )
    texts: dict[str, dict[str, tuple[str, str]]] = {}
    for outcome in read_outcomes(directory):
        sample = outcome["sample"]
        right = [*sample.get("long_answers", []), *sample.get("answers", [])]
        if right and not outcome["error"]:
            answers = right[0], str(outcome["output"].get("answer") or "")
            right_text, text = (" ".join([sample["question"], *a.split()]) for a in answers)
            texts.setdefault(outcome["method"], {})[outcome["id"]] = right_text, text
    fewest = min(map(len, texts.values()), default=0)
    if fewest < _FEWEST:
        raise BadInput(
            f"MAUVE of {fewest} samples with a right answer says nothing; evaluate at least "
            f"{_FEWEST}"
        )
    return {
        method: _score(
            [text for text, _ in pairs.values()], [text for _, text in pairs.values()], features
        )
        for method, pairs in texts.items()
    }


def _score(right: list[str], answers: list[str], features: str) -> float:
    compute: Any = import_module("mauve").compute_mauve
    if features == GPT2:
        return float(
            compute(p_text=right, q_text=answers, featurize_model_name=GPT2, seed=_SEED).mauve
        )
    embedder = resolve_embeddings(features)
    if embedder is None:
        raise BadInput(
            f"MAUVE needs embeddings, and {features!r} names none; name for example wordllama"
        )
    p, q = (
        vectors[finite] for vectors, finite in (unit_vectors(embedder, t) for t in (right, answers))
    )
    return float(compute(p_features=p, q_features=q, seed=_SEED).mauve)
