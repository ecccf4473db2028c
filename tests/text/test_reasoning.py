"""Reasoning at the beginning of a reply goes; an answer keeps its tags."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.reasoning import without_reasoning

THOUGHT = (
    "When is it? Maybe `later`.\n\n- on startup\n- on the second write\n\nPassage 1 says first."
)
ANSWER = "It is built on the **first** write:\n\n```py\nx < 3\n```"

BLOCKS = [
    f"<{name}>{THOUGHT}</{name}>"
    for name in ("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "THINK")
] + [
    f"<think>\n{THOUGHT}\n</think>\n\n",
    f"\n\n <think>\n{THOUGHT}</Think>",
    f"{THOUGHT}\n</think>\n\n",
    f"{THOUGHT}</thinking>",
    f"<think>\n\n</think>\n\n<think>{THOUGHT}</think>",
    f"{THOUGHT}\n</think>\n</think>\n",
    f"<seed:think>{THOUGHT}</seed:think>",
    f"[THINK]{THOUGHT}[/THINK]",
    f"\u25c1think\u25b7{THOUGHT}\u25c1/think\u25b7",
    f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>",
    f"Okay.\n<think>{THOUGHT}</think>\n",
    f"Let me see. <think>{THOUGHT}</think> ",
    *(
        f"{agreed}\n<think>{THOUGHT}</think>\n"
        for agreed in ("Gut.", "\u597d\u7684\u3002", "Yes.", "Got it.")
    ),
    *(
        f"<{name}>{THOUGHT}</{name}>"
        for name in ("antThinking", "internal_thoughts", "chain_of_thought", "inner_monologue")
    ),
    f"<|think|>{THOUGHT}<|/think|>",
    f"<unused94>thought\n{THOUGHT}<unused95>",
    f"\ufeff<think>{THOUGHT}</think>",
    f"<think>The <think> tag opens it and </think> closes it. {THOUGHT}</think>",
    f"<think>It may be ```py\nx\n\n{THOUGHT}\n</think>\n",
    f"<thinking>a\n<reflection>b</reflection>\n{THOUGHT}</thinking>",
    f"<|channel|>analysis<|message|>{THOUGHT}<|channel|>final<|message|>",
    f"{THOUGHT}<|end|><|start|>assistant<|channel|>final <|constrain|>md<|message|>",
    f"analysis{THOUGHT}assistantfinal",
]
PROSE = [
    "<think> opens the reasoning and </think> closes it [1].",
    "<think> opens the reasoning.\n</think> closes it.",
    "- <think> opens the reasoning\n- </think> closes it",
    "1. <think> opens it.\n2. </think> closes it.",
    "`<think>` opens the reasoning and `</think>` closes it.",
    '"<think>" opens the reasoning, "</think>" closes it.',
    "Put it between <think>\u2026</think> tags.",
    "Between <think> and </think> Claude writes its reasoning.",
    "The tag </think>, which closes it, is optional.",
    "| <think> | opens |\n| </think> | closes |",
    "<think> is never closed.",
    "The <think> tag is never closed.",
    "Tags: <think>, <reasoning>.",
    "Write:\n\n```xml\n<think>\nhm\n</think>\nParis\n```\n\nDone.",
    "Write:\n\n    <think>\n    hm\n    </think>\n\nDone.",
    "The channel is `<|channel|>final<|message|>`.",
    "A turn ends with <|im_end|>",
    "[Think](https://example.org) about it.",
    "Prompt it with:\n\n<think>\nhm\n</think>\n\nThen read the reply.",
    "- <think>\u2026</think>\n- the answer",
    "Sure, this is how it looks:\n\n<think>\nhm\n</think>\n\nParis.",
    "One.\n\n<thinking> okay, the user\n</thinking>\nTwo.",
    "42.\n<think>That is right.</think>",
    "First part.\n\n<think>Now the",
]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("end", ["", "<|im_end|>", "\n<|end|>\n<|return|>"])
def test_reasoning_goes(block: str, end: str) -> None:
    assert without_reasoning(f"{block}{ANSWER}{end}") == (ANSWER, False)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "</s>"),
        ("<s> ", " </s>"),
        ("<start_of_turn>model\n", "<end_of_turn>"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
        ("<|im_start|>assistant\n", "<|im_end|>"),
        ("", " [end of text]"),
    ],
)
def test_tokens_of_chat_templates_go(before: str, after: str) -> None:
    assert without_reasoning(f"{before}{ANSWER}{after}") == (ANSWER, False)


@pytest.mark.parametrize("text", ["<s>old</s> new", "It was <s>red</s>", "Assistant\nis a word."])
def test_struck_text_and_roles_of_an_answer_stay(text: str) -> None:
    assert without_reasoning(text) == (text, False)


@pytest.mark.parametrize("answer", PROSE)
@pytest.mark.parametrize("before", ["", f"<think>{THOUGHT}</think>\n\n"])
def test_an_answer_about_the_tags_stays(answer: str, before: str) -> None:
    assert without_reasoning(before + answer) == (answer, False)


MENTIONS = [
    "Everything up to </think> (inclusive) is dropped. The rest is the answer.",
    "\u63a8\u7406\u653e\u5728<think>\u548c</think>\u4e4b\u95f4\u3002\u53bb\u6389\u5b83\u3002",
    "Alles bis zum </think> Token wird entfernt. Danach folgt die Antwort.",
    "1. Send the prompt.\n2. Wait for </think>\n3. Read the answer.",
    "Begin the turn with\n\n<think>\n\nand sample from there.",
    "First check that the order is < 30 days old.\n\nHere is my response:\n\nDear Ms Berg, thanks.",
    "Here is my response:\n\nCall `<b>`.",
]
ENDS = [
    "The token that ends a turn is: <|im_end|>",
    "The token that ends a turn is:\n\n<|im_end|>",
    "**Token** <|eot_id|>",
    "Qwen ends it with a token (once) <|im_end|>",
    'It is called "end of turn", <|eot_id|>',
    "It is known.\n\nAnswer: <|im_end|>",
    "- <|im_start|>\n- <|im_end|>",
    "It is one of these.\n1. <|im_start|>\n2. <|im_end|>",
    "\u7ed3\u675f\u7b26\u662f\uff1a <|im_end|>",
]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<think>hmm</think> yes", ("yes", False)),
        ("<think>hmm </think> yes", ("yes", False)),
        ("Hm, not `later` </think> It is.", ("It is.", False)),
        ("<think>\nOkay, the user", ("", True)),
        ("<think>Does `</think>` close it? It", ("", True)),
        ("<|channel|>analysis<|message|>Okay", ("", True)),
        ("<think>\u7528\u6237\u95ee</think>\u7b54\u6848", ("\u7b54\u6848", False)),
        ("<|channel>thought\nWas it?\n<channel|>Paris.", ("Paris.", False)),
        ("<|channel>thought\n<channel|>Paris.", ("Paris.", False)),
        ("<|inner_prefix|>Was it?<|inner_suffix|>Paris.", ("Paris.", False)),
        ("<SCRATCHPAD>Was it?</SCRATCHPAD>\nParis.", ("Paris.", False)),
        ("It is <|begin_of_box|>Paris<|end_of_box|>.", ("It is Paris.", False)),
        ("Here is my thought process: so.\n\nHere is my response: Paris.", ("Paris.", False)),
        ("It is Paris\n</think>\n\nParis.", ("Paris.", False)),
        ("It is Paris</think>\nParis.", ("Paris.", False)),
        *((mention, (mention, False)) for mention in MENTIONS),
        ("<think>So.\nHere is my response: No.\n</think>\nParis.", ("Paris.", False)),
        (
            "<think>q</think>\n\nWait for\n</think>\nthen go.",
            ("Wait for\n</think>\nthen go.", False),
        ),
        ("<think>\nhm\n</thinking>\n\nParis.", ("Paris.", False)),
        ("Paris.<\uff5cend\u2581of\u2581sentence\uff5c>", ("Paris.", False)),
    ],
)
def test_blocks_beside_text(reply: str, expected: tuple[str, bool]) -> None:
    assert without_reasoning(reply) == expected


@pytest.mark.parametrize("answer", ENDS)
@pytest.mark.parametrize("before", ["", f"<think>{THOUGHT}</think>\n\n"])
def test_a_token_that_an_answer_names_at_its_end_stays(answer: str, before: str) -> None:
    assert without_reasoning(before + answer) == (answer, False)


@pytest.mark.parametrize(
    "answer", ["It is so.", 'He said "no."', "**Done.**", "So (see it).", "It is old [p1]", "42!"]
)
@pytest.mark.parametrize("gap", ["", " ", "\n", "\n\n"])
def test_a_token_after_a_sentence_goes(answer: str, gap: str) -> None:
    assert without_reasoning(f"{answer}{gap}<|im_end|>") == (answer, False)


@given(st.text(st.sampled_from("aB .\n`<")), st.text(st.sampled_from("aB .\n`<>/")))
def test_a_block_at_the_beginning_goes_and_the_rest_stays(thought: str, answer: str) -> None:
    assert without_reasoning(f"<think>\n{thought}\n</think>\n{answer}") == (answer.strip(), False)


@pytest.mark.parametrize(
    "piece",
    [
        "<think> a\n",
        "<think>a",
        "</think> a",
        "x <think> a </think> b",
        "<think>a</think>x\n",
        "</reasoning>\n<think> a </think> b\n",
        "`<think>",
        "<|a|>",
        "<|channel|>",
        "<|channel|>analysis<|message|>a ",
        "a <think> a ",
        "<|a|> \n",
        "<",
    ],
)
def test_hostile_replies_take_linear_time(piece: str) -> None:
    """What is quadratic in them would take minutes, which the test's time-out ends."""
    assert len(without_reasoning(piece * 10_000)) <= len(piece) * 10_000
