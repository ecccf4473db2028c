"""What the tokens of an evaluation cost, by prices that its user names; none are built in, because they would go stale."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage

from stepcraft.errors import BadInput
from stepcraft.secrets import excerpt

VARIABLE = "STEPCRAFT_PRICES"
"""The environment variable with prices where no others are named: entries as of `--price`, with semicolons between them."""

_PER_TOKEN = 1e-6
_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}\Z")
"""The date behind a model's name, as providers return it."""


def no_tokens() -> dict[str, int]:
    """Return the usage of no call."""
    return {"calls": 0, "input_tokens": 0, "output_tokens": 0}


def add_tokens(used: dict[str, int], reply: AIMessage) -> None:
    """Add the tokens of a reply, as its provider reports them, to a usage."""
    if not (tokens := reply.usage_metadata):
        return
    used["input_tokens"] += tokens["input_tokens"]
    used["output_tokens"] += tokens["output_tokens"]
    if cached := tokens.get("input_token_details", {}).get("cache_read"):
        used["cached_input_tokens"] = used.get("cached_input_tokens", 0) + cached


@dataclass(frozen=True)
class Price:
    """USD per million tokens."""

    read: float
    written: float
    cached: float
    """Of tokens read from the provider's cache."""

    def usd(self, used: Mapping[str, Any]) -> float:
        """What this usage costs in USD."""
        cached = int(used.get("cached_input_tokens", 0))
        full = int(used["input_tokens"]) - cached
        return _PER_TOKEN * (
            full * self.read + cached * self.cached + int(used["output_tokens"]) * self.written
        )


@dataclass(frozen=True)
class Prices:
    """The prices of models by their names; that of "" is the price of every other model."""

    by_model: Mapping[str, Price] = field(default_factory=dict[str, Price])

    @staticmethod
    def of(entries: Sequence[str] | None) -> "Prices":
        """Read entries such as `0.25/2.00` or `openai:gpt-5-mini=0.25/2.00/0.025`.

        Args:
            entries: USD per million tokens read, written and, if they have a price of their own, read from the
                provider's cache; a model's name before them. None for those in STEPCRAFT_PRICES.

        Raises:
            BadInput: An entry is no price, or a model has two.
        """
        if not entries:
            entries = [
                one.strip() for one in os.environ.get(VARIABLE, "").split(";") if one.strip()
            ]
        by_model: dict[str, Price] = {}
        for entry in entries:
            model, _, figures = entry.rpartition("=")
            if (model := model.strip()) in by_model:
                raise BadInput(
                    f"the price of {excerpt(model) if model else 'every model'} is named twice; name it once"
                )
            by_model[model] = _price(entry, figures)
        return Prices(by_model)

    def price(self, model: str) -> Price | None:
        """The price of a model; a provider before the name and a date behind it need not agree. None if unknown."""
        bare = _DATED.sub("", model.rpartition(":")[2])
        for name in (model, model.rpartition(":")[2], bare):
            for known, price in self.by_model.items():
                if known and name in (known, known.rpartition(":")[2]):
                    return price
        return self.by_model.get("")

    def cost(self, usage: Mapping[str, Any], model_of: Callable[[str], str]) -> float | None:
        """What a usage costs in USD; None where the price of a model that was used is unknown.

        Args:
            usage: Totals, and in `nodes` those of the nodes.
            model_of: The model of a node; of "" for what no node used.
        """
        if not self.by_model:
            return None
        nodes: Mapping[str, Mapping[str, Any]] = usage.get("nodes") or {}
        parts = [(name, used) for name, used in nodes.items()]
        kinds = ("input_tokens", "output_tokens", "cached_input_tokens")
        rest = {
            kind: int(usage.get(kind, 0)) - sum(int(used.get(kind, 0)) for used in nodes.values())
            for kind in kinds
        }
        if rest["input_tokens"] or rest["output_tokens"]:
            parts.append(("", rest))
        total = 0.0
        for node, used in parts:
            if used["input_tokens"] or used["output_tokens"]:
                price = self.price(model_of(node))
                if price is None:
                    return None
                total += price.usd(used)
        return total


def _price(entry: str, figures: str) -> Price:
    try:
        parts = [float(figure) for figure in figures.split("/")]
    except ValueError:
        parts = []
    if len(parts) not in {2, 3} or not all(0 <= part < float("inf") for part in parts):
        raise BadInput(
            f"the price {excerpt(entry)} cannot be used; write USD per million tokens read and written, such as "
            "0.25/2.00 or openai:gpt-5-mini=0.25/2.00"
        )
    return Price(parts[0], parts[1], parts[-1] if len(parts) == 3 else parts[0])
