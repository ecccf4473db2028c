"""Examples from a sample: prompts of the paper's graph, and the replies to learn (RPG §3.4).

A sample with n segments has a plan and an answer for each, and a plan that says that the answer is
complete. The prompts are exactly those of `rpg_paper`, so a trained model can serve as its planner
and writer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from langchain_core.messages import BaseMessage
from transformers import PreTrainedTokenizerBase

from stepcraft.evidence import Evidence
from stepcraft_papers.contexts import RpgPaperContext
from stepcraft_papers.nodes.plan_segment import ask_for_plan
from stepcraft_papers.nodes.state import Selected
from stepcraft_papers.nodes.write_segment import ask_for_segment
from stepcraft_papers.training.samples import Segment, TrainingSample

Task = Literal["plan", "answer"]
TASKS: tuple[Task, ...] = ("plan", "answer")
"""The tasks, in the order of their numbers in multitask prompt tuning."""
NO_INFO, COMPLETE = "<no_info>", "<complete>"
"""The plans that say that nothing has to be looked up, or that the answer is complete."""
IGNORED = -100
"""The label of a token that does not count towards the loss."""
_SETTINGS = RpgPaperContext.model_validate({})


@dataclass(frozen=True)
class Example:
    """A prompt and the reply to be learned."""

    task: Task
    messages: Sequence[BaseMessage]
    reply: str


class Encoded(TypedDict):
    """The tokens of an example."""

    input_ids: list[int]
    labels: list[int]
    """The tokens of the reply and its end token; all tokens before them are ignored."""
    task: int
    """The number of the example's task."""


def examples(sample: TrainingSample) -> Iterator[Example]:
    """Yield the examples from a sample, in the order in which the graph makes the calls."""
    for number, segment in enumerate(sample.segments):
        state = _state(sample, sample.segments[:number])
        if segment.plan or not number:
            yield Example("plan", ask_for_plan(state, _SETTINGS), segment.plan or NO_INFO)
        planned: Any = {**state, "plans": [*state["plans"], segment.plan], **_selected(segment)}
        yield Example("answer", ask_for_segment(planned, _SETTINGS), segment.text)
    state = _state(sample, sample.segments)
    if state["plans"]:
        yield Example("plan", ask_for_plan(state, _SETTINGS), COMPLETE)


def _state(sample: TrainingSample, written: Sequence[Segment]) -> Any:
    return {
        "task": sample.question,
        "form": sample.kind,
        "plans": [each.plan for each in written if each.plan],
        "answer": "\n\n".join(each.text for each in written),
        "evidence": [],
        "selected": [],
    }


def _selected(segment: Segment) -> dict[str, Any]:
    titles = dict.fromkeys(each.title for each in segment.support)
    evidence = [Evidence(id=title, title=title, text="", source="", score=1.0) for title in titles]
    selected = [
        Selected(passage=each.title, title=each.title, text=each.text, score=1.0)
        for each in segment.support
    ]
    return {"evidence": evidence, "selected": selected}


def prompt_text(messages: Sequence[BaseMessage], tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a prompt as the model reads it, using its chat template if it has one."""
    if tokenizer.chat_template:
        roles = {"system": "system", "human": "user", "ai": "assistant"}
        chat = [{"role": roles[each.type], "content": each.text} for each in messages]
        return str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True))
    return "".join(f"{each.text}\n\n" for each in messages)


def prompt_ids(
    messages: Sequence[BaseMessage], tokenizer: PreTrainedTokenizerBase, *, instructions: bool
) -> list[int]:
    """Return the tokens of a prompt, with or without the system message with the instructions."""
    shown = messages if instructions else [each for each in messages if each.type != "system"]
    plain = not tokenizer.chat_template  # a template writes its special tokens itself
    return list(tokenizer(prompt_text(shown, tokenizer), add_special_tokens=plain)["input_ids"])


def encoded(example: Example, tokenizer: PreTrainedTokenizerBase, *, instructions: bool) -> Encoded:
    """Return the tokens of an example, with those of the reply as its labels."""
    before = prompt_ids(example.messages, tokenizer, instructions=instructions)
    reply = list(tokenizer(example.reply, add_special_tokens=False)["input_ids"])
    learned = [*reply, tokenizer.eos_token_id]
    return {
        "input_ids": [*before, *learned],
        "labels": [*[IGNORED] * len(before), *learned],
        "task": TASKS.index(example.task),
    }
