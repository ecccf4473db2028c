"""Ask a model for the plan of each segment and the sentences that support it (RPG §3.3).

The paper asks for these one at a time, and for ASQA also asks which readings of the question a
sentence answers. Here, a single call labels all segments of an answer.
"""

import re
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, Unpack

from stepcraft.contexts.base import Settings, instructions
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import asked, prompt
from stepcraft.llm.resources import BuilderOptions, Resources, compiled
from stepcraft.llm.usage import RunState, Usage, no_usage
from stepcraft.text.sections import Section
from stepcraft.text.sentences import passage_sentences
from stepcraft_papers.training.samples import Segment, Support

INSTRUCTIONS = """\
The answer to a question stands before you in numbered segments, each followed by the numbered
sentences of the passages that were at hand for it. A writer is to learn from it to plan each
segment before writing it.
For each segment write the plan that this writer should have had: what had to be looked up for it,
as a short topic. It names in full the persons, places, works and things that the question or an
earlier segment has named, and nothing that only this segment finds out. Whoever looks it up sees
neither the question nor the answer. Where the question can be read in several ways, the plan names
the reading that the segment answers. No two plans are the same.
Then list the sentences that bear the segment out: those that somebody who checks it needs, and no
others; of several that say the same, one. Sentences on something else bear out nothing, however
similar they are. What a reader would plainly infer from sentences is borne out by them. A segment
that says more than that, or that something was not found, is borne out by none."""
_FORMAT = """\
For each segment, in order, three lines and nothing else:
SEGMENT <its number>
PLAN: <the topic, at most 12 words>
SUPPORT: <the numbers of the sentences, with commas between them, or none>"""
_LABELS = re.compile(
    r"^\W*SEGMENT\W*(\d+)\W*\n\W*PLAN\W*:[*_ ]*(.+)\n\W*SUPPORT\W*:(.*)$",
    re.IGNORECASE | re.MULTILINE,
)


class Unlabelled(TypedDict):
    """A segment without its plan, and the sentences that were available for it."""

    text: str
    sentences: list[tuple[str, str]]
    """Each sentence, preceded by the title of its passage."""


class LabelContext(Settings):
    """The settings for labelling."""

    label_instructions: str = instructions("label", INSTRUCTIONS)


class LabelState(RunState):
    """The state while one answer is labelled."""

    question: str
    answered: list[Unlabelled]
    segments: list[Segment]
    usage: Usage
    warnings: list[str]


def sentences_of(title: str, text: str) -> list[tuple[str, str]]:
    """Return the sentences in a passage, each with the title of the passage."""
    return [(title, sentence) for sentence in passage_sentences(text)]


def ask_for_labels(state: LabelState, settings: LabelContext) -> list[BaseMessage]:
    """Show the question and the segments, each with its sentences."""
    sections = asked(state["question"])
    for number, segment in enumerate(state["answered"], 1):
        sections.append(Section("segment", str(number), segment["text"]))
        lines = [
            f"[{place}] {title}: {text}" if title else f"[{place}] {text}"
            for place, (title, text) in enumerate(segment["sentences"], 1)
        ]
        sections.append(Section("sentences", str(number), "\n".join(lines)))
    return prompt(settings.label_instructions, _FORMAT, "labels", sections)


def read_labels(reply: str, state: LabelState, _settings: LabelContext) -> Update:
    """Return the segments with their plans and their support.

    Raises:
        UnreadableReply: A segment has no plan.
    """
    found = {int(number): (plan, support) for number, plan, support in _LABELS.findall(reply)}
    segments: list[Segment] = []
    for number, segment in enumerate(state["answered"], 1):
        if number not in found:
            raise UnreadableReply(f"there were no PLAN and SUPPORT for segment {number}.")
        plan, support = found[number]
        chosen = sorted({int(each) for each in re.findall(r"\d+", support)})
        shown = dict(enumerate(segment["sentences"], 1))
        sentences = [Support(title=shown[n][0], text=shown[n][1]) for n in chosen if n in shown]
        segments.append(
            Segment(plan=plan.strip(" \"'*_."), support=tuple(sentences), text=segment["text"])
        )
    return {"segments": segments}


def _fail(_state: Any, reason: str) -> Update:
    raise NoAnswer(f"the segments have no plans: {reason}")


label = ModelNode("label", ask_for_labels, read_labels, _fail)


def build_label(model: BaseChatModel | str) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return the graph that labels one answer, in one call."""

    def builder(**options: Unpack[BuilderOptions]) -> StateGraph[LabelState, LabelContext]:
        graph = StateGraph(LabelState, LabelContext)
        graph.add_node("label", label.bound(Resources.of("label", LabelContext, options)))
        return graph.add_edge(START, "label").add_edge("label", END)

    return compiled(builder, "label", {"model": model})


def unlabelled(question: str, answered: list[Unlabelled]) -> dict[str, Any]:
    """Return the input of the graph for one answer."""
    return {
        "settings": {},
        "question": question,
        "answered": answered,
        "usage": no_usage(),
        "warnings": [],
    }
