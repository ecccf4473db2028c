"""Check the draft against the evidence: a verdict on every statement, changes where it is wrong.

All parts and their evidence are in one prompt, so that a change may follow from any passage, and a
change of one part may call for another (RAT §3.3, its causality). Parts that do not fit one prompt
are checked in the next call. Related: RARR (Gao et al., arXiv 2210.08726) and Chain-of-Verification
(Dhuliawala et al., arXiv 2309.11495).
"""

import math
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import UNCHANGED
from stepcraft.contexts.rpg import MARKS, RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.nodes.state import Check, Part, Verdict, passages_of
from stepcraft.progress import counted, quoted
from stepcraft.text.changes import Change, Problem, apply_changes, read_changes
from stepcraft.text.citations import marks, without_marks
from stepcraft.text.claims import claims, with_numbers
from stepcraft.text.clean import is_unchanged, tokens
from stepcraft.text.sections import Section

_FORMAT = """\
First one line for each {unit}: its number, its verdict and the fewest passages that decide. Several
with the same verdict and passages can share a line. What is partly contradicted is contradicted:
{first}-{second} supported p2
{third} contradicted p5
{fourth} not found
If only details were not found, quote them: {fourth} not found "within two days", "both"
If nothing has to change, stop there. Otherwise go on with one block for each change, any number for
a part, all of them on the text as you see it:
{blocks}"""
_STATEMENTS = {
    "unit": "statement",
    "first": "1.1",
    "second": "1.3",
    "third": "2.1",
    "fourth": "2.2",
}
_PARTS = {"unit": "part", "first": "1", "second": "3", "third": "4", "fourth": "5"}
_CHANGES = """\
<<<<<<< PART <number>
a short piece of the part that occurs only once in it, copied exactly
=======
what replaces it
>>>>>>> END"""
_NUMBERS = "\nThe numbers in \u27e6 \u27e7 are not part of the text."
_APPEND = "\nWith nothing above =======, the words below it are added to the end of the part."
_STEP_FORMAT = f"""\
Exactly {UNCHANGED}, or one block for each change and nothing else:
{_CHANGES}
With nothing above =======, the words below it are added to the end of the step. To insert a step
behind another:
<<<<<<< AFTER <number>
=======
the step, without a number
>>>>>>> END"""

CORRECT = """\
Correct only what is contradicted: change the words that are wrong, and those that no longer fit
once they are changed. Add nothing and complete nothing. Leave everything that is supported, or was
not found, exactly as it is."""
COMPLETE = """\
Change what is contradicted. What the text leaves open, guesses or says not to know counts as
contradicted if a passage says it: fill it in. Add what the question asks for, or what code needs to
run, if the text lacks it and a passage has it. Mend what is doubled, or no longer right after
another change. The parts join up as they are: one may begin or end within a list. Leave everything
else as it is, and add nothing that the question does not ask for."""

_PROMPT_TOKENS = 2_000
"""Tokens for the instructions and the reply where a model's input is limited."""
_VERDICT = re.compile(
    r"^[^\w\n]{0,8}(?:(?:PART|STATEMENT|CLAIM)S?[^\w\n]*)?(?P<numbers>\d{1,4}(?:\.\d{1,4})?"
    r"(?:[^\w\n]{1,4}(?:(?:and|to)[^\w\n]{1,4})?\d{1,4}(?:\.\d{1,4})?)*+)"
    r"(?:[^\w\n]|_){1,8}(?:(?:is|are)[ \t]+)?"
    r"(?P<verdict>supported|contradicted|(?:not[ _-]?|un)(?:found|supported))\b(?P<rest>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PASSAGE = re.compile(r"\bp(\d{1,4})\b", re.IGNORECASE)
_CITATION = re.compile(r"[ \t]++(?:\[p\d{1,4}\])+")
_QUOTED = re.compile('["\u201c\u201e\u00ab]([^"\u201c-\u201e\u00ab\u00bb]+)["\u201d\u201c\u00bb]')


def ask_for_changes(state: Any, settings: Any) -> list[BaseMessage]:
    """Show the question and the pending parts, each with the passages found for it."""
    by_claim, completes = state["by_claim"], state["scope"] == "complete"
    rules = [settings.revise_instructions, COMPLETE if completes else CORRECT]
    if isinstance(settings, RpgContext):
        rules.append(f"{MARKS} A missing mark alone is no reason for a change.")
    form = _FORMAT.format(
        **(_STATEMENTS if by_claim else _PARTS), blocks=_CHANGES + (_APPEND if completes else "")
    )
    form += _NUMBERS if by_claim else ""
    sections = [*asked(state["task"]), *_material(state)]
    return prompt("\n".join(rules), form, "changes", sections)


def ask_critic(state: Any, settings: AagContext) -> list[BaseMessage]:
    """Show the goal, the steps with their passages, and why a person rejected them, if one did."""
    sections = [*asked(state["task"], state["task_resources"]), *_material(state)]
    instructions = settings.critic_instructions
    if state["reason"]:
        instructions += "\nA person has rejected the steps: make the changes that they ask for."
        sections.append(Section("reason", "", state["reason"]))
    return prompt(instructions, _STEP_FORMAT, "changes", sections)


def _material(state: Any) -> list[Section | None]:
    """Return the parts of this call, each above its passages.

    A passage is shown under the first part that it was found for, or that cites it.
    """
    sections: list[Section | None] = []
    shown = set(state.get("left_out", ()))
    for number in _group(state):
        part: Part = state["parts"][number - 1]
        text = part["text"].strip("\n")
        evidence = [each for each in _evidence(state, part) if each not in shown]
        shown.update(evidence)
        sections += [
            Section("part", str(number), with_numbers(text, number) if state["by_claim"] else text),
            *passages(state["evidence"], evidence),
        ]
    return sections


def _evidence(state: Any, part: Part) -> list[int]:
    """Return the numbers of the passages that a part cites, then of those found for it."""
    cited = [each for each in sorted(marks(part["text"])) if each <= len(state["evidence"])]
    return list(dict.fromkeys([*cited, *passages_of(state, part["queries"])]))


def _group(state: Any) -> list[int]:
    """Return the pending parts that one call checks: all that fit the model's input."""
    limit = state.get("input_limit")
    if not limit:
        return list(state["pending"])
    room = max(limit // 2, limit - _PROMPT_TOKENS)
    group: list[int] = []
    shown: set[int] = set()
    for number in state["pending"]:
        part = state["parts"][number - 1]
        evidence = {*_evidence(state, part)} - shown
        room -= tokens(part["text"])
        room -= sum(tokens(state["evidence"][each - 1]["text"]) for each in evidence)
        if room < 0 and group:
            break
        group.append(number)
        shown |= evidence
    return group


def read_check(reply: str, state: Any, settings: Any) -> dict[str, Any]:
    """Return the verdicts of a reply and the changes that it asks for.

    Raises:
        UnreadableReply: It has neither, a change cannot be made, or a statement that is
            contradicted stays as it is.
    """
    return _read(reply, state, has_verdicts=True, cites=isinstance(settings, RpgContext))


def read_critique(reply: str, state: Any, _settings: Any) -> dict[str, Any]:
    """Return the changes of the steps that the reply asks for.

    Raises:
        UnreadableReply: It asks for none and does not say so, or a change cannot be made.
    """
    return _read(reply, state, has_verdicts=False, cites=False)


def _read(reply: str, state: Any, *, has_verdicts: bool, cites: bool) -> dict[str, Any]:
    parts = [part["text"] for part in state["parts"]]
    changes, problems, remarks = read_changes(reply, parts)
    for change in changes if not cites else ():
        if not _CITATION.search(change["old"]):
            change["new"] = _CITATION.sub("", change["new"])
    group = _group(state)
    verdicts = _verdicts(remarks) if has_verdicts else []
    if not (changes or problems or verdicts or _says_unchanged(remarks)):
        raise UnreadableReply("there was neither a verdict nor a change in it.")
    checks, missing = _checks(verdicts, state, group)
    earlier: list[Change] = []
    if kept := state.get("kept"):
        earlier = kept["changes"][len(state["changes"]) :]
        earlier = [each for each in earlier if not any(map(partial(_replaces, each), changes))]
        checks = [*kept["checks"][len(state["checks"]) :], *checks]
        checks = [*{(each["part"], each["text"], each["words"]): each for each in checks}.values()]
    between = "" if has_verdicts else "\n\n"
    edited = apply_changes(parts, [*changes, *earlier], between)
    made, unasked = edited.made, list[Problem]()
    if state["scope"] == "correct":
        made, unasked = _corrections(made, checks)
    problems += [*edited.refused, *unasked]
    update: dict[str, Any] = {
        "changes": [*state["changes"], *made],
        "checks": [*state["checks"], *checks],
        "pending": [number for number in state["pending"] if number not in group],
    }
    if missing and state["by_claim"] and not kept:
        missed = counted(missing, "statement")
        update["warnings"] = [f"revise: the check gave no verdict on {missed}"]
    after = without_marks("".join(edited.parts))
    changed = {each["part"] for each in made}
    in_parts = {each.first[0] for each in verdicts if not each.first[1]}
    reasons = [
        f"PART {each['part']}, {quoted(each['old'] or each['new'])}: {reason}"
        for each, reason in problems
    ] + [
        f"{quoted(each['text'])} is contradicted, and no block changes it"
        for each in checks
        if each["verdict"] == "contradicted"
        and each["text"] in after
        and not {each["part"]} & changed & in_parts
    ]
    if reasons:
        raise UnreadableReply("; ".join(reasons[:8]) + ".", update=update)
    return update


def _replaces(earlier: Change, change: Change) -> bool:
    """Tell whether a change of the same words was written anew."""
    old, new = earlier["old"], change["old"]
    return earlier["part"] == change["part"] and bool(old and new) and (old in new or new in old)


def _says_unchanged(remarks: str) -> bool:
    """Tell whether a reply says that nothing has to be changed."""
    return any(map(is_unchanged, remarks.splitlines()))


def _corrections(
    changes: Sequence[Change], checks: Sequence[Check]
) -> tuple[list[Change], list[Problem]]:
    """Split changes into those that correct a contradicted statement, and all others."""
    judged = {each["part"] for each in checks}
    wrong = {each["part"] for each in checks if each["verdict"] == "contradicted"}
    made: list[Change] = []
    problems: list[Problem] = []
    for change in changes:
        if change["kind"] != "replace":
            problems.append(Problem(change, "this check corrects, and adds nothing"))
        elif change["part"] in judged - wrong:
            problems.append(Problem(change, "nothing in this part is contradicted"))
        else:
            made.append(change)
    return made, problems


class _Said(NamedTuple):
    """What a line of a reply says of the statements between two numbers."""

    first: tuple[float, float]
    """The part and the statement; all statements of a part are above 0."""
    last: tuple[float, float]
    verdict: Verdict
    passages: list[int]
    words: str
    """The words that were not found, "" for the whole statement."""


def _verdicts(remarks: str) -> list[_Said]:
    """Return the verdicts of a reply, line by line: "1.1", "2", "1.1, 1.3" or "1.1-2.3"."""
    verdicts: list[_Said] = []
    for line in _VERDICT.finditer(remarks):
        word = line["verdict"].lower()
        verdict = cast("Verdict", word if word in {"supported", "contradicted"} else "not found")
        passages = [int(each) for each in _PASSAGE.findall(_QUOTED.sub("", line["rest"]))]
        for piece in re.split(r"[,;&/\u3001]|and", line["numbers"]):
            ends = [end.partition(".") for end in re.findall(r"\d+(?:\.\d+)?", piece)]
            first = float(ends[0][0]), float(ends[0][2] or 0)
            last = float(ends[-1][0]), float(ends[-1][2] or math.inf)
            verdicts += [
                _Said(first, last, verdict, passages, words)
                for words in _QUOTED.findall(line["rest"]) or [""]
            ]
    return verdicts


def _checks(verdicts: Sequence[_Said], state: Any, group: Sequence[int]) -> tuple[list[Check], int]:
    """Return the verdicts on the statements of these parts, and how many statements have none."""
    checks: list[Check] = []
    missing = 0
    for part in group:
        text = state["parts"][part - 1]["text"].strip("\n")
        statements = [(0, text)]
        if state["by_claim"]:
            spans = enumerate(claims(text), 1)
            statements = [(number, text[start:stop]) for number, (start, stop) in spans]
        for number, statement in statements:
            fitting = [each for each in verdicts if each.first <= (part, number) <= each.last]
            fitting = [each for each in fitting if each.first[1]] or fitting
            missing += not fitting
            checks += [_check(each, state, part, statement) for each in fitting]
    return checks, missing


def _check(said: _Said, state: Any, part: int, statement: str) -> Check:
    words = said.words if said.words in statement else ""
    if words and not state["by_claim"]:
        sentences = [statement[start:stop] for start, stop in claims(statement)]
        statement = next((each for each in sentences if words in each), statement)
    ids = [each["id"] for each in state["evidence"]]
    return Check(
        round=state["rounds"] + 1,
        part=part,
        text=without_marks(statement).strip(),
        words=words,
        verdict=said.verdict,
        evidence=[ids[each - 1] for each in said.passages if 0 < each <= len(ids)],
    )


def no_changes(state: Any, reason: str) -> dict[str, Any]:
    """Leave the draft as it is; the warning says that it was not checked."""
    pending = [number for number in state["pending"] if number not in _group(state)]
    warning = f"the draft is unchecked, in part or in whole: {reason}"
    return {"pending": pending, "warnings": [warning]}


def without_evidence(state: Any, _settings: Any) -> dict[str, Any] | None:
    """Ask nothing where no passage was found: there is nothing to check against."""
    if state["evidence"]:
        return None
    return {
        "pending": [],
        "warnings": ["nothing was found for any part, so the draft is unchecked"],
    }


def _finished(state: Any, update: dict[str, Any]) -> str:
    changes = len(update.get("changes", [])) - len(state["changes"])
    checks = update.get("checks", [])[len(state["checks"]) :]
    wrong = sum(each["verdict"] == "contradicted" for each in checks)
    judged = f"{wrong} of {counted(len(checks), 'statement')} contradicted; " if checks else ""
    return f"{judged}{counted(changes, 'change')} to be made."


revise = ModelNode(
    "revise",
    ask_for_changes,
    read_check,
    no_changes,
    skip=without_evidence,
    keep_back=lambda settings: int(getattr(settings, "finish", "text") != "text"),
    started="Checking every statement against what was found.",
    finished=_finished,
)
critic = ModelNode(
    "critic",
    ask_critic,
    read_critique,
    no_changes,
    started="Checking the steps against what was found.",
    finished=_finished,
)


def after_check(state: Any) -> str:
    """Go on with the parts that did not fit the last call, if there are any."""
    return "parts are left" if state["pending"] else "all parts"
