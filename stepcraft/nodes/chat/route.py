"""Make of the last message a question that stands on its own, and choose the method that answers it.

One model call does both. A single message for a method that is named needs none, and without a language model a rule
on the words of the message decides.
"""

import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from stepcraft.contexts.chat import AUTO, ChatContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of, unwrapped
from stepcraft.nodes.chat.conversation import most_tokens, said_before
from stepcraft.progress import Said
from stepcraft.text.clean import clean
from stepcraft.text.sections import section

_KIND = """\
A line KIND: with one word, GOAL, HOPS, OTHER or TALK. Then a line WHY: with the reason in a few words."""
_QUESTION = """\
{start} QUESTION: with the message as it stands on its own, or with the one word SAME if nothing in it is to be changed.
Nothing after that."""

_LABEL = re.compile(
    r"[ \t>*_#`-]{0,8}(kind|why|question)[ \t*_`]{0,4}[:\uff1a][ \t*_`]{0,4}(.*)", re.IGNORECASE
)
_WORD = re.compile(r"[A-Z]+")

_KINDS = {
    "GOAL": "it asks how something is done",
    "HOPS": "it asks for facts that depend on each other",
    "OTHER": "it asks neither how something is done nor for facts that depend on each other",
    "TALK": "it asks nothing",
}
"""The kinds of messages, and what is said of one without a reason of its own."""

_GOAL = re.compile(
    r"how (?:do|can|should|would|could) (?:i|we|you|one)\b|how to\b|(?:step by step|instructions for|steps to|guide to)\b"
    r"|^\W{0,3}(?:please )?(?:set up|install|build|create|configure|deploy|implement|make|bake|cook|write|add|migrate"
    r"|connect|integrate|prepare|plan|fix|repair|assemble)\b",
    re.IGNORECASE,
)
_ASKS_FACT = re.compile(r"\W{0,3}(?:who|what|which|when|where|whose|in which|in what)\b", re.IGNORECASE)
_NESTED = re.compile(
    r"\b(?:the|a|an)(?: [\w'-]+){1,3} (?:that|who|which|whose|where)\b|\bwhose\b|\bof (?:the|a|an) [\w'-]+ of\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:compared? (?:with|to)|difference between|differ from|in common|older|younger|earlier|later|larger|bigger)\b",
    re.IGNORECASE,
)
_REFERS = re.compile(
    r"\b(?:it|its|that|this|these|those|they|them|their|he|she|his|her|one|ones|former|latter|again|instead)\b"
    r"|^\W{0,3}(?:and|but|or|so|then|why|what about|how about)\b",
    re.IGNORECASE,
)


class Reading(Budgeted):
    """The input of this node."""

    messages: list[AnyMessage]
    asked: str
    has_model: bool


def ask(state: Reading, context: ChatContext) -> list[BaseMessage]:
    """Show the conversation and the last message."""
    said = _said(state, context)
    form = [_KIND] if context.method == "auto" else []
    if said:
        form.append(_QUESTION.format(start="Last, a line" if form else "A line"))
    names = {"person": "Person", "assistant": "Assistant"}
    turns = "\n\n".join(f"{names[speaker]}: {text}" for speaker, text in said)
    sections = [section("conversation", turns) if said else "", section("question", state["asked"])]
    return prompt(context.route_instructions, " ".join(form), "route", sections)


def read(reply: str, state: Reading, context: ChatContext) -> dict[str, Any]:
    """The question that stands on its own, the method and the reason, each where it was asked for."""
    text = unwrapped(text_of(reply)).strip()
    lines = _labelled(text, {"kind", "why", "question"} if context.method == "auto" else {"question"})
    update = _chosen(context, "", "")
    if context.method == "auto":
        named = set(_WORD.findall((lines.get("kind") or text.partition("\n")[0]).upper())) & AUTO.keys()
        if len(named) != 1:
            raise UnreadableReply("there was no line KIND: with one of the words GOAL, HOPS, OTHER and TALK.")
        kind = named.pop()
        update = _chosen(
            context, kind, " ".join(lines.get("why", "").split())[:300].rstrip(" .") or _KINDS[kind]
        )
    if _said(state, context):
        alone = context.method != "auto" and "\n" not in text
        question = clean(lines.get("question") or (text if alone else "")).strip()
        if not question:
            raise UnreadableReply(
                "there was no line QUESTION: with the message as it stands on its own, or SAME.",
                update={**update, "asked": state["asked"]},
            )
        same = question.strip(" .*_`\"'").upper() == "SAME"
        update["asked"] = state["asked"] if same else question
    return update


def skip_model(state: Reading, context: ChatContext) -> dict[str, Any] | None:
    """No call where nothing is to be decided, or without a language model."""
    if not state["has_model"]:
        return _by_rule(state, context)
    return _chosen(context, "", "") if context.method != "auto" and not _said(state, context) else None


def without_reply(state: Reading, _why: str) -> dict[str, Any]:
    """As without a language model."""
    return _by_rule(state, ChatContext.current(state))


def _by_rule(state: Reading, context: ChatContext) -> dict[str, Any]:
    """The method by the words of the message; a message that refers to the one before it is asked together with it."""
    asked = state["asked"]
    hops = _COMPARES.search(asked) or (_ASKS_FACT.match(asked) and _NESTED.search(asked))
    kind = "GOAL" if _GOAL.search(asked) else "HOPS" if hops else "OTHER"
    update = _chosen(context, kind, f"a rule on its words decided, no language model: {_KINDS[kind]}")
    said = [text for speaker, text in _said(state, context) if speaker == "person"]
    if said and (_REFERS.search(asked) or len(asked.split()) < 4):
        update["asked"] = f"{said[-1]}\n{asked}"
    return update


def _chosen(context: ChatContext, kind: str, why: str) -> dict[str, Any]:
    if context.method == "auto":
        return {"method": AUTO.get(kind, ""), "reason": why}
    return {"method": context.method, "reason": "the settings of the run name it"}


def _said(state: Reading, context: ChatContext) -> Sequence[tuple[str, str]]:
    return said_before(state["messages"], most_tokens(context))[0]


def _labelled(text: str, labels: Collection[str]) -> dict[str, str]:
    """What stands after each of the labels, up to the next one."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        match = _LABEL.fullmatch(line)
        if match and match[1].lower() in labels and match[1].lower() not in found:
            label = match[1].lower()
            found[label] = match[2].rstrip(" *_`") if label != "question" else match[2]
        elif label:
            found[label] += f"\n{line}"
    return {name: value.strip() for name, value in found.items()}


def describe(state: Reading, update: Mapping[str, Any]) -> Said:
    """What was chosen."""
    asked, method, reason = update.get("asked", state["asked"]), update["method"], update["reason"]
    text = f"{method.upper()} answers ({reason}): {asked}"
    return Said(text, {"method": method, "reason": reason, "question": asked})


class RouteNode(ModelNode):
    """The model node, which also notes how long its choice took.

    Its tokens are not streamed, for they are no part of an answer.
    """

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As in every model node."""
        return self._timed(input, super().invoke(input, _unstreamed(config)))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As in every model node."""
        return self._timed(input, await super().ainvoke(input, _unstreamed(config)))

    def _timed(self, state: Mapping[str, Any], update: dict[str, Any]) -> dict[str, Any]:
        started = state.get("started") or update["started"]
        # In tenths, so that a message that needs no call leaves the method the whole deadline.
        return {**update, "took_s": round(time.monotonic() - started, 1)}


def _unstreamed(config: RunnableConfig | None) -> RunnableConfig:
    config = config or {}
    return {**config, "tags": [*(config.get("tags") or []), TAG_NOSTREAM]}


route = RouteNode(
    "route",
    ask,
    read,
    fallback=without_reply,
    skip_model=skip_model,
    reserve_calls=lambda _state: 1,
    description="Make the message a question that stands on its own, and choose who answers it.",
    starts=lambda state: Said("Reading the conversation.", {"question": state["asked"]}),
    describe=describe,
)
