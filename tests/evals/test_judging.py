"""Judging a directory: several judges, budgets, and inputs that are too long."""

import re
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from stepcraft import BadInput
from stepcraft.errors import RunStopped
from stepcraft.evals.progress import Budget
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.summary import summarise
from stepcraft.evals.votes import every_judgement, read_judgements
from tests.evals.judged import (
    JudgeModel,
    evaluation,
    judged,
    pair,
    passage,
    preferring,
    saying,
    shown,
)
from tests.evals.runs import stepcraft
from tests.servers.openai_server import OpenAIServer


def test_two_judges_of_one_name_and_none(tmp_path: Path) -> None:
    pair(tmp_path)
    for judges in ([saying("A"), saying("A")], []):
        with pytest.raises(BadInput, match="name each once"):
            judged(tmp_path, judges)


def test_a_budget_of_calls_is_kept_and_the_same_command_goes_on(tmp_path: Path) -> None:
    pair(tmp_path, 4)
    model = JudgeModel(lambda *_: "T", latency=0.001)
    for most in (5, 5, 12):
        stopped = f"the budget of {most} calls is used up: {most} of 16 calls to judges are done"
        with pytest.raises(RunStopped, match=stopped):
            judged(tmp_path, model, votes=4, concurrency=3, budget=Budget(calls=most))
        assert len(model.calls) == len(read_judgements(tmp_path)) == most
    other = saying("T", model="other")
    judged(tmp_path, other, votes=4, budget=Budget(calls=16))
    assert len(other.calls) == 16, "what another judge was asked does not count"
    judged(tmp_path, model, votes=4, budget=Budget(calls=16))
    assert len(model.calls) == 16, "a budget that just does is no reason to stop"


def test_a_budget_of_tokens_counts_calls_that_failed_before(tmp_path: Path) -> None:
    pair(tmp_path, 2)

    def counted(_node: str, _prompt: str) -> AIMessage:
        return AIMessage(
            "T", usage_metadata={"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
        )

    for most in (250, 300):
        with pytest.raises(RunStopped, match=f"the budget of {most} tokens is used up: 3 of 4"):
            judged(tmp_path, JudgeModel(counted), votes=2, budget=Budget(tokens=most))
    assert sum(call["usage"]["input_tokens"] for call in every_judgement(tmp_path)) == 270
    failing = JudgeModel(lambda *_: RuntimeError("no such luck"))
    judged(tmp_path, failing, votes=2, budget=Budget(calls=4))
    with pytest.raises(RunStopped, match="the budget of 4 calls is used up: 3 of 4"):
        judged(tmp_path, failing, votes=2, budget=Budget(calls=4))


def test_several_judges_are_counted_apart_and_a_budget_leaves_them_common_samples(
    tmp_path: Path,
) -> None:
    judges = [preferring("rat", "one"), preferring("rag", "two")]
    with pytest.raises(RunStopped, match="the budget of 12 calls"):
        judged(pair(tmp_path, 6), judges, votes=2, budget=Budget(calls=12))
    preferences = summarise(tmp_path).preferences
    assert [(each.judge, each.wins, each.losses) for each in preferences] == [
        ("one", 3, 0),
        ("two", 0, 3),
    ]


@pytest.mark.parametrize(
    "output",
    [
        {"answer": "It was finished in 1566 [2]."},
        {"answer": "…", "sentences": [{"text": "It was finished in 1566.", "evidence": ["b"]}]},
    ],
)
def test_passages_that_are_cited_are_shown_before_others(
    tmp_path: Path, output: dict[str, object]
) -> None:
    long = "Nothing in particular happened in that quiet valley. " * 20
    bridge = "The bridge of Mostar was finished in 1566 by an Ottoman builder."
    evidence = [passage(*each) for each in (("a", "A", long), ("b", "B", bridge), ("c", "C", long))]
    evaluation(tmp_path, {"rag": [{**output, "evidence": evidence}]})
    model = saying("1: SUPPORTED")
    summary = judged(tmp_path, model, passage_tokens=300)
    [call] = model.calls
    assert [id_ for name, id_ in shown(call.prompt) if name == "passage"] == ["p1", "p2"]
    assert "scripted:judge was not shown all passages of rag, which were too long" in markdown(
        summary
    )


def test_on_the_command_line(tmp_path: Path) -> None:
    pair(tmp_path, 2)
    command = f"judge {tmp_path} --judge openai:one --judge openai:two --votes 2"
    with OpenAIServer(lambda _body: "T") as server:
        stopped = stepcraft(f"{command} --max-calls 5 --quiet", server)
        assert stopped.exit_code == 1
        [line] = stopped.stderr.strip().splitlines()
        assert line.endswith("start the same command again")
        unknown = stepcraft(f"{command} --max-usd 1 --price openai:one=1/1", server)
        assert "that of openai:two is unknown; name it with --price" in unknown.stderr
        ran = stepcraft(f"{command} --price 1/1", server)
    assert re.search(r"8 of 8 done.* 8 calls.* USD", ran.stderr)
    assert "| openai:two | rat | rag | 0 | 0 | 2 |" in ran.stdout
    judges = [call["judge"] for call in read_judgements(tmp_path)]
    assert sorted(judges) == ["openai:one"] * 4 + ["openai:two"] * 4
