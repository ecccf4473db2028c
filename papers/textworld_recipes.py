#!/usr/bin/env python3
"""Make the recipes of the text world from minecraft-data: data/minecraft-1.16.json.

Usage: textworld_recipes.py FOLDER [--to FILE]. FOLDER holds items.json and recipes.json of
data/pc/1.16.1 of https://github.com/PrismarineJS/minecraft-data. The same input gives the same
bytes.

Of a recipe stay the number of items that it gives, what it uses up, and whether it needs the 3x3
grid of a crafting table. Where something is left in the grid, such as the bucket of a cake's milk,
it is dropped.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent / "stepcraft_papers" / "data" / "minecraft-1.16.json"


def variant(recipe: dict[str, Any], names: dict[int, str]) -> tuple[int, dict[str, int], bool]:
    """Return the items that a recipe gives, what it uses up, and whether it needs a table."""
    if "inShape" in recipe:
        shape = recipe["inShape"]
        cells = [cell for row in shape for cell in row if cell is not None]
        table = len(shape) > 2 or max(map(len, shape)) > 2
    else:
        cells = recipe["ingredients"]
        table = len(cells) > 4
    return (
        recipe["result"]["count"],
        dict(sorted(Counter(names[cell] for cell in cells).items())),
        table,
    )


def compact(items: list[dict[str, Any]], recipes: dict[str, list[dict[str, Any]]]) -> str:
    """Return the JSON, one item with its recipes a line."""
    names = {item["id"]: item["name"] for item in items}
    lines = []
    for number, found in recipes.items():
        variants: list[tuple[int, dict[str, int], bool]] = []
        for recipe in found:
            if (one := variant(recipe, names)) not in variants:
                variants.append(one)
        lines.append(
            f"{json.dumps(names[int(number)])}:{json.dumps(variants, separators=(',', ':'))}"
        )
    return (
        f'{{"items":{json.dumps(list(names.values()), separators=(",", ":"))},\n"recipes":{{\n'
        + ",\n".join(lines)
        + "\n}}\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Make the recipes of the text world from minecraft-data."
    )
    parser.add_argument("folder", type=Path, help="where items.json and recipes.json are")
    parser.add_argument("--to", type=Path, default=TARGET, help="the file to write")
    given = parser.parse_args()
    read = {
        name: json.loads((given.folder / f"{name}.json").read_text("utf-8"))
        for name in ("items", "recipes")
    }
    given.to.write_text(compact(read["items"], read["recipes"]), "utf-8")
