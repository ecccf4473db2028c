"""The material of a prompt, read from its sections, and how well texts fit each other by the words they share."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stepcraft.text.clean import stems, without_markers
from stepcraft.text.lists import read_lines, read_steps
from stepcraft.text.sections import Section
from stepcraft.text.sentences import sentences

_SEPARATOR = re.compile(r"[,;\n\uff0c\u3001][\s,;\uff0c\u3001]*+(?![^()`]{0,200}+\))")
_NOTE = re.compile(r"^(?=[QA]: )", re.MULTILINE)
_ALIKE = 0.6


@dataclass(frozen=True)
class Example:
    """A procedure from the evidence; prose has no title, and its sentences are the steps."""

    title: str
    steps: tuple[str, ...]


class Material:
    """The sections of a prompt, and what they hold.

    Args:
        sections: the sections in order. The id of the `reply_format` section names the format of the reply, and its
            text describes it.
    """

    def __init__(self, sections: Iterable[Section]) -> None:
        sections = list(sections)
        form = next((section for section in sections if section.name == "reply_format"), None)
        self.format = form.id if form else ""
        self.instructions = form.text if form else ""
        self.sections = [section for section in sections if section.name != "reply_format"]

    def named(self, name: str) -> list[Section]:
        """Return the sections of a name."""
        return [section for section in self.sections if section.name == name]

    def text(self, name: str) -> str:
        """Return the texts of all sections of a name, one below the other; "" if there are none."""
        return "\n".join(section.text for section in self.named(name))

    @property
    def examples(self) -> list[Example]:
        """The procedures of the evidence."""
        return [_example(section.text) for section in self.named("evidence")]

    @property
    def notes(self) -> list[str]:
        """The sentences of the answers in the notes, which are stacked as "Q: …" and "A: …"."""
        parts = [part for part in _NOTE.split(self.text("notes")) if part.strip() and part[:3] != "Q: "]
        return [one for part in parts for one in sentences(without_markers(part.removeprefix("A: ")))]

    @property
    def knowledge(self) -> list[str]:
        """The sentences of the notes and the steps of the evidence, each once."""
        steps = [step for example in self.examples for step in example.steps]
        return list(dict.fromkeys([*self.notes, *steps]))

    @property
    def steps(self) -> list[str]:
        """The steps that are to be revised, without markers."""
        text = without_markers(self.text("steps"))
        return read_steps(text) or read_lines(text)

    @property
    def resources(self) -> list[str]:
        """The resources, which are separated by commas, each once."""
        parts = (" ".join(part.split()) for part in _SEPARATOR.split(self.text("resources")))
        return list(dict.fromkeys(one for part in parts if (one := part.removeprefix("and ").strip(" ."))))


def _example(text: str) -> Example:
    title, _, rest = text.partition("\n")
    steps = read_steps(rest) or read_steps(text)
    if steps:
        return Example(title.strip(), tuple(without_markers(step) for step in steps))
    return Example("", tuple(sentences(without_markers(text))))


def weights(texts: Sequence[str]) -> dict[str, float]:
    """Return the weight of each stem: the rarer it is in the texts, the more it weighs."""
    counts = Counter(stem for text in texts for stem in stems(text))
    return {stem: math.log(1 + len(texts) / count) for stem, count in counts.items()}


def weight(found: Iterable[str], weighing: Mapping[str, float]) -> float:
    """Return the weight of some stems together, summed in a fixed order so that it is always the same."""
    return sum(weighing.get(stem, 0.0) for stem in sorted(found))


def fit(wanted: frozenset[str], text: str, weighing: Mapping[str, float]) -> float:
    """Return how well a text fits: the weight of the wanted stems in it, less for a longer text."""
    own = stems(text)
    return weight(wanted & own, weighing) / math.sqrt(4 + len(own))


def is_alike(text: str, others: Iterable[frozenset[str]]) -> bool:
    """Tell whether a text says little that one of the others, of which the stems are given, does not say."""
    own = stems(text)
    return any(len(own & other) >= _ALIKE * min(len(own), len(other)) for other in others)


def mentions(text: str, thing: str) -> bool:
    """Tell whether a text has at least half of the words that name a thing."""
    named = stems(thing)
    return 2 * len(named & stems(text)) >= len(named)
