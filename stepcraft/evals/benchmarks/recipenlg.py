"""RecipeNLG: recipes, of which a dish is the output and its ingredients are the input (Bień et al. 2020; AAG §4.1).

Read is the official format, `full_dataset.csv` (`title`, `ingredients` and `directions` as JSON lists), of which the first
10,000 usable recipes count, and procedures (`output`, `input`, `steps`). Which 10,000 the paper took is not known.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import entries, refuse, text_of, texts_of
from stepcraft.evals.benchmarks.procedures import SPLITS, Read, Splits

_RECIPES = 10_000


def _recipes(file: Path) -> Iterator[Read]:
    return islice(_usable(file), _RECIPES)


def _usable(file: Path) -> Iterator[Read]:
    """The recipes that have ingredients and directions."""
    for one in entries(file):
        fields = one.fields
        dish = text_of(fields, "title", "output")
        ingredients = texts_of(fields.get("ingredients", fields.get("input")))
        steps = texts_of(fields.get("directions", fields.get("steps")))
        if not {"directions", "steps"} & fields.keys() or not {"title", "output"} & fields.keys():
            refuse(one.where, "RecipeNLG", "title or no directions")
        if dish and ingredients and steps:
            yield Read(id=one.id, output=dish, input=", ".join(ingredients), steps=steps)


_SPLITS = Splits("RecipeNLG", _recipes)

BENCHMARKS = tuple(
    Benchmark(
        f"recipenlg-{split}",
        f"recipes, the {told}; the memory is the rest of the file",
        "for research and teaching, not commercial",
        "https://recipenlg.cs.put.poznan.pl",
        read=partial(_SPLITS.samples, split),
        settings=_SPLITS.memory,
        citation="Bień et al., RecipeNLG: A Cooking Recipes Dataset for Semi-Structured Text Generation, INLG 2020",
    )
    for split, told in SPLITS
)
