"""Check the draft against the evidence: judge every statement and change what is wrong.

All parts and their evidence are in one prompt, because any passage can call for a change, and a
change to one part can require changes to others (RAT §3.3, on causality). Parts that do not fit
are checked in the next call. If the graph wrote the draft, the prompt begins like the writer's,
with everything that the writer saw, so that the provider can reuse its prompt cache.

Related: RARR (Gao et al., arXiv 2210.08726) and Chain-of-Verification (Dhuliawala et al., arXiv
2309.11495).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import UNCHANGED
from stepcraft.contexts.rpg import MARKS, RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.calls import Inline
from stepcraft.llm.limits import limits_of
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.nodes.checks import is_changed, same_statement
from stepcraft.nodes.draft import found_sections
from stepcraft.nodes.finish import finishing_calls
from stepcraft.nodes.split import part_query
from stepcraft.nodes.state import Check, Part, passages_of
from stepcraft.nodes.verdicts import read_verdicts, unjudged
from stepcraft.progress import counted, joined, quoted
from stepcraft.text.changes import Change, Problem, apply_changes, clash, read_changes
from stepcraft.text.citations import bracketed, marks, with_prompt_marks, without_marks
from stepcraft.text.claims import with_numbers
from stepcraft.text.clean import is_unchanged, tokens
from stepcraft.text.lists import item_start
from stepcraft.text.markdown import code
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
Change what is contradicted. Where the text leaves open, guesses or says not to know what a passage
says, fill it in. Add what the question asks for, or what code needs to run, if the text has it
nowhere and a passage does; a part of any verdict can get an addition. Mend what is doubled, or no
longer right after another change. The parts join up as they are: one may begin or end within a
list. Leave everything else as it is, and add nothing that the question does not ask for."""

_PROMPT_TOKENS = 2_000
"""Tokens reserved for the instructions and the reply if a model's input is limited."""
_CORRECTS = re.compile(
    r"\b(?:should (?:say|be|read)|(?:is|are) (?:wrong|incorrect)|instead of)\b|^\W*but\b",
    re.IGNORECASE,
)
"""Words in running text that ask for a change, which should be in a block."""
_PASSAGE_NUMBER = re.compile(r"\bp\d{1,4}\b")
_PROMPT_MARK = re.compile(r"\[p\d{1,4}(?:,[ \t]*p?\d{1,4})*\]")
_PROMPT_MARKS = re.compile(rf"([ \t]*)((?:{_PROMPT_MARK.pattern})+)")


def ask_for_changes(state: Any, settings: Any) -> list[BaseMessage]:
    """Show the question, what the writer saw, and the pending parts with evidence found since."""
    judges_statements, completes = state["judges_statements"], state["scope"] == "complete"
    rules = [settings.revise_instructions, COMPLETE if completes else CORRECT]
    if isinstance(settings, RpgContext):
        rules.append(f"{MARKS} A missing mark alone is no reason for a change.")
    form = _FORMAT.format(
        **(_STATEMENTS if judges_statements else _PARTS),
        blocks=_CHANGES + (_APPEND if completes else ""),
    )
    form += _NUMBERS if judges_statements else ""
    layout = _layout(state)
    sections = [*asked(state["task"]), *_material(state, layout)]
    return prompt("\n".join(rules), form, "changes", sections, material_first=layout.shared > 0)


def ask_critic(state: Any, settings: AagContext) -> list[BaseMessage]:
    """Show the goal, the steps with their passages, and the reason for a rejection, if any."""
    layout = _layout(state)
    sections = [*asked(state["task"], state["task_resources"]), *_material(state, layout)]
    instructions = settings.critic_instructions
    if state["reason"]:
        instructions += "\nA person has rejected the steps: make the changes that they ask for."
        sections.append(Section("reason", "", state["reason"]))
    return prompt(instructions, _STEP_FORMAT, "changes", sections, material_first=layout.shared > 0)


class _Layout(NamedTuple):
    """The passages and parts in the prompt of one call."""

    shared: int
    """The number of passages before the parts, namely those that the writer saw. It is 0 if they
    would take up more than half of the model's input.
    """
    parts: dict[int, list[int]]
    """The numbers of the pending parts that fit the model's input, each with the passages that it
    cites, then those found for it. A passage is shown once: before all parts, or below the first
    part that has it.
    """


def _layout(state: Any) -> _Layout:
    def size(numbers: Iterable[int]) -> int:
        return sum(tokens(state["evidence"][each - 1]["text"]) for each in numbers)

    limit, shared = state.get("input_limit") or math.inf, state["passages_seen"]
    if size(range(1, shared + 1)) > limit / 2:
        shared = 0
    shown = {*range(1, shared + 1)}
    room = max(limit / 2, limit - _PROMPT_TOKENS) - size(shown)
    parts: dict[int, list[int]] = {}
    for number in state["pending"]:
        part: Part = state["parts"][number - 1]
        numbers = dict.fromkeys([*marks(part["text"]), *passages_of(state, part["queries"])])
        new = [each for each in numbers if each not in shown and each <= len(state["evidence"])]
        room -= tokens(part["text"]) + size(new)
        if room < 0 and parts:
            break
        parts[number] = new
        shown.update(new)
    return _Layout(shared, parts)


def _material(state: Any, layout: _Layout) -> list[Section]:
    """Return what the writer saw, then the parts to check in this call with their passages."""
    sections = found_sections(state, layout.shared)
    for number, numbers in layout.parts.items():
        text = state["parts"][number - 1]["text"]
        text = with_numbers(text, number) if state["judges_statements"] else text
        evidence = [each for each in numbers if each not in state.get("left_out", ())]
        sections += [
            Section("part", str(number), text.strip("\n")),
            *passages(state["evidence"], evidence),
        ]
    return sections


def read_check(reply: str, state: Any, settings: Any) -> dict[str, Any]:
    """Return the changes that a reply requests and, unless it is about steps, its verdicts.

    Raises:
        UnreadableReply: A change cannot be made, a contradicted statement is left unchanged, or the
            reply has nothing usable and does not say that nothing changes.
    """
    of_steps, cites = isinstance(settings, AagContext), isinstance(settings, RpgContext)
    parts = [part["text"] for part in state["parts"]]
    read, refused, outside = read_changes(reply, parts)
    most = len(state["evidence"])
    changes = [_with_right_marks(change, parts, most, cites=cites) for change in read]
    layout = _layout(state)
    group = [*layout.parts]
    checks, problems = list[Check](), list[str]()
    if not of_steps:
        shown = {*range(1, layout.shared + 1), *chain(*layout.parts.values())}
        shown.difference_update(state.get("left_out", ()))
        checks, problems = read_verdicts(outside, state, group, shown)
    if not (changes or refused or checks or problems or _says_unchanged(outside)):
        raise UnreadableReply("there was neither a verdict nor a change in it.")
    if first_update := state.get("first_update"):
        changes, checks = _with_first(first_update, state, changes, checks)
    tried = apply_changes(parts, changes, between="\n\n" if of_steps else "")
    applied, refused = tried.applied, [*refused, *tried.refused]
    if state["scope"] == "correct":
        applied, unasked = _corrections(applied, checks, parts)
        refused += unasked
    warnings = _passages_named(applied, len(state["evidence"]), cites=cites)
    if missing := [] if of_steps else unjudged(checks, state, group):
        what = counted(len(missing), "statement" if state["judges_statements"] else "part")
        warnings.append(f"revise: the check gave no verdict on {what}")
    checks, undecided = _decided(checks, state)
    warnings += undecided
    update: dict[str, Any] = {
        "changes": [*state["changes"], *applied],
        "checks": [*state["checks"], *checks],
        "pending": [number for number in state["pending"] if number not in group],
        "warnings": warnings,
    }
    problems = [
        *(
            f"PART {change['part']}, {quoted(change['old'] or change['new'])}: {reason}"
            for change, reason in refused
        ),
        *(
            f"{quoted(check['text'])} is contradicted, and no block changes it"
            for check in checks
            if check["verdict"] == "contradicted"
            and not is_changed(check, parts[check["part"] - 1], tried.parts[check["part"] - 1])
        ),
        *problems,
    ]
    if problems:
        raise UnreadableReply(f"{joined(problems)}.", update=update)
    return update


def _decided(checks: Sequence[Check], state: Any) -> tuple[list[Check], list[str]]:
    """Drop verdicts of `not found` for which the check did not see all passages.

    Passages that were left out of the prompt are reported; failed searches have been already.
    """
    searched = {each["query"] for each in state["findings"]}
    decided: list[Check] = []
    undecided: list[str] = []
    for check in checks:
        part: Part = state["parts"][check["part"] - 1]
        statement = part_query(check["text"])
        queries = [each for each in part["queries"] if statement in each] or part["queries"]
        cited = marks(part["text"]) if state["passages_seen"] else ()  # or else the draft's own
        numbers = {*cited, *passages_of(state, queries)}
        if check["verdict"] != "not found":
            decided.append(check)
        elif not numbers.isdisjoint(state.get("left_out", ())):
            undecided.append(quoted(check["text"]))
        elif searched.issuperset(queries):
            decided.append(check)
    texts = joined(list(dict.fromkeys(undecided)))
    warning = f"revise: no verdict on {texts}: a passage found for it was left out of the prompt"
    return decided, [warning] if undecided else []


def _says_unchanged(reply: str) -> bool:
    """Return whether a reply as a whole, not just one item in it, says that nothing changes."""
    lines = [line for line in reply.splitlines() if line.strip()]
    others = [line for line in lines if not is_unchanged(line)]
    is_doubtful = any(item_start(line) or _CORRECTS.search(line) for line in others)
    return len(others) < len(lines) and not is_doubtful


def _with_right_marks(change: Change, parts: Sequence[str], most: int, *, cites: bool) -> Change:
    """Return a change with citations in the style of the text: marks such as [p3], or none.

    A change inside code is left alone. If the replaced words contain marks, these are kept.
    `most` is the number of passages.
    """
    text = "".join(parts[change["part"] - 1 : change["part"]])
    place = text.find(change["old"]) if change["old"] else -1
    end = place + len(change["old"])
    new = change["new"]
    spans = code(text)
    if not any(start < place < stop or start == place < end < stop for start, stop in spans):
        marked = bracketed(new, most, unless_in=change["old"])
        if cites:
            new = with_prompt_marks(marked, unless_in=change["old"])
        elif not marks(bracketed(change["old"], most), plain=False):
            new = without_marks(marked, plain=False)
        else:
            new = _without_new_marks(marked, change["old"], most)
    return {**change, "new": new}


def _without_new_marks(new: str, old: str, most: int) -> str:
    """Return new words without marks of passages, except for those in the old words or in code.

    A mark such as [p14] is kept if there are fewer passages (`most`).
    """
    spans = [*code(new)]

    def kept(run: re.Match[str]) -> str:
        if any(start <= run.start(2) < stop for start, stop in spans):
            return run[0]
        found = "".join(
            mark
            for mark in _PROMPT_MARK.findall(run[2])
            if mark in old or min(map(int, re.findall(r"\d+", mark))) > most
        )
        return run[1] + found if found else ""

    return _PROMPT_MARKS.sub(kept, new)


def _with_first(
    first_update: Mapping[str, Any], state: Any, changes: list[Change], checks: list[Check]
) -> tuple[list[Change], list[Check]]:
    """Combine the changes and verdicts of two replies, giving priority to the second.

    A change to a statement that only the first reply calls contradicted is dropped.
    `first_update` is the complete update from the first reply, including the earlier state.
    """
    parts = [part["text"] for part in state["parts"]]
    first: list[Check] = first_update["checks"][len(state["checks"]) :]
    again = [(old, new) for old in first for new in checks if same_statement(old, new)]
    taken_back = [
        new if new["statement"] else old
        for old, new in again
        if old["verdict"] == "contradicted" != new["verdict"]
    ]
    earlier = [
        change
        for change in first_update["changes"][len(state["changes"]) :]
        if not any(clash(each, change, parts) for each in changes)
        and not _altered(change, taken_back, parts)
    ]
    judged_again = [old for old, _ in again]
    merged = [*(each for each in first if each not in judged_again), *checks]
    return [*changes, *earlier], sorted(merged, key=lambda each: (each["part"], each["statement"]))


def _altered(change: Change, checks: Iterable[Check], parts: Sequence[str]) -> list[Check]:
    """Return the checks of the statements that a change alters."""
    pairs = [*zip(parts, apply_changes(parts, [change]).parts, strict=False)]
    return [
        check
        for check in checks
        if (pair := pairs[check["part"] - 1])[0] != pair[1] and is_changed(check, *pair)
    ]


def _passages_named(changes: Sequence[Change], last: int, *, cites: bool) -> list[str]:
    """Return a warning if changes insert the number of a passage (p1 to p`last`).

    If the text cites passages, citation marks do not count.
    """
    numbers = {
        number
        for change in changes
        for number in _PASSAGE_NUMBER.findall(
            without_marks(change["new"], plain=False) if cites else change["new"]
        )
        if number not in _PASSAGE_NUMBER.findall(change["old"]) and int(number[1:]) <= last
    }
    named = ", ".join(sorted(numbers))
    return (
        [f"a change names passages by numbers that only the check sees: {named}"] if named else []
    )


def _corrections(
    changes: Sequence[Change], checks: Sequence[Check], parts: Sequence[str]
) -> tuple[list[Change], list[Problem]]:
    """Refuse additions, and changes to statements that the check did not find wrong."""
    allowed: list[Change] = []
    problems: list[Problem] = []
    for change in changes:
        judged = [check for check in checks if check["part"] == change["part"]]
        verdicts = {each["verdict"] for each in _altered(change, judged, parts)}
        if change["kind"] != "replace":
            problems.append(Problem(change, "this check corrects, and adds nothing"))
        elif judged and "contradicted" not in {each["verdict"] for each in judged}:
            problems.append(Problem(change, "nothing in this part is contradicted"))
        elif verdicts and verdicts != {"contradicted"}:
            problems.append(
                Problem(change, "it changes what is not contradicted: write a block for each error")
            )
        else:
            allowed.append(change)
    return allowed, problems


def no_changes(state: Any, _reason: str) -> dict[str, Any]:
    """Leave the draft as it is, with a warning that it was not checked."""
    checked = _layout(state).parts
    pending = [number for number in state["pending"] if number not in checked]
    return {"pending": pending, "warnings": ["the draft is unchecked, in part or in whole"]}


def without_evidence(state: Any, settings: Any) -> dict[str, Any] | None:
    """Skip the model if no passage was found, as there is nothing to check against.

    After the deadline it is not skipped but refused, with a warning.
    """
    if state["evidence"] or limits_of(state, settings).seconds_left() == 0:
        return None
    return {
        "pending": [],
        "warnings": ["nothing was found for any part, so the draft is unchecked"],
    }


def _finished(state: Any, update: dict[str, Any]) -> str:
    changes = len(update.get("changes", [])) - len(state["changes"])
    checks = update.get("checks", [])[len(state["checks"]) :]
    wrong = sum(each["verdict"] == "contradicted" for each in checks)
    total = len({(each["part"], each["statement"]) for each in checks})
    judged = f"{wrong} of {counted(total, 'statement')} contradicted; " if checks else ""
    return f"{judged}{counted(changes, 'change')} proposed."


revise = ModelNode(
    "revise",
    ask_for_changes,
    read_check,
    no_changes,
    skip=without_evidence,
    keep_back=finishing_calls,
    started="Checking every statement against the evidence.",
    finished=_finished,
)
critic = ModelNode(
    "critic",
    ask_critic,
    read_check,
    no_changes,
    started="Checking the steps against the evidence.",
    finished=_finished,
)


@Inline
def after_check(state: Any) -> str:
    """Continue with parts that did not fit into the last call, if any."""
    return "parts are left" if state["pending"] else "all parts"
