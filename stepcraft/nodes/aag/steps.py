"""What the nodes that write steps share: the reply format, the state update, and the notes that they are shown."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.prompt import evidence_sections
from stepcraft.nodes.aag.answer import Answered
from stepcraft.text.clean import without_markers
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.patch import Patch, StepChange, read_patch
from stepcraft.text.sections import NOT_SAID, UNCHANGED, section

STEPS_FORMAT = """\
A numbered list of the steps and nothing else: no title, no introduction, no closing remark, no headings.
Each step begins on a new line with its number and a full stop: "1. ...". Code of more than one line stands under its
step, between ``` fences. No lists within a step."""

PATCH_FORMAT = f"""\
Only the changes, each on a new line, with the numbers that the steps have now:
"3~: ..." and on the next line "=> ..." put other words in place of some words of step 3: behind 3~ stand the old words,
copied exactly, no more of them than it takes to find the place, and behind => the new ones; either may have several
lines, and one step several such changes;
"3>: ..." adds a sentence or code at the end of step 3, behind its code if it has any, without repeating what it says;
"3: ..." replaces the whole of step 3 and is written out in full: where most of it changes;
"3+: ..." adds a step after step 3, and "0+: ..." one before the first;
"3-" removes step 3. A step moves by both: it is removed, and added in its new place.
Write no more than changes. Steps that no line names stay word for word. Refer to other steps by the numbers that they
have now; where steps move, the numbers are brought up to date afterwards, but not in code: refer to no step there. Code
of more than one line stands under its step, between ``` fences. No lists within a step. If nothing is to be changed,
exactly: {UNCHANGED}"""


def read_changes(reply: str, steps: Sequence[str]) -> tuple[list[str], list[StepChange] | None, str]:
    """The steps after the changes that a reply names, the changes, and what in the reply cannot be applied.

    The changes are None where the reply lists all steps instead.

    Raises:
        UnreadableReply: Neither changes nor a list can be read.
    """
    patch = read_patch(reply, steps)
    if isinstance(patch, Patch):
        return patch.apply(steps), patch.record(steps), " ".join(patch.problems)
    return patch, None, ""


def read_reply(reply: str) -> list[str]:
    """The steps that a reply lists, with their [[ ]] markers of doubt.

    Raises:
        UnreadableReply: There is no list in it.
    """
    steps = [step for step in read_steps(reply) if without_markers(step)]
    if not steps:
        raise UnreadableReply("there was no numbered list of steps in it.")
    return steps


def steps_update(steps: Sequence[str]) -> dict[str, Any]:
    """The state update for steps as a user sees them: without markers of doubt, as a list and as one text."""
    shown = [clean for step in steps if (clean := without_markers(step))]
    return {"steps": shown, "answer": numbered(shown)}


def changed_steps(before: Sequence[str], after: Sequence[str]) -> int:
    """The number of steps that differ, without their markers of doubt; added and removed ones count."""
    old, new = Counter(map(without_markers, before)), Counter(map(without_markers, after))
    return max((old - new).total(), (new - old).total())


def procedures(
    evidence: Sequence[Evidence], for_goal: Sequence[str], knowledge: Sequence[Evidence]
) -> list[Evidence]:
    """The procedures for the goal, and those that nobody answered from; all where `update_state` has replaced the former."""
    found = {passage["id"]: passage for passage in evidence}
    wanted = dict.fromkeys([*for_goal, *(passage["id"] for passage in knowledge)])
    return [found[name] for name in wanted if name in found] or list(evidence)


def notes_sections(questions: Sequence[Answered], knowledge: Sequence[Evidence]) -> list[str]:
    """The answers as "Q: …" and "A: …" (AAG §3.3), and the procedures that replace them without the answering step."""
    told = [asked for asked in questions if asked["answer"] and asked["answer"] != NOT_SAID]
    notes = "\n".join(f"Q: {asked['question']}\nA: {asked['answer']}" for asked in told)
    return [section("notes", notes) if notes else "", *evidence_sections(knowledge)]
