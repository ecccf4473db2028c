"""Write the next segment of the answer from the sentences selected for its plan (RPG §3.2)."""

from itertools import groupby

from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import answer_text
from stepcraft.nodes.draft import shown_passages
from stepcraft.nodes.trace import TracedSentence
from stepcraft.text.citations import cited_sentences, without_marks
from stepcraft.text.sections import Section
from stepcraft_papers.contexts import RpgPaperContext
from stepcraft_papers.nodes.state import Prompt, RpgPaperState, Segment, sections

_FORMATS = {
    "long": """\
The segment alone: one to four sentences of running text, at most {tokens} tokens (about {words}
words).""",
    "short": """\
The answer alone, in as few words as it takes and at most {tokens} tokens: the name, the date, the
number, or yes or no; a sentence only where the question asks for one.""",
    "multihop": """\
The segment alone: one or two sentences that state what was found out on the plan, with all names in
full; at most {tokens} tokens (about {words} words).""",
}


def ask_for_segment(state: RpgPaperState, settings: RpgPaperContext) -> Prompt:
    """Show the question and the text first, then the plan and its sentences, for a prompt cache."""
    size, plan = settings.segment_tokens, "".join(state["plans"][-1:])
    material = sections(question=state["task"], text=state["answer"], plan=plan)
    shown = {state["evidence"][number - 1]["id"] for number in shown_passages(state)}
    selected = [each for each in state["selected"] if each["passage"] in shown]
    for title, group in groupby(selected, key=lambda each: each["title"]):
        material.append(Section("passage", title, "\n".join(each["text"] for each in group)))
    form = _FORMATS[state["form"]].format(tokens=size, words=7 * size // 10)
    if selected:
        form += " Add nothing that the passages do not say."
    return prompt(settings.answer_instructions, form, "segment", material)


def read_segment(reply: str, state: RpgPaperState, _settings: RpgPaperContext) -> Update:
    """Return the segment; if the reply repeats the text before it, leave that out.

    Raises:
        UnreadableReply: It adds nothing to the text.
    """
    text = without_marks(answer_text(reply).removeprefix(state["answer"])).strip()
    if not text:
        raise UnreadableReply("it adds nothing to the text; write the next segment alone.")
    selected = state["selected"]
    segment = Segment(
        plan="".join(state["plans"][-1:]),
        sentences=selected,
        text=text,
        evidence=list(dict.fromkeys(sentence["passage"] for sentence in selected)),
        unsupported=not selected,
    )
    *texts, last = [each for each, _ in cited_sentences(text, {})]
    sentences = [
        TracedSentence(
            text=each, evidence=segment["evidence"], unconfirmed=[], supported=bool(selected)
        )
        for each in (*texts, f"{last}\n\n")
    ]
    return {
        "segments": [*state["segments"], segment],
        "sentences": [*state["sentences"], *sentences],
        "answer": f"{state['answer']}\n\n{text}".strip(),
    }


write_segment = ModelNode(
    "answer",
    ask_for_segment,
    read_segment,
    lambda _state, _reason: {},
    started="Writing a segment.",
)
