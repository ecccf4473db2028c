"""Reasoning that models leave in the text of a reply.

A block of reasoning begins a line or follows a sentence, and ends with its closing tag. A closing
tag without an opening one ends reasoning that began with the reply. Tags in code, and tags that a
sentence speaks of ("<think> opens the reasoning and </think> closes it"), belong to the text.
"""

import re
from bisect import bisect

from stepcraft.text.clean import SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import outside_code

_TAG = re.compile(
    r"[<\u25c1]/?\s*+(?:\w{1,20}:)?(?:think|thinking|thoughts?|reasoning|reflection)\s*+[>\u25b7]"
    r"|\[/?THINK\](?!\()|<\|(?:START|END)_THINKING\|>|<\|(?:begin|end)_of_thought\|>",
    re.IGNORECASE,
)
_IN_SENTENCE = re.compile(
    rf"(?:[^\s{STOPS}{SPACELESS_STOPS}]|(?:\A|\n)[ \t]*\d{{1,3}}[.)])[ \t]*\Z"
)
"""What stands before a tag that begins no line and follows no sentence."""
_INDENTED = re.compile(r"\n(?: {4}|\t)[ \t]*\Z")
_GOES_ON = re.compile(r"[ \t]*+[,;:.?)|]|[ \t]++([^\W\d_])")
"""How a sentence goes on after a tag, if the letter is a small one."""
_QUOTED = re.compile("[\"'\u201c\u2018\u00ab(|][\"'\u201d\u2019\u00bb)|]")
_PREAMBLE = re.compile(
    r"\s*+(?:okay|ok|sure|certainly|of course|absolutely|great|all ?right|hm+|let me|let['\u2019]s"
    r"|i['\u2019]ll|i will)\b[^\n]{0,100}\s*+",
    re.IGNORECASE,
)

_CHANNEL = re.compile(
    r"<\|channel\|>\s*+(\w++)[^<\n]{0,100}+(?:<\|constrain\|>[^<\n]{0,100}+)?<\|message\|>"
    r"(?![ \t]+[a-z])"
)
_FIRST_CHANNEL = re.compile(
    r"\s*+(?:<\|start\|>\s*+assistant\s*+)?(?:<\|channel\|>|(?:analysis|commentary)<\|message\|>)"
)
_MESSAGE_END = re.compile(r"<\|(?:end|return|call|start)\|>")
_WITHOUT_TOKENS = re.compile(r"\A\s*+analysis(?=[A-Z]).*assistantfinal", re.DOTALL)
_CONTROL = re.compile(r"<[|\uff5c][^<>|\uff5c\s]{1,40}[|\uff5c]>")


def without_reasoning(text: str) -> tuple[str, bool]:
    """Return a reply without its reasoning, and whether it ends within the reasoning."""
    text, is_open = _final_channel(text)
    answer, end = "", 0
    tags = _outside_code(_TAG, text)
    closings = [tag for tag in tags if _is_closing(tag) and not _is_spoken_of(text, tag)]
    mention: re.Match[str] | None = None
    for tag in tags:
        if tag.start() < end:
            continue
        if _is_closing(tag):
            if not _is_spoken_of(text, tag, mention):
                answer, end = "", tag.end()
            continue
        closing = _closing_of(text, tag, closings) if _begins_block(text, tag, end) else tag
        if closing is tag:
            mention = tag
            continue
        answer += text[end : tag.start()]
        answer = "" if _PREAMBLE.fullmatch(answer) else answer
        is_open = closing is None
        end = closing.end() if closing else len(text)
    rest = text[end:]
    return _without_controls(answer + rest.lstrip() if answer else rest), is_open


def _closing_of(
    text: str, opening: re.Match[str], closings: list[re.Match[str]]
) -> re.Match[str] | None:
    """Return the closing tag of a block; None if the block is never closed.

    Where a sentence speaks of the opening tag, that tag itself is returned.
    """
    place = bisect(closings, opening.start(), key=lambda tag: tag.start())
    closing = closings[place] if place < len(closings) else None
    if _goes_on(text, opening):
        return opening if not closing or _goes_on(text, closing) else closing
    return closing or _any_closing(text, opening)


def _outside_code(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Return the matches outside of code; a block that is never closed counts as text."""
    if not pattern.search(text):
        return []
    parts = outside_code(text, unclosed=False)
    return [match for start, stop in parts for match in pattern.finditer(text, start, stop)]


def _is_closing(tag: re.Match[str]) -> bool:
    return "/" in tag[0] or "end_" in tag[0].lower()


def _any_closing(text: str, opening: re.Match[str]) -> re.Match[str] | None:
    """Return the first closing tag, also within a sentence or code that the reasoning left open."""
    for tag in _TAG.finditer(text, opening.end()):
        if _is_closing(tag) and "`" not in text[tag.start() - 1] + text[tag.end() : tag.end() + 1]:
            return tag
    return None


def _begins_block(text: str, tag: re.Match[str], end: int) -> bool:
    """Tell whether an opening tag begins a line, or follows a sentence or the last block."""
    before = text[max(end, tag.start() - 12) : tag.start()]
    if text[tag.end() : tag.end() + 1] in {",", ";", ":", ")"}:
        return False
    return not _IN_SENTENCE.search(before) and not _INDENTED.search(before)


def _goes_on(text: str, tag: re.Match[str]) -> bool:
    """Tell whether a sentence goes on after a tag."""
    after = _GOES_ON.match(text, tag.end())
    return after is not None and not (after[1] and not after[1].islower())


def _is_spoken_of(text: str, tag: re.Match[str], mention: re.Match[str] | None = None) -> bool:
    """Tell whether a closing tag belongs to a sentence.

    Args:
        text: The reply.
        tag: The closing tag.
        mention: The last opening tag before it that belongs to a sentence.
    """
    before = text[max(0, tag.start() - 12) : tag.start()]
    if _INDENTED.search(before) or _QUOTED.fullmatch(before[-1:] + text[tag.end() : tag.end() + 1]):
        return True
    if _IN_SENTENCE.search(before):
        is_pair = mention and text.find("\n", mention.end(), tag.start()) < 0
        return bool(is_pair) or _goes_on(text, tag)
    return mention is not None and _goes_on(text, tag)


def _final_channel(text: str) -> tuple[str, bool]:
    """Return the last message of the channel "final", and whether a reply in channels has none."""
    text = _WITHOUT_TOKENS.sub("", text, count=1)
    finals = [match for match in _outside_code(_CHANNEL, text) if match[1] == "final"]
    if not finals:
        return ("", True) if _FIRST_CHANNEL.match(text) else (text, False)
    text = text[finals[-1].end() :]
    ends = _outside_code(_MESSAGE_END, text)
    return (text[: ends[0].start()] if ends else text), False


def _without_controls(text: str) -> str:
    """Return a text without the control tokens that a server left at its beginning and end."""
    text = text.strip()
    while (token := _CONTROL.match(text)) and not _goes_on(text, token):
        text = text[token.end() :].lstrip()
    while token := _CONTROL.fullmatch(text, max(0, text.rfind("<"))):
        if re.search(r"\w \Z", text[: token.start()][-2:]):
            break
        text = text[: token.start()].rstrip()
    return text
