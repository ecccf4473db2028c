"""What was looked up, as context for the nodes that change steps."""

from collections.abc import Sequence

from stepcraft.evidence import Evidence
from stepcraft.llm.prompt import evidence_sections
from stepcraft.nodes.aag.answer import Answered, stacked
from stepcraft.text.sections import section


def notes_sections(questions: Sequence[Answered], knowledge: Sequence[Evidence]) -> list[str]:
    """The stacked answers, and the procedures that stand in for them without the answering step."""
    notes = stacked(questions)
    return [section("notes", notes) if notes else "", *evidence_sections(knowledge)]
