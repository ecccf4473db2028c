"""Everything in the package that reads a text from outside, and the units of texts that are hard to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage

from stepcraft.building.transcript import Call, Transcript
from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.baselines import DirectContext
from stepcraft.contexts.chat import ChatContext
from stepcraft.contexts.extract import ExtractContext
from stepcraft.contexts.rat import RatContext
from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.index import match_expression
from stepcraft.llm import reply
from stepcraft.models.keyless import model as keyless
from stepcraft.nodes.aag import answer as aag_answer
from stepcraft.nodes.aag import critic, draft, to_query
from stepcraft.nodes.baselines import answer as baseline
from stepcraft.nodes.begin import checked_text
from stepcraft.nodes.chat import route
from stepcraft.nodes.chat.conversation import said_before
from stepcraft.nodes.extract import success
from stepcraft.nodes.rat import revise as rat_revise
from stepcraft.nodes.rat import split
from stepcraft.nodes.rat import to_query as rat_query
from stepcraft.nodes.rpg import answer as segment
from stepcraft.nodes.rpg import check, combine, outline, plan
from stepcraft.report._grounds import Ground, cited_sentences, marked_passage
from stepcraft.secrets import without_secrets
from stepcraft.sources.corpus.content import markdown_headings, rst_headings
from stepcraft.sources.web import pages
from stepcraft.text import (
    calls,
    citations,
    clean,
    lists,
    markdown,
    names,
    patch,
    sections,
    sentences,
    thoughts,
)

UNITS = [
    " ", "\n", "\t", "\t\t\n", "\r\n", "#", "# a\n", "## a\n\n", "*", "**", "**a", "**a** ", "_", "__a", "-", "- ", "- a\n",
    "- a\n\nb\n", "---\n\n", "=", "===\n", "~", "~~~\n", "`", "``", "`a", "```\n", "```sh\n", " ```", "[", "]", "[[", "[]][", "[[ - ",
    "[1", "[1,", "[1] ", "a. [1]\n", "\u3010 1", "(", "1", "1.", "1. ", "1. a\n", "1. A. ", "1-", "1: a\n", "1+: ", "3-\n", "steps 1, ", "Step 1 ", "STEP 1: a\n", "第", "一", "中",
    "它会运行。", "。", "\"", "'", "\u201c", '"Go. ', ".", ". ", "a. A", "Dr. ", ", e.g. by ", "sure ", "I'm sorry ", "let me know\n", "a\n",
    "a:\n\n", "<", "<text ", "<text>\n", "</ text ", '<text id="', "<text id='", "\u2039text ", "\uff1ctext\u200b", "\u0301\u0316", "\u200b", "é",
    "x", "\\", "questions\n", "answer\n", "query: ", "no info ", "<complete", "A of ", "://a", "sk-", "title: \n", "# #",
]  # fmt: skip

EVIDENCE = [Evidence(id="p", title="Rope", text="A rope is tied with a knot.", source="", score=1.0)]
STATE: dict[str, Any] = {
    "question": "How is Anna's rope tied?", "query": "rope", "evidence": EVIDENCE, "critiques": [], "names": [], "told": [], "goal_evidence": [], "resources_text": "", "edits": ["a"], "text": "a b",
    "thought": "b", "draft": "a\n\nb", "plans": [], "plan": "knots", "segments": [], "selected": [], "answer_style": "long", "signal": "",
}  # fmt: skip
TALK = [HumanMessage("How is a rope tied?"), AIMessage("With a knot."), HumanMessage("And it?")]
SEGMENT = {"plan": "knots", "sentences": [], "text": "A knot.", "evidence": ["p"], "unsupported": False}


def reads(node: Any, context: Any, **state: Any) -> Callable[[str], object]:
    """The reader of a node, in some state."""
    return lambda text: node.read(text, {**STATE, **state}, context)


def written_by(form: str) -> Callable[[str], object]:
    """The keyless model's reply in some format, with the text as each section of the prompt."""
    names = [name for name in sections.NAMES if name != "reply_format"]

    def write(text: str) -> object:
        parts = [f'<{name} id="1">\n{text[: len(text) // 4]}\n</{name}>' for name in names]
        asked = sections.section("reply_format", "Cite with [1].", id=form)
        return keyless.reply_to([HumanMessage("\n\n".join([asked, *parts]))])

    return write


def cited(text: str) -> object:
    """The sentences of a report on an answer that is this text."""
    segments = [{**SEGMENT, "text": text}]
    return cited_sentences({"answer": text, "evidence": EVIDENCE, "segments": segments}, inline=True)


READERS: dict[str, Callable[[str], object]] = {
    "clean": clean.clean,
    "terms": clean.terms,
    "without_markers": clean.without_markers,
    "unfenced": clean.unfenced,
    "is_refusal": clean.is_refusal,
    "read_steps": lists.read_steps,
    "read_patch": lambda text: patch.read_patch(text, [text] * 3),
    "apply": lambda text: patch.Patch((patch.Change("add", 0, text),)).apply([text, text]),
    "names_in": lambda text: names.names_in([text]),
    "mentions": lambda text: names.mentions(text, text[:3] or "a"),
    "passage_sentences": sentences.passage_sentences,
    "section": lambda text: sections.section("text", text),
    "restored": sections.restored,
    "parse": lambda text: list(sections.parse(text)),
    "with_marks_of": lambda text: citations.with_marks_of(text, {1}),
    "split_thoughts": thoughts.split_thoughts,
    "placed_in": lambda text: thoughts.placed_in(text, [text[:100], text[100:]]),
    "lines": lambda text: list(markdown.lines(text)),
    "outside_code": lambda text: list(markdown.outside_code(text)),
    "without_secrets": without_secrets,
    "match_expression": match_expression,
    "checked_text": lambda text: checked_text("question", text[:50_000]),
    "reply_text": lambda text: reply.reply_text(AIMessage(text)),
    "answer_text": reply.answer_text,
    "a reply within a tag": lambda text: reply.unwrapped(f"<text>{text}</text>"),
    "markdown_headings": markdown_headings,
    "rst_headings": rst_headings,
    "passages of a page": lambda text: list(pages._passages(pages.Page("https://a.example/", "A", text))),
    "cited_sentences": cited,
    "marked_passage": lambda text: marked_passage(
        Ground(1, {**EVIDENCE[0], "text": text}, ((0, text[:9_000] + "y"),))
    ),
    "aag answer": reads(aag_answer, AagContext()),
    "aag critic": reads(critic, AagContext()),
    "aag draft": reads(draft, AagContext()),
    "aag to_query": reads(to_query, AagContext()),
    "rat revise": reads(rat_revise, RatContext()),
    "rpg outline": reads(outline, RpgContext(), answer_style="auto"),
    "rpg check": reads(
        check,
        RpgContext(),
        sentences=[{"text": "A knot.", "evidence": ["p"], "supported": True}],
        segments=[SEGMENT],
    ),
    "parts of a sentence": citations.parts,
    "sentences with marks": lambda text: citations.cited_sentences(text, {1, 2}),
    "rat split": lambda text: reads(split, RatContext(), draft=text)(text.replace("\n", "\n===\n", 1)),
    "rat to_query": reads(rat_query, RatContext()),
    "rpg answer": reads(segment, RpgContext(citations="inline")),
    "rpg combine": reads(combine, RpgContext(citations="inline"), segments=[SEGMENT]),
    "rpg plan": reads(plan, RpgContext(), segments=[SEGMENT], plans=["knots"]),
    "baseline": reads(baseline, DirectContext()),
    "baseline's thoughts": lambda text: baseline.read_thoughts(text, STATE, DirectContext()),  # type: ignore[arg-type]
    "a transcript": lambda text: Transcript("", goal=text, events=[Call("f", text, text)]).document(),
    "a transcript's verdict": reads(success, ExtractContext(), title="a"),
    "stand-ins": lambda text: calls.without_stand_ins(f"`f({text.replace('`', '')})`"),
    "chat route": reads(route, ChatContext(), messages=TALK, asked="And it?", has_model=True),
    "chat's rule": lambda text: route.skip_model(
        {**STATE, "messages": TALK, "asked": text, "has_model": False}, ChatContext()
    ),
    "chat's last message": lambda text: said_before([HumanMessage(text), *TALK], 4_000),
    **{f"keyless {form}": written_by(form) for form in [*keyless.REPLIES, "none"]},
}
