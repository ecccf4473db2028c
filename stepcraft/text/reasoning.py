"""Reasoning that models leave in the text of a reply.

An opening tag counts at the beginning of a line or behind a sentence. A closing tag counts unless
the sentence goes on behind it, as in "<think> opens the reasoning and </think> closes it". Tags in
code do not count. Everything between an opening and a closing tag is dropped; before a closing tag
without an opening one, everything.
"""

import re

from stepcraft.text.clean import SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import outside_code

_NAME = r"\s*+(?:\w{1,20}:)?(?:think|thinking|thoughts?|reasoning|reflection)\s*+[>\u25b7]"
_MESSAGE = r"\b[^<\n]{0,100}+(?:<\|constrain\|>[^<\n]{0,100}+)?<\|message\|>"
_OPENING = (
    rf"(?:[<\u25c1]{_NAME}|\[THINK\](?!\()|<\|(?:START_THINKING|begin_of_thought)\|>"
    rf"|(?:(?:<\|start\|>\s*+assistant\s*+)?<\|channel\|>\s*+|\A)(?:analysis|commentary){_MESSAGE}"
    r"|\Aanalysis(?=(?-i:[A-Z])(?s:.*)assistantfinal))"
)
_CLOSING = (
    rf"(?:[<\u25c1]/{_NAME}|\[/THINK\]|<\|(?:END_THINKING|end_of_thought)\|>"
    rf"|<\|channel\|>\s*+final{_MESSAGE}|assistantfinal)"
)
_GOES_ON = (
    r"[\"'\u201d\u2019\u00bb)]?+[ \t]*+"
    r"(?:[,;:.?)|]|(?<=[ \t])(?-i:[a-z\u00df-\u00ff\u0430-\u044f]))"
)
_TAG = re.compile(
    rf"(?:^ {{0,3}}|(?<=[{STOPS}{SPACELESS_STOPS}>\]\u25b7])[ \t]*+)(?P<opening>{_OPENING})"
    rf"|(?<=\w ){_OPENING}[^\n<{STOPS}]{{1,100}}{_CLOSING}"  # "Between <think> and </think>"
    rf"|(?<!^ {{4}})(?<!^\t)(?P<closing>{_CLOSING})(?!{_GOES_ON})",
    re.IGNORECASE | re.MULTILINE,
)
_MAY_BE_TAGGED = re.compile(r"[<\u25c1]|\[/?THINK\]|assistantfinal", re.IGNORECASE)
_ANY_CLOSING = re.compile(f"(?<!`){_CLOSING}(?!`)", re.IGNORECASE)
_PREAMBLE = re.compile(
    r"\s*+(?:okay|ok|sure|certainly|of course|absolutely|great|all ?right|hm+|let me|let['\u2019]s"
    r"|i['\u2019]ll|i will)\b[^\n]{0,100}\s*+",
    re.IGNORECASE,
)
_CONTROL = r"(?:\s*+<[|\uff5c][^<>|\uff5c\s]{1,40}[|\uff5c]>)++"
_CONTROLS = re.compile(
    rf"\A{_CONTROL}(?!{_GOES_ON})|(?<!\s)(?<![|\uff5c]>)(?!(?<=\w) <){_CONTROL}\s*\Z"
)
"""The tokens that a server left at the beginning and the end."""


def without_reasoning(text: str) -> tuple[str, bool]:
    """Return a reply without its reasoning, and whether it ends within the reasoning."""
    text = text.strip()
    if not _MAY_BE_TAGGED.search(text):
        return text, False
    answer, end, is_open = "", 0, False
    opening: re.Match[str] | None = None
    spans = outside_code(text, unclosed=False)
    for tag in (tag for span in spans for tag in _TAG.finditer(text, *span)):
        if tag["closing"]:
            answer = answer + text[end : opening.start("opening")] if opening else ""
            end, opening = tag.end(), None
        elif tag["opening"]:
            opening = opening or tag
    if opening and not re.match(_GOES_ON, text[opening.end() :]):
        answer += text[end : opening.start("opening")]
        # The answer may go on in the same sentence, or the reasoning may leave a fence open.
        closing = _ANY_CLOSING.search(text, opening.end())
        is_open = closing is None
        end = closing.end() if closing else len(text)
    if end and _PREAMBLE.fullmatch(answer):
        answer = ""
    return _CONTROLS.sub("", answer + text[end:].lstrip()).strip(), is_open
