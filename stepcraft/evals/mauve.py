"""MAUVE: how close the answers of a method, taken together, are to the right ones (Pillutla et al. 2021; RPG §4).

It compares two sets of texts by their features and says nothing of a single answer. The published figures use GPT-2 large
for the features and thousands of texts; figures of other features or of fewer texts compare the methods of one evaluation
at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.directory import read_outcomes
from stepcraft.index import unit_vectors
from stepcraft.models.embeddings import resolve_embeddings

GPT2 = "gpt2-large"
"""The features of the published figures; its weights are downloaded, and torch and transformers compute them."""
_FEWEST = 100
"""With fewer texts the library has fewer than ten clusters, and its figure is chance."""
_SEED = 25
"""The library's own."""


@dataclass(frozen=True)
class Mauve:
    """The MAUVE of a method."""

    method: str
    score: float
    """From 0 to 1; 1 where the answers cannot be told from the right ones."""
    samples: int
    features: str
    """What made the features."""


def mauve_scores(directory: Path, features: str = GPT2) -> list[Mauve]:
    """Return the MAUVE of each method whose samples have right answers.

    A text is the question with the answer behind it; of several right answers the first is taken.

    Args:
        directory: The directory of an evaluation.
        features: "gpt2-large", or the name of embeddings.

    Raises:
        BadInput: A package is missing, there is no such evaluation or embedding model, or a method has fewer than 100
            samples with a right answer.
    """
    needed = ["mauve", "torch", "transformers"] if features == GPT2 else ["mauve"]
    if missing := [name for name in needed if find_spec(name) is None]:
        raise BadInput(
            f'MAUVE with the features {features!r} needs {" and ".join(missing)}: pip install "stepcraft[mauve]"'
            + (
                " torch transformers, or name embeddings such as wordllama"
                if features == GPT2
                else ""
            )
        )
    texts: dict[str, dict[str, tuple[str, str]]] = {}
    for one in read_outcomes(directory):
        if not one["error"] and (answers := one["sample"].get("answers")):
            question = one["sample"]["question"]
            pair = (
                _text(question, answers[0]),
                _text(question, str(one["output"].get("answer") or "")),
            )
            texts.setdefault(one["method"], {})[one["id"]] = pair
    fewest = min(map(len, texts.values()), default=0)
    if fewest < _FEWEST:
        raise BadInput(
            f"MAUVE of {fewest} samples with a right answer says nothing; evaluate at least {_FEWEST}, or leave --mauve out"
        )
    return [
        Mauve(method, _score(list(pairs.values()), features), len(pairs), features)
        for method, pairs in texts.items()
    ]


def _text(question: str, answer: str) -> str:
    return " ".join(f"{question} {answer}".split())


def _score(pairs: Sequence[tuple[str, str]], features: str) -> float:
    right, answers = ([pair[side] for pair in pairs] for side in (0, 1))
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
    vectors = [unit_vectors(embedder, texts) for texts in (right, answers)]
    p, q = (found[finite] for found, finite in vectors)
    return float(compute(p_features=p, q_features=q, seed=_SEED).mauve)
