"""Compute costs from prices that the user provides, since built-in ones would go stale."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stepcraft.errors import BadInput
from stepcraft.evals.calls import total_tokens
from stepcraft.models.resolve import EXTRACTIVE
from stepcraft.secrets import excerpt

VARIABLE = "STEPCRAFT_PRICES"
"""The environment variable with `--price` entries, separated by semicolons."""

_DATE = re.compile(r"-\d{4}-?\d{2}-?\d{2}\Z")
"""The date that some providers append to a model's name."""


class Price(NamedTuple):
    """USD per million tokens."""

    read: float
    written: float
    cached: float
    """The price of tokens read from the provider's cache."""


@dataclass(frozen=True)
class Prices:
    """The prices of models by name; the price under "" applies to every other model."""

    by_model: Mapping[str, Price] = field(default_factory=dict[str, Price])

    @staticmethod
    def of(entries: Sequence[str] | None) -> "Prices":
        """Read entries such as `0.25/2.00` or `openai:gpt-5-mini=0.25/2.00/0.025`.

        Args:
            entries: Prices in USD per million tokens for input, output and, if different, input
                read from the provider's cache; each entry can begin with a model's name. None means
                those in STEPCRAFT_PRICES.

        Raises:
            BadInput: An entry is not a price.
        """
        if not entries:
            entries = list(filter(None, map(str.strip, os.environ.get(VARIABLE, "").split(";"))))
        by_model: dict[str, Price] = {}
        for entry in entries:
            model, _, figures = entry.rpartition("=")
            by_model[_without_provider(model.strip())] = _price(entry, figures)
        return Prices(by_model)

    def price(self, model: str) -> Price | None:
        """Return the price of a model, or None if it is unknown.

        Both the given name and the name in an entry can have a provider prefix. If no entry has the
        exact name, a date at the end of the given name is left out; a name without a date can have
        the price of the only entry that adds one.
        """
        if model == EXTRACTIVE:
            return Price(0, 0, 0)
        names = (_without_provider(model), bare_name(model), "")
        exact = next((self.by_model[name] for name in names if name in self.by_model), None)
        if exact or names[0] != names[1]:
            return exact
        dated = {price for name, price in self.by_model.items() if bare_name(name) == names[1]}
        return dated.pop() if len(dated) == 1 else None

    def cost(self, usage: Mapping[str, Any], model: str) -> float | None:
        """Return the cost of usage in USD, or None if a used model's price or tokens are unknown.

        Args:
            usage: The token counts, broken down by model under `models`.
            model: The model to which tokens are attributed if no provider named one. Its price also
                applies to a name without a price if no other model is named.
        """
        if not self.by_model or usage.get("uncounted"):
            return None
        models = (usage.get("models") or {model: usage}).items()
        used = {name: tokens for name, tokens in models if total_tokens(tokens)}
        unknown = {name for name in used if name and not self.price(name)}
        # A provider's name for the method's own model may be another one, as of an alias.
        is_alone = len(unknown) < 2 and bare_name(model) not in map(bare_name, used)
        total = 0.0
        for name, tokens in used.items():
            price = self.price(name or model) or (self.price(model) if is_alone else None)
            if price is None:
                return None
            cached = tokens.get("cached_input_tokens", 0)
            total += (tokens.get("input_tokens", 0) - cached) * price.read
            total += cached * price.cached + tokens.get("output_tokens", 0) * price.written
        return total / 1_000_000


def bare_name(model: str) -> str:
    """Return the name of a model without its provider and date, in lower case."""
    return _DATE.sub("", _without_provider(model))


def _without_provider(model: str) -> str:
    # What is before a tag, as in `llama3:8b` and `qwen/qwq:free`, is no provider.
    provider = r"\A(?:[^:\d/.-]*|(?:azure|bedrock|google)-[a-z-]*):(?!latest)(?=[a-z])"
    return re.sub(provider, "", model.lower())


def _price(entry: str, figures: str) -> Price:
    try:
        parts = [float(figure) for figure in figures.split("/")]
    except ValueError:
        parts = []
    if len(parts) not in {2, 3} or not all(0 <= part < float("inf") for part in parts):
        raise BadInput(
            f"the price {excerpt(entry)} cannot be used; write USD per million tokens read and "
            "written, such as 0.25/2.00 or openai:gpt-5-mini=0.25/2.00"
        )
    return Price(*[*parts, parts[0]][:3])
