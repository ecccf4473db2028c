"""Remove the reasoning that models leave at the beginning of a reply.

An opening tag counts if at most a preamble such as "Okay." comes before it; after that, the answer
has begun, and its tags stay. A closing tag counts unless the sentence continues after it, as in
"<think> opens the reasoning and </think> closes it". Tags in code do not count. Everything up to
the closing tag is dropped, even if it has no opening one.
"""

import re

from stepcraft.text.clean import SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import outside_code

_NAME = (
    r"\s*+(?:\w{1,20}:)?(?:\w{0,20}?(?:think|thoughts?|thinking|reasoning|monologue|scratchpad)"
    r"(?:_\w{1,20})?|reflection|analysis)\s*+[>\u25b7]"
)
_MESSAGE = r"\b[^<\n]{0,100}+(?:<\|constrain\|>[^<\n]{0,100}+)?<\|message\|>"
_OPENING = (
    rf"(?:[<\u25c1]{_NAME}|\[THINK\](?!\()|<unused94>thought"
    r"|<\|(?:START_THINKING|begin_of_thought|inner_prefix|think)\|>"
    rf"|<\|channel>\s*+thought\b|\AHere is my thought process:"
    rf"|(?:(?:<\|start\|>\s*+assistant\s*+)?<\|channel\|>\s*+|\A)(?:analysis|commentary){_MESSAGE}"
    r"|\Aanalysis(?=(?-i:[A-Z])(?s:.*)assistantfinal))"
)
_CLOSING = (
    rf"(?:[<\u25c1]/{_NAME}|\[/THINK\]|<unused95>"
    r"|<\|(?:END_THINKING|end_of_thought|inner_suffix|/think)\|>"
    r"|<channel\|>|^Here is my response:"
    rf"|<\|channel\|>\s*+final{_MESSAGE}|assistantfinal)"
)
_GOES_ON = (
    r"[\"'\u201d\u2019\u00bb)]?+[ \t]*+"
    r"(?:[,;:.?)|]|(?<=[ \t])(?-i:[a-z\u00df-\u00ff\u0430-\u044f]))"
)
_TAG = re.compile(
    rf"(?:^ {{0,3}}|(?<=[{STOPS}{SPACELESS_STOPS}>\]\u25b7])[ \t]*+)(?P<opening>{_OPENING})"
    rf"|(?<!^ {{4}})(?<!^\t)(?:(?P<closing>{_CLOSING})(?!{_GOES_ON})|{_OPENING})",
    re.IGNORECASE | re.MULTILINE,
)
_MAY_BE_TAGGED = re.compile(
    r"[<\u25c1]|\[/?THINK\]|\[end of text\]|assistantfinal|\AHere is my thought process:",
    re.IGNORECASE,
)
_THINKS_ALOUD = re.compile(
    r"(?:hm+|okay|ok|alright|wait|let me|let['\u2019]s|the user|(?:i|we) (?:need|have|should))\b",
    re.IGNORECASE,
)
_BOX = re.compile(r"<\|(?:begin|end)_of_box\|>")
"""The tokens that GLM puts around an answer."""
_ENDED = re.compile(
    rf"(?:\A|[\n>\]{STOPS}{SPACELESS_STOPS}][\"'*_)\u201d\u2019\u00bb\u300d\uff09]*)[ \t]*\Z"
)
"""The end of a line or sentence, where reasoning may end."""
_ANY_CLOSING = re.compile(f"(?<!`){_CLOSING}(?!`)", re.IGNORECASE)
_PREAMBLE = re.compile(
    r"\s*+(?:(?:okay|ok|yes|sure|certainly|of course|absolutely|great|good|got it|all ?right|right"
    r"|understood|thinking|hm+|let me|let['\u2019]s|i['\u2019]ll|i will|(?:na )?gut|verstanden|klar"
    r"|in ordnung|d['\u2019]accord|(?:tr\u00e8s )?bien|oui|s\u00ed|vale|claro|de acuerdo|va bene"
    r"|\u0445\u043e\u0440\u043e\u0448\u043e|\u043f\u043e\u043d\u044f\u0442\u043d\u043e"
    r"|\u597d\u7684?|\u660e\u767d\u4e86?|\u306f\u3044|\u627f\u77e5\u3057\u307e\u3057\u305f"
    r"|\ub124|\uc54c\uaca0\uc2b5\ub2c8\ub2e4)\b[^\n]{0,100}(?<![:\uff1a\s])\s*+)?+",
    re.IGNORECASE,
)
_SPECIAL = r"(?:<[|\uff5c][^<>|\uff5c\s]{1,40}[|\uff5c]>|<(?:start|end)_of_turn>|\[end of text\])"
_CONTROL = rf"(?:\s*+{_SPECIAL})++"
_END = f"[{STOPS}{SPACELESS_STOPS}]"
_CLOSER = "[\"'*_)\u201d\u2019\u00bb\u300d\uff09]"
_NAMED = (
    rf"(?!(?<!{_END})(?<!{_END}{_CLOSER})(?<!{_END}{_CLOSER}{{2}})"
    rf"(?<=[\w*)\"',:;\-\u201d\u2019\u300d\uff09]) <"
    r"|(?<=\n\d\.) <|(?<=[:\uff1a])\s)"
)
"""Not before a token that the answer names, as in "A turn ends with <|end|>"."""
_ROLE = r"(?:\s*+(?:assistant|model)(?=[ \t]*+(?:\n|<[|\uff5c])))?+"
_CONTROLS = re.compile(
    rf"\A(?:{_CONTROL}{_ROLE})++(?!{_GOES_ON})|(?<!\s)(?<![|\uff5c]>){_NAMED}{_CONTROL}\s*\Z"
)
"""Special tokens that a server left at the beginning or the end."""


def without_reasoning(text: str) -> tuple[str, bool]:
    """Return a reply without its reasoning, and whether it ends inside the reasoning."""
    text = text.lstrip("\ufeff\u200b\u2060 \t\r\n").rstrip()
    if not _MAY_BE_TAGGED.search(text):
        return text, False
    end, is_open = 0, False
    opening: re.Match[str] | None = None
    spans = outside_code(text, unclosed=False)
    for tag in (tag for span in spans for tag in _TAG.finditer(text, *span)):
        if tag["closing"]:
            if _ends_reasoning(text, end, opening, tag):
                end, opening = tag.end(), None
        elif not opening:
            if not (tag["opening"] and _PREAMBLE.fullmatch(text[end : tag.start("opening")])):
                break  # the answer has begun
            opening = tag
    if opening and not re.match(_GOES_ON, text[opening.end() :]):
        # The answer may continue the same sentence, or the reasoning may leave a fence open.
        closing = _ANY_CLOSING.search(text, opening.end())
        is_open = closing is None
        end = closing.end() if closing else len(text)
    reply = _CONTROLS.sub("", _BOX.sub("", text[end:])).strip()
    if reply.count("<s>") <= reply.startswith("<s>") and reply.count("</s>") <= reply.endswith(
        "</s>"
    ):
        reply = reply.removeprefix("<s>").removesuffix("</s>").strip()  # Llama 2 and Mistral
    return reply, is_open


def _ends_reasoning(text: str, end: int, opening: re.Match[str] | None, tag: re.Match[str]) -> bool:
    """Return whether a closing tag ends the reasoning rather than just being mentioned.

    Args:
        text: The reply.
        end: The end of the reasoning so far.
        opening: The tag that opened the current reasoning, if any.
        tag: The closing tag.
    """
    if tag["closing"][0] in "Hh":  # "Here is my response:"
        return "here is my thought process:" in text[: tag.start()].lower()
    if opening:
        names = [re.findall(r"\w+", each) for each in (opening["opening"], tag["closing"])]
        return names[0] == names[1] or not tag["closing"].startswith("</")
    if end:  # after reasoning, only a repeated tag counts
        return not text[end : tag.start()].strip()
    start, behind = tag.start("closing"), text[tag.end() :]
    if not tag["closing"].startswith(("<", "[")) or tag["closing"].startswith("<|"):
        return True  # cannot be ordinary text
    is_alone = not behind.strip(" \t") or behind.lstrip(" \t").startswith(("\n\n", "\r\n\r\n"))
    is_attached = not text[start - 1 : start].isspace() and behind.startswith(("\n", "\r\n"))
    line = text[text.rfind("\n", 0, start) + 1 : start]
    is_ended = not line.strip() or _ENDED.search(line) or _THINKS_ALOUD.match(text)
    return is_alone or is_attached or bool(is_ended)
