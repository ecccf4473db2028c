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
from stepcraft.nodes.draft import found_sections, material
from stepcraft.nodes.finish import finishing_calls
from stepcraft.nodes.split import part_query
from stepcraft.nodes.state import Check, Part, passages_of
from stepcraft.nodes.trace import short_answer
from stepcraft.nodes.verdicts import read_verdicts, unjudged
from stepcraft.progress import counted, joined, quoted
from stepcraft.text.changes import Problem, apply_changes, clash, read_changes
from stepcraft.text.citations import (
    bracketed,
    labels,
    marks,
    with_prompt_marks,
    without_marks,
)
from stepcraft.text.claims import claims, with_numbers
from stepcraft.text.clean import is_unchanged, tokens
from stepcraft.text.edits import Change, Edit, located
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
    return _prompt(state, "\n".join(rules), form)


def ask_critic(state: Any, settings: AagContext) -> list[BaseMessage]:
    """Show the goal, the steps with their passages, and the reason for a rejection, if any."""
    instructions, reasons = settings.critic_instructions, list[Section]()
    if state["reason"]:
        instructions += "\nA person has rejected the steps: make the changes that they ask for."
        reasons = [Section("reason", "", state["reason"])]
    return _prompt(state, instructions, _STEP_FORMAT, reasons)


def _prompt(
    state: Any, instructions: str, form: str, more: Sequence[Section] = ()
) -> list[BaseMessage]:
    """Show what the writer saw, the parts to check in this call with their passages, and `more`."""
    layout = _layout(state)
    sections = [
        *asked(state["task"], state.get("task_resources", "")),
        *found_sections(state, layout.shared),
    ]
    for number, numbers in layout.parts.items():
        text = state["parts"][number - 1]["text"]
        text = with_numbers(text, number) if state["judges_statements"] else text
        sections.append(Section("part", str(number), text.strip("\n")))
        sections += passages(state["evidence"], numbers)
    sections += more
    return prompt(instructions, form, "changes", sections, material_first=layout.shared > 0)


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
    shown: set[int]
    """The numbers of all passages that are shown, before the parts and below them."""


def _layout(state: Any) -> _Layout:
    def size(numbers: Iterable[int]) -> int:
        return sum(tokens(state["evidence"][each - 1]["text"]) for each in numbers)

    limit, shared = state.get("input_limit") or math.inf, state["passages_seen"]
    if size(range(1, shared + 1)) > limit / 2:
        shared = 0
    shown, left_out = {*range(1, shared + 1)}, {*state.get("left_out", ())}
    room = max(limit / 2, limit - _PROMPT_TOKENS) - size(shown)
    parts: dict[int, list[int]] = {}
    for number in state["pending"]:
        part: Part = state["parts"][number - 1]
        numbers = dict.fromkeys([*marks(part["text"]), *passages_of(state, part["queries"])])
        new = [each for each in numbers if each not in shown and each <= len(state["evidence"])]
        room -= tokens(part["text"]) + size(new)
        if room < 0 and parts:
            break
        parts[number] = [each for each in new if each not in left_out]
        shown.update(new)
    return _Layout(shared, parts, shown - left_out)


def read_check(reply: str, state: Any, settings: Any) -> dict[str, Any]:
    """Return the changes that a reply requests and, unless it is about steps, its verdicts.

    Raises:
        UnreadableReply: A change cannot be made, a contradicted statement is left unchanged, or the
            reply has nothing usable and does not say that nothing changes.
    """
    of_steps, cites = isinstance(settings, AagContext), isinstance(settings, RpgContext)
    parts = [part["text"] for part in state["parts"]]
    read, refused, outside = read_changes(reply, parts)
    last = len(state["evidence"])
    known = f"{labels(material(state), ids=not cites)}\n{labels(state['first_draft'])}"
    changes = [_with_right_marks(change, parts, last, known, cites=cites) for change in read]
    layout = _layout(state)
    group = [*layout.parts]
    checks, problems = list[Check](), list[str]()
    if not of_steps:
        lines, _, line = outside.rpartition("\n")
        is_half = state.get("cut_off") and reply.endswith(line)
        text = lines if is_half else outside
        checks, problems = read_verdicts(text, state, group, layout.shown)
    if not (changes or refused or checks or problems or _says_unchanged(outside)):
        raise UnreadableReply("there was neither a verdict nor a change in it.")
    if first_update := state.get("first_update"):
        changes, checks = _with_first(first_update, state, changes, checks)
    tried = apply_changes(parts, changes, between="\n\n" if of_steps else "")
    applied, refused = tried.applied, [*refused, *tried.refused]
    if not of_steps:
        unfit = [Problem(each, _why_unfit(each, state, group, checks)) for each in applied]
        applied = [change for change, reason in unfit if not reason]
        refused += [problem for problem in unfit if problem.reason]
    warnings = _passages_named(applied, last, cites=cites)
    if not of_steps and (missing := unjudged(checks, state, group)):
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

    A verdict on a whole part stays for those of its sentences for which it did. Passages that were
    left out of the prompt are reported; failed searches have been already.
    """
    searched = {each["query"] for each in state["findings"] if not each.get("failed")}
    decided: list[Check] = []
    undecided: list[str] = []
    for check in checks:
        if check["verdict"] != "not found":
            decided.append(check)
            continue
        part: Part = state["parts"][check["part"] - 1]
        cited = marks(part["text"]) if state["passages_seen"] else ()  # or else the draft's own
        whole = _bare(part["text"])
        texts = [check["text"]]
        if check["text"] == whole and not check["words"]:
            spans = claims(part["text"])
            texts = [_bare(part["text"][start:stop]) for start, stop in spans] or texts
        kept: list[str] = []
        for text in texts:
            queries = part["queries"] if text == whole else _queries_of(text, part, state)
            numbers = {*cited, *passages_of(state, queries)}
            if not numbers.isdisjoint(state.get("left_out", ())):
                undecided.append(quoted(text))
            elif searched.issuperset(queries):
                kept.append(text)
        decided += [check] if kept == texts else [Check({**check, "text": text}) for text in kept]
    if not undecided:
        return decided, []
    shown = joined(list(dict.fromkeys(undecided)))
    reason = "a passage found for it was left out of the prompt"
    return decided, [f"revise: no verdict on {shown}: {reason}"]


def _queries_of(statement: str, part: Part, state: Any) -> list[str]:
    """Return the queries that looked up a statement; if it cites passages, there may be none."""
    words = part_query(statement)
    queries = [each for each in part["queries"] if words in each]
    are_by_statement = state["passages_seen"] and not state["model_queries"]
    return queries if queries or are_by_statement else part["queries"]


def _bare(text: str) -> str:
    """Return a text as checks quote it."""
    return without_marks(text, plain=False).strip()


def _says_unchanged(reply: str) -> bool:
    """Return whether a reply as a whole, not just one item in it, says that nothing changes."""
    lines = [line for line in reply.splitlines() if line.strip()]
    others = [line for line in lines if not is_unchanged(line)]
    is_doubtful = any(item_start(line) or _CORRECTS.search(line) for line in others)
    return len(others) < len(lines) and not is_doubtful


def _with_right_marks(
    change: Change, parts: Sequence[str], last: int, known: str, *, cites: bool
) -> Change:
    """Return a change with citations in the style of the text: marks such as [p3], or none.

    A change inside code is left alone. If the replaced words contain marks, these are kept.

    Args:
        change: The change.
        parts: The parts of the text.
        last: The number of the last passage.
        known: The labels of the question, the passages and the draft, which are kept too.
        cites: Whether the text cites passages.
    """
    old, edit = change["old"], located(change, parts)
    if isinstance(edit, Edit) and edit.kind == "replace":
        place, end = edit.start, edit.stop
        spans = code(parts[edit.part - 1])
        if any(start < place < stop or start == place < end < stop for start, stop in spans):
            return change
    new = bracketed(change["new"], last, unless_in=old)
    if cites:
        new = with_prompt_marks(new, last, unless_in=f"{old}\n{known}")
    elif marks(bracketed(old, last), plain=False):
        new = _without_new_marks(new, f"{old}\n{known}", last)
    else:
        new = without_marks(new, last, plain=False, unless_in=known)
    return {**change, "new": new}


def _without_new_marks(new: str, old: str, last: int) -> str:
    """Return new words without marks of passages, except those in code or in the old text.

    A mark such as [p14] is kept if there are fewer passages (`last`).
    """
    spans = [*code(new)]

    def kept(run: re.Match[str]) -> str:
        if any(start <= run.start(2) < stop for start, stop in spans):
            return run[0]
        found = "".join(
            mark
            for mark in _PROMPT_MARK.findall(run[2])
            if mark in old or min(map(int, re.findall(r"\d+", mark))) > last
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
    kept: list[Check] = []
    taken_back: list[Check] = []
    for old in first_update["checks"][len(state["checks"]) :]:
        again = [new for new in checks if same_statement(old, new)]
        if not again:
            kept.append(old)
        elif old["verdict"] == "contradicted":
            others = [new for new in again if new["verdict"] != "contradicted"]
            taken_back += [new if new["statement"] else old for new in others]
    earlier = [
        change
        for change in first_update["changes"][len(state["changes"]) :]
        if not any(clash(each, change, parts) for each in changes)
        and not _altered(change, taken_back, parts)
    ]
    merged = sorted([*kept, *checks], key=lambda each: (each["part"], each["statement"]))
    return [*changes, *earlier], merged


def _altered(change: Change, checks: Iterable[Check], parts: Sequence[str]) -> list[Check]:
    """Return the checks of the statements that a change alters."""
    changed = apply_changes(parts, [change]).parts
    altered: list[Check] = []
    for check in checks:
        before, after = parts[check["part"] - 1], changed[check["part"] - 1]
        if before != after and is_changed(check, before, after):
            altered.append(check)
    return altered


def _passages_named(changes: Sequence[Change], last: int, *, cites: bool) -> list[str]:
    """Return a warning if changes insert the number of a passage (p1 to p`last`).

    If the text cites passages, citation marks do not count.
    """
    numbers: set[str] = set()
    for change in changes:
        new = without_marks(change["new"], plain=False) if cites else change["new"]
        numbers |= {*_PASSAGE_NUMBER.findall(new)} - {*_PASSAGE_NUMBER.findall(change["old"])}
    named = ", ".join(sorted(each for each in numbers if int(each[1:]) <= last))
    return (
        [f"a change names passages by numbers that only the check sees: {named}"] if named else []
    )


def _why_unfit(change: Change, state: Any, group: Sequence[int], checks: Sequence[Check]) -> str:
    """Return why a change must not be made although its words are there, or "" if it may be.

    Args:
        change: The change.
        state: The state of the check.
        group: The numbers of the parts in the prompt.
        checks: The verdicts on them.
    """
    parts = [part["text"] for part in state["parts"]]
    if change["part"] not in group:
        return "that part is not shown: copy the words of one that is"
    if change["kind"] != "replace" and state.get("form") == "short":
        after = "".join(apply_changes(parts, [change]).parts)
        if short_answer(after) != short_answer("".join(parts)):
            return "it would be a part of the short answer: add it to a sentence before that"
    return _why_unasked(change, checks, parts) if state["scope"] == "correct" else ""


def _why_unasked(change: Change, checks: Sequence[Check], parts: Sequence[str]) -> str:
    """Return why a change does not correct what the check found wrong, or "" if it does."""
    if change["kind"] != "replace":
        return "this check corrects, and adds nothing"
    judged = [check for check in checks if check["part"] == change["part"]]
    if judged and all(check["verdict"] != "contradicted" for check in judged):
        return "nothing in this part is contradicted"
    if any(check["verdict"] != "contradicted" for check in _altered(change, judged, parts)):
        return "it changes what is not contradicted: write a block for each error"
    return ""


def no_changes(state: Any, _reason: str) -> dict[str, Any]:
    """Leave the draft as it is, with a warning that it was not checked."""
    checked = _layout(state).parts
    pending = [number for number in state["pending"] if number not in checked]
    return {"pending": pending, "warnings": ["the draft is unchecked, in part or in whole"]}


def without_evidence(state: Any, settings: Any) -> dict[str, Any] | None:
    """Skip the model if no passage was found, as there is nothing to check against.

    After the deadline, the call is refused with a warning instead.
    """
    if state["evidence"] or limits_of(state, settings).seconds_left() == 0:
        return None
    return {
        "pending": [],
        "warnings": ["nothing was found for any part, so the draft is unchecked"],
    }


def _finished(state: Any, update: dict[str, Any]) -> str:
    changes = len(update.get("changes", state["changes"])) - len(state["changes"])
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
