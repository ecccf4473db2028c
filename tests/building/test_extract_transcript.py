"""Procedures from transcripts: which runs are read at all, and what is made of their calls."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from stepcraft.building.documents import Document
from stepcraft.building.extract import ExtractContext, build_extract
from stepcraft.building.threads import transcript
from tests.building.built import called
from tests.scripted import ScriptedModel

REFUND = transcript(
    [
        HumanMessage("Refund the last order of Ana"),
        *called("search_orders", "no such customer", status="error", customer="Anna"),
        *called("search_orders", '[{"order": 17}]', customer="Ana", limit=1),
        *called("refund", "done", order=17, reason="late"),
        AIMessage("Refunded order 17."),
    ],
    "threads:runs.jsonl?thread=1",
)
WRITTEN = """\
PROCEDURE
Heading: Goal
Output: refund the last order of a customer
Input: the name of the customer, the tools `search_orders` and `refund`
1. Call `search_orders(customer=<customer>, limit=1)` with the name as the account has it.
2. Call `refund(order=order_id, reason="late")` with the `order` of the first result.
"""
REACHED = "REACHED\nThe refund was made."
CONTEXT = ExtractContext(strict=True, max_characters=10_000)


def run(
    replies: dict[str, list[Any]], document: Document = REFUND, **more: Any
) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies)
    values: Any = {**vars(document), **more}
    return build_extract(model=model).invoke(values, context=CONTEXT), model


def test_a_run_that_reached_its_goal_becomes_a_procedure() -> None:
    result, model = run({"success": [REACHED], "extract": [WRITTEN]})
    [found] = result["procedures"]
    assert found["output"] == "refund the last order of a customer"
    assert len(found["steps"]) == 2
    # Names that stand for values are no flags.
    assert (found["flagged"], result["rejected"], result["warnings"]) == ([], [], [])
    assert (found["source"], found["heading"]) == (REFUND.source, "")
    verdict, extraction = model.calls
    for call in (verdict, extraction):
        assert "# Call 3: `refund`" in call.prompt
        assert "no such customer" in call.prompt
    assert "one run of an agent" in extraction.prompt
    assert result["usage"]["nodes"]["success"]["calls"] == 1


def test_a_run_with_feedback_needs_no_verdict() -> None:
    result, model = run({"extract": [WRITTEN]}, succeeded=True, outcome="its feedback thumbs is 1")
    assert (len(result["procedures"]), model.nodes) == (1, ["extract"])
    reason = "its feedback thumbs is 0"
    result, model = run({}, succeeded=False, outcome=reason)
    assert (result["procedures"], model.nodes) == ([], [])
    assert [(each["output"], each["reason"]) for each in result["rejected"]] == [
        ("Refund the last order of Ana", reason)
    ]


VERDICTS = {
    "NOT REACHED\nIt asks back.": "it did not reach its goal: It asks back.",
    "**Not reached**\n\nThe refund failed.": "it did not reach its goal: The refund failed.",
    "NOT REACHED": "it did not reach its goal",
}


@pytest.mark.parametrize(("reply", "reason"), VERDICTS.items())
def test_a_run_that_did_not_reach_its_goal_is_rejected_with_the_reason(
    reply: str, reason: str
) -> None:
    result, model = run({"success": [reply]})
    assert (result["procedures"], model.nodes) == ([], ["success"])
    assert [one["reason"] for one in result["rejected"]] == [reason]


@pytest.mark.parametrize("reply", ["REACHED", "> **REACHED**\n\nDone.", "reached. It was done."])
def test_a_verdict_is_read_as_models_write_it(reply: str) -> None:
    assert len(run({"success": [reply], "extract": [WRITTEN]})[0]["procedures"]) == 1


def test_a_run_without_a_verdict_is_not_read() -> None:
    result, model = run({"success": ["I think so.", "Perhaps."]})
    assert (result["procedures"], model.nodes) == ([], ["success", "success"])
    assert (result["rejected"], result["unread"], len(result["warnings"])) == ([], 1, 1)


INVENTED = {
    "3. Call `notify_customer(customer=<customer>)`.": ["notify_customer"],
    "3. Call `refund(order=<order>, currency=<currency>)`.": ["currency"],
    "3. Call `refund(order=order_id, amount=250)`.": ["amount", "250"],
    '3. Send `{"order": order_id, "note_text": note}` to `refund`.': ["note_text"],
}


@pytest.mark.parametrize(("step", "names"), INVENTED.items())
def test_tools_and_arguments_that_no_call_has_are_invented(step: str, names: list[str]) -> None:
    result, _ = run({"success": [REACHED], "extract": [f"{WRITTEN}{step}\n"]})
    assert result["rejected"][0]["reason"] == (
        f"step 3 has what the document does not have: {', '.join(names)}"
    )


GENERAL = """\
PROCEDURE
Heading: Goal
Output: refund the last order of a customer
Input: the customer's name, the tools `search_orders` and `refund`
1. Find the order with `search_orders(customer=<name as the account has it>, limit=1)`, and take `order` from the result.
2. Send `{"order": <order>, "reason": reason}` to `refund`, which needs the `order` of step 1.
3. Where there are 2 orders, do so for each with `refund(order=<order>/<part>, reason="<why>")`.
"""
"""Steps as models write them."""


def test_values_in_general_words_are_no_flags() -> None:
    result, _ = run({"success": [REACHED], "extract": [GENERAL]})
    assert [each["flagged"] for each in result["procedures"]] == [[]]


def test_a_document_is_asked_for_no_verdict() -> None:
    _, model = run({"extract": [WRITTEN]}, kind="document", succeeded=False)
    assert model.nodes == ["extract"]


def test_the_verdict_on_a_long_run_rests_on_its_beginning_and_its_end() -> None:
    calls = [called(f"tool_{n}", "x " * 2_000, note="w " * 800) for n in range(200)]
    thread = [HumanMessage("Do it all"), *chain.from_iterable(calls), AIMessage("All done.")]
    _, model = run({"success": ["NOT REACHED\nNo."]}, transcript(thread, "x"))
    [call] = model.calls
    assert len(call.prompt) < 13_000
    assert all(part in call.prompt for part in ("Do it all", "All done.", "characters…]"))
