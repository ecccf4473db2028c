"""How changes have affected the statements that a check judged.

A statement is identified by its part and its number there, as a part can contain the same sentence
twice.
"""

from collections.abc import Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Literal

from stepcraft.nodes.state import Check, Revision
from stepcraft.text.citations import without_marks
from stepcraft.text.claims import claims
from stepcraft.text.clean import normalised
from stepcraft.text.names import has_word

_spans = lru_cache(maxsize=64)(claims)


def final_checks(result: Mapping[str, Any]) -> list[tuple[Check, bool]]:
    """Return the last verdict on each statement, and whether the statement has changed since.

    Args:
        result: The output of RAT or RPG; other graphs give no verdicts.
    """
    checks: list[Check] = result.get("checks", [])
    fates = [(check, _fate(check, result)) for check in checks]
    return [(check, fate == "changed") for check, fate in fates if fate != "judged again"]


def _fate(check: Check, result: Mapping[str, Any]) -> Literal["same", "changed", "judged again"]:
    """Follow a statement through the rounds until it changes or gets another verdict."""
    words = check["words"] if check["verdict"] != "contradicted" else ""
    while revision := _revision(check, result):
        before, after = revision["before"], revision["after"]
        now = _now(check, before, after)
        has_words = words and _has_words(check, _text(after, now))
        if is_changed(check, before, after) and not has_words:
            return "changed"
        number = check["statement"] and now.start
        check = {**check, "round": check["round"] + 1, "statement": number}
        if any(
            each["round"] == check["round"] and same_statement(check, each)
            for each in result["checks"]
        ):
            return "judged again"
    return "same"


def _has_words(check: Check, text: str) -> bool:
    """Return whether a text has the words of a check, as whole ones if its statement has them so.

    Checks also quote words without the ending that a language such as Russian adds to them.
    """
    is_whole = has_word(check["text"], check["words"])
    return has_word(text, check["words"]) if is_whole else check["words"] in text


def current_text(check: Check, result: Mapping[str, Any]) -> str:
    """Return the text of a statement after the changes of all rounds, or "" if it was removed."""
    revisions: list[Revision] = [
        each
        for each in result.get("revisions", [])
        if each["part"] == check["part"] and each["round"] >= check["round"]
    ]
    if not revisions:
        return check["text"]
    last = revisions[-1]["after"]
    number = _number(check, revisions[0]["before"])
    if not number:
        return _text(last, range(1, len(_statements(last)) + 1))
    now = range(number, number + 1)
    for each in revisions:
        places = _places(each["before"], each["after"])
        now = range(places[now[0] - 1].start, places[now[-1] - 1].stop) if now else now
    return _text(last, now)


def _revision(check: Check, result: Mapping[str, Any]) -> Revision | None:
    """Return the changes to a check's part in the check's round."""
    place = check["part"], check["round"]
    revisions: list[Revision] = result.get("revisions", [])
    return next((each for each in revisions if (each["part"], each["round"]) == place), None)


def same_statement(check: Check, other: Check) -> bool:
    """Return whether two checks judge the same statement, or one judges the whole part.

    In a part judged as a whole, a contradiction and other words not found stay separate.
    """
    if check["part"] != other["part"]:
        return False
    numbers = {check["statement"], other["statement"]}
    words = {each["verdict"]: each["words"] for each in (check, other)}
    if numbers == {0} and words.keys() == {"contradicted", "not found"}:
        return words["not found"] in {"", words["contradicted"]}
    return len(numbers) == 1 or 0 in numbers


def is_changed(check: Check, before: str, after: str) -> bool:
    """Return whether changes to a part altered a statement rather than only adding to the part.

    Whitespace and citation marks do not count.
    """
    number = _number(check, before)
    if not number:
        return not has_word(_plain(after), _plain(before))
    now = [_statements(after)[each - 1] for each in _now(check, before, after)]
    return now != [_statements(before)[number - 1]]


def _number(check: Check, part: str) -> int:
    """Return the number of a checked statement in the text of its part, or 0 for the whole part."""
    if check["statement"] or (text := _plain(check["text"])) not in _statements(part):
        return check["statement"]
    return _statements(part).index(text) + 1


def _now(check: Check, before: str, after: str) -> range:
    """Return the numbers of a checked statement's counterparts in a changed part."""
    number = _number(check, before)
    return _places(before, after)[number - 1] if number else range(1, len(_statements(after)) + 1)


@lru_cache(maxsize=64)
def _places(before: str, after: str) -> list[range]:
    """Return, for each statement in a part, the numbers of its counterparts after the change."""
    old, new = _statements(before), _statements(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    unchanged = sum(block.size for block in matcher.get_matching_blocks())
    if len(old) == len(new) and sum(map(str.__eq__, old, new)) >= unchanged:
        return [range(number, number + 1) for number in range(1, len(old) + 1)]
    places: list[range] = []
    for kind, first, last, start, stop in matcher.get_opcodes():
        if kind == "equal":
            places += [range(number, number + 1) for number in range(start + 1, stop + 1)]
        else:
            places += [range(start + 1, stop + 1)] * (last - first)
    return places


def _text(part: str, numbers: range) -> str:
    """Return the text of a part from the first to the last of the given statements."""
    spans = _spans(part)[numbers.start - 1 : numbers.stop - 1]
    return part[spans[0][0] : spans[-1][1]] if spans else ""


@lru_cache(maxsize=64)
def _statements(part: str) -> list[str]:
    return [_plain(part[start:stop]) for start, stop in _spans(part)]


def _plain(text: str) -> str:
    """Normalise text for comparing statements."""
    return normalised(without_marks(text))
