"""Refusals and answers that begin like one, as a run takes them."""

import pytest
from langchain_core.messages import AIMessage

from stepcraft import NoAnswer
from stepcraft.graphs.baselines import DirectContext, build_direct
from tests.scripted import ScriptedModel

ANSWERS = [
    "We cannot write to a memory that was opened read-only; open it with a file name.",
    "I cannot create a file in a folder that is not there: make the folder first.",
    "Sorry is the word that the poem ends with.",
    "Unfortunately, we cannot support Python 3.9: typing.Self came with 3.11.",
]
REFUSALS = [
    AIMessage("I'm sorry, but I can't help with that."),
    AIMessage("I cannot assist with this request."),
    AIMessage("", additional_kwargs={"refusal": "No."}),
    AIMessage([{"type": "refusal", "refusal": "No."}]),
    AIMessage("", response_metadata={"finish_reason": "content_filter"}),
]


@pytest.mark.parametrize("text", ANSWERS)
def test_an_answer_about_what_cannot_be_done_is_an_answer(text: str) -> None:
    result = build_direct(model=ScriptedModel([text])).invoke({"question": "Why does it fail?"})
    assert (result["answer"], result["warnings"]) == (text, [])


@pytest.mark.parametrize("message", REFUSALS, ids=["text", "assist", "field", "block", "filter"])
def test_a_refusal_is_not_an_answer(message: AIMessage) -> None:
    model = ScriptedModel([message])
    with pytest.raises(NoAnswer, match="no answer was written: answer was skipped: the model declined"):
        build_direct(model=model).invoke({"question": "?!"}, context=DirectContext(retry_wait_s=0))
    assert len(model.calls) == 1
