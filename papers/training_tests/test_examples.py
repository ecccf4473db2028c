"""What is learned of a sample, to the token."""

from typing import Any

import pytest

from papers.training_tests.made import SAMPLES
from stepcraft_papers.contexts import RpgPaperContext
from stepcraft_papers.graphs.rpg import build_rpg_paper
from stepcraft_papers.training.examples import (
    COMPLETE,
    IGNORED,
    NO_INFO,
    TASKS,
    encoded,
    examples,
    prompt_text,
)
from stepcraft_papers.training.samples import Segment, TrainingSample
from stepcraft_papers.training.train import loaded_tokenizer
from tests.scripted import ScriptedModel
from tests.shelf import Shelf

SAMPLE = SAMPLES[0]
TEXTS = SAMPLE.segments[0]


@pytest.mark.parametrize("task", TASKS)
def test_the_labels_are_the_reply_and_its_end_and_nothing_else(base: str, task: str) -> None:
    tokenizer = loaded_tokenizer(base)
    example = next(each for each in examples(SAMPLE) if each.task == task)
    made = encoded(example, tokenizer, instructions=True)
    learned = [label for label in made["labels"] if label != IGNORED]
    start = len(made["labels"]) - len(learned)
    assert made["labels"] == [*[IGNORED] * start, *made["input_ids"][start:]]
    assert learned[-1] == tokenizer.eos_token_id
    reply = {"plan": TEXTS.plan, "answer": TEXTS.text}[task]
    assert tokenizer.decode(learned[:-1]) == example.reply == reply
    assert tokenizer.decode(made["input_ids"][:start]).endswith("</question>\n\n") == (
        task == "plan"
    )


def test_instructions_may_be_left_to_the_adapters(base: str) -> None:
    tokenizer = loaded_tokenizer(base)
    made = encoded(next(examples(SAMPLE)), tokenizer, instructions=False)
    text = tokenizer.decode(made["input_ids"])
    assert text.startswith("<question>\nWho built")
    assert text.endswith(f"{TEXTS.plan}</s>")


def test_a_chat_template_is_used_where_there_is_one(base: str) -> None:
    tokenizer = loaded_tokenizer(base)
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]"
    )
    shown = prompt_text(next(examples(SAMPLE)).messages, tokenizer)
    assert shown.startswith("[system]")
    assert "[user]<question>" in shown
    assert shown.endswith("[assistant]")


def test_the_prompts_are_those_of_the_papers_graph() -> None:
    model = ScriptedModel({"plan": [TEXTS.plan, COMPLETE], "answer": [TEXTS.text]})
    [support] = TEXTS.support
    shelf = Shelf(passages={support.title: support.text})
    graph = build_rpg_paper(model=model, sources=shelf)
    asked = {"question": f"{SAMPLE.question} See: {support.title}"}
    graph.invoke(asked, context=RpgPaperContext(select=False))
    sample = SAMPLE.model_copy(update=asked)
    learned = [each.messages for each in examples(sample)]
    assert [call.messages for call in model.calls[:3]] == learned


def test_what_needs_no_look_up_has_one_plan() -> None:
    segment = Segment(plan="", support=(), text="Good day!")
    sample = TrainingSample(id="1", question="Hi", origin="self-rag", segments=(segment,))
    made: list[Any] = [(each.task, each.reply) for each in examples(sample)]
    assert made == [("plan", NO_INFO), ("answer", "Good day!")]
