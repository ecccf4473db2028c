"""What the keyless model is given: the sections of a prompt as procedures, steps and sentences."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from stepcraft.text.clean import without_markers
from stepcraft.text.lists import read_lines, read_steps
from stepcraft.text.sections import Section
from stepcraft.text.sentences import sentences

_APART = re.compile(r"[,;\n\uff0c\u3001](?![^()`]{0,200}\))")
_NOTE = re.compile(r"^(?=[QA]: )", re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A procedure as it stands in the evidence."""

    title: str
    steps: tuple[str, ...]


def read_example(text: str) -> Example:
    """A procedure from its text: a title, then the steps; plain prose gives its sentences as steps."""
    title, _, rest = text.partition("\n")
    steps = read_steps(rest) or read_steps(text)
    if steps:
        return Example(title.strip(), tuple(without_markers(step) for step in steps))
    return Example("", tuple(sentences(without_markers(text))))


def read_notes(text: str) -> list[str]:
    """The sentences of the answers in notes that are stacked as "Q: …" and "A: …"."""
    parts = [part for part in _NOTE.split(text) if part.strip() and not part.startswith("Q: ")]
    return [sentence for part in parts for sentence in sentences(without_markers(part.removeprefix("A: ")))]


def things(resources: str) -> list[str]:
    """The resources of a comma-separated text, each once."""
    parts = (" ".join(part.split()).removeprefix("and ").strip(" .") for part in _APART.split(resources))
    return list(dict.fromkeys(part for part in parts if part))


class Material:
    """The sections of a prompt by what they hold."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self.sections = sections

    def text(self, name: str) -> str:
        """The texts of all sections of a name."""
        return "\n".join(section.text for section in self.sections if section.name == name)

    @property
    def examples(self) -> list[Example]:
        """The procedures in the evidence."""
        return [read_example(section.text) for section in self.sections if section.name == "evidence"]

    @property
    def knowledge(self) -> list[str]:
        """The sentences of the notes and the steps of the evidence."""
        steps = [step for example in self.examples for step in example.steps]
        return list(dict.fromkeys([*self.notes, *steps]))

    @property
    def notes(self) -> list[str]:
        """The sentences of the answers in the notes."""
        return read_notes(self.text("notes"))

    @property
    def steps(self) -> list[str]:
        """The steps as they stand."""
        text = without_markers(self.text("steps"))
        return read_steps(text) or read_lines(text)
