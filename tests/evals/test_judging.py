"""Judging a directory: several judges, budgets, and inputs that are too long."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from stepcraft.errors import RunStopped
from stepcraft.evals.directory import SAMPLES, run_directory
from stepcraft.evals.judge import shown_passages
from stepcraft.evals.kinds import Kind
from stepcraft.evals.progress import Budget
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.summary import summarise
from stepcraft.evals.votes import every_judgement, read_judgements
from stepcraft.text.clean import tokens
from tests.evals.judged import (
    JudgeModel,
    evaluation,
    judged,
    outcome,
    pair,
    passage,
    preferring,
    saying,
    shown,
)
from tests.evals.runs import stepcraft
from tests.servers.openai_server import OpenAIServer

PASSAGE = [passage("a", "A", "It is so.")]
TWO = ("rag", "rat")


def test_a_budget_of_calls_is_kept_and_the_same_command_goes_on(tmp_path: Path) -> None:
    pair(tmp_path, 4)
    model = JudgeModel(lambda *_: "T", latency=0.001)
    for most in (5, 5, 12):
        stopped = f"the budget of {most} calls is used up: {most} of 16 calls are done"
        with pytest.raises(RunStopped, match=stopped):
            judged(tmp_path, model, votes=4, concurrency=3, budget=Budget(calls=most))
        assert len(model.calls) == len(read_judgements(tmp_path)) == most
    other = saying("T", model="other")
    judged(tmp_path, other, votes=4, budget=Budget(calls=16))
    assert len(other.calls) == 16, "what another judge was asked does not count"
    judged(tmp_path, model, votes=4, budget=Budget(calls=16))
    assert len(model.calls) == 16, "a budget that just does is no reason to stop"


@pytest.mark.parametrize(
    ("kind", "changed", "is_asked_again"),
    [
        ("vote", {"answers": ["other"]}, True),
        ("vote", {"gold": [{"title": "A", "sentences": []}]}, False),
        ("reference", {"answers": ["other"]}, True),
        ("facts", {"facts": ["It is so.", "It is not."]}, True),
        ("rubric", {"rubric": ["It is long."]}, True),
        ("rubric", {"answers": ["other"]}, False),
    ],
)
def test_verdicts_on_another_right_answer_are_left_out_and_asked_for_again(
    tmp_path: Path, kind: Kind, changed: dict[str, Any], is_asked_again: bool
) -> None:
    right = {"answers": ["rag"], "facts": ["It is so."], "rubric": ["It is short."]}
    replies = {"vote": "T", "reference": "1: RIGHT", "facts": "1: covered", "rubric": "1: met"}
    model = JudgeModel(lambda *_: replies[kind])
    pair(tmp_path, right=right)
    judged(tmp_path, model, votes=2, kinds=[kind])
    assert len(read_judgements(tmp_path)) == len(model.calls) == 2
    pair(tmp_path, right={**right, **changed})
    assert len(read_judgements(tmp_path)) == (0 if is_asked_again else 2)
    judged(tmp_path, model, votes=2, kinds=[kind])
    assert len(model.calls) == (4 if is_asked_again else 2)


def test_votes_stay_without_the_answers(tmp_path: Path) -> None:
    judged(pair(tmp_path), saying("A"), votes=2)
    (tmp_path / SAMPLES).unlink()
    assert len(read_judgements(tmp_path)) == 2


def test_votes_on_an_answer_that_was_missing_are_asked_for_again(tmp_path: Path) -> None:
    gone = outcome("rat", 0, {"answer": ""}) | {"output": {}, "error": "NoAnswer: too hard"}
    with run_directory(pair(tmp_path), {"methods": {}}, SAMPLES) as [file]:
        file.add(gone)
    model = saying("A")
    assert [it.wins for it in judged(tmp_path, model, votes=2).comparisons] == [0]
    pair(tmp_path)
    assert not summarise(tmp_path).comparisons
    judged(tmp_path, model, votes=2)
    assert len(model.calls) == 4


def test_a_method_that_failed_before_its_documents_changed_is_no_obstacle(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"], "rat": [None]})
    file = tmp_path / "configuration.json"
    configuration = json.loads(file.read_text())
    for name, digest in (("rag", "later"), ("rat", "earlier")):
        configuration["methods"][name]["contents"] = {"corpus:docs": digest}
    file.write_text(json.dumps(configuration))
    judged(tmp_path, saying("C1: met"), kinds=["rubric"], rubric=["It is short."])
    assert json.loads(file.read_text()) == configuration


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
    comparisons = summarise(tmp_path).comparisons
    assert [(each.score, each.wins, each.losses) for each in comparisons] == [
        ("votes of one", 3, 0),
        ("votes of two", 0, 3),
    ]


@pytest.mark.parametrize(
    "output",
    [
        {"answer": "It was finished in 1566 [2]."},
        {"answer": "…", "sentences": [{"text": "It was finished in 1566 [2].", "evidence": ["b"]}]},
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
    room_for_one = tokens(long)
    assert shown_passages({**output, "evidence": evidence}, room_for_one) == [2]
    assert "scripted:judge was not shown all passages of rag, which were too long" in markdown(
        summary
    )


def test_judgements_of_which_passages_were_left_out_are_asked_for_again_with_more(
    tmp_path: Path,
) -> None:
    evidence = [passage(name, name, "It is so. " * 50) for name in "abc"]
    evaluation(tmp_path, {"rag": [{"answer": "It is so.", "evidence": evidence}]})
    size = tokens(evidence[0]["text"])
    model = saying("1: SUPPORTED")
    for shown_, calls in ((1, 1), (1, 1), (2, 2), (1, 2), (4, 3), (9, 3)):
        summary = judged(tmp_path, model, passage_tokens=shown_ * size)
        assert len(model.calls) == calls
    assert "not shown all passages" not in markdown(summary)


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
    assert re.search(r"\| rat \| rag \| votes of openai:two \| .* \| 0 \| 0 \| 2 \|", ran.stdout)
    judges = [call["judge"] for call in read_judgements(tmp_path)]
    assert sorted(judges) == ["openai:one"] * 4 + ["openai:two"] * 4


def test_what_it_takes_is_said_before_a_judge_is_asked(tmp_path: Path) -> None:
    evaluation(tmp_path, {name: [{"answer": name, "evidence": PASSAGE}] * 2 for name in TWO})
    command = f"judge {tmp_path} --judge openai:one --price 1000/0"
    with OpenAIServer(lambda _body: "T") as server:
        ran = stepcraft(f"{command} --dry-run", server)
        assert (ran.exit_code, len(server.bodies), ran.stdout) == (0, 0, "")
        [calls, tokens, usd] = re.findall(r"([\d,.]+) (?:calls|tokens in|USD)", ran.stderr)
        assert calls == "24", "ten votes on each of two samples, and four readings"
        assert float(usd) == pytest.approx(int(tokens.replace(",", "")) / 1_000, abs=0.01)
        stepcraft(f"{command} --only support", server)
        assert len(server.bodies) == 4
        assert "20 calls, some" in stepcraft(f"{command} --dry-run", server).stderr
        assert (
            "--only 'votes' is no kind; there is vote, support"
            in stepcraft(f"{command} --only votes", server).stderr
        )


def test_votes_are_adjusted_for_all_pairs(tmp_path: Path) -> None:
    answers = {name: [name] * 6 for name in ("rag", "rat", "rpg")}
    evaluation(tmp_path, answers)
    preferred = preferring(lambda number, _vote: "rat" if number < 6 else "rpg")
    against_rag, other = judged(tmp_path, preferred, votes=2).comparisons
    assert (against_rag.wins, against_rag.p) == (6, 2 * 2 / 2**6)
    assert other.p == 1


def test_the_end_of_a_long_reply_is_kept(tmp_path: Path) -> None:
    judged(pair(tmp_path), saying("because " * 1_000 + "\nA"), votes=2)
    assert all(each["reply"].endswith("because \nA") for each in read_judgements(tmp_path))
    assert all(len(each["reply"]) <= 2_000 for each in read_judgements(tmp_path))


def labels(folder: Path, text: str) -> Path:
    file = folder / "labels.csv"
    file.write_text(text)
    return file


def test_a_persons_labels_are_compared_with_judges_and_scores(tmp_path: Path) -> None:
    run = evaluation(tmp_path / "run", {"rag": ["rag"] * 4, "rat": ["rat"] * 4}, {"answers": ["x"]})

    def reply(_node: str, prompt: str) -> str:
        if ("answer", "A") in (texts := shown(prompt)):
            return next(id_ for (_, id_), text in texts.items() if text == "rat")
        return "1: RIGHT" if texts["question", ""] < "Question 2" else "1: WRONG - no"

    judged(run, JudgeModel(reply), votes=2)
    lines = [
        f"{number},rag,{label}" for number, label in enumerate(("right", "right", "wrong", "right"))
    ]
    file = labels(tmp_path, "\n".join(["id,method,label", *lines]))
    ran = stepcraft(f"agreement {run} {file}")
    assert ran.exit_code == 0, ran.output
    [line] = ran.stdout.strip().splitlines()
    assert line.startswith("reference by scripted:judge, 4 labels: agreement 0.750 (")
    assert "kappa 0.500" in line
    file = labels(tmp_path, "id,method,against,label\n0,rat,rag,win\n1,rat,rag,tie\n")
    assert stepcraft(f"agreement {run} {file}").stdout.startswith(
        "votes of scripted:judge, 2 labels: agreement 0.500"
    )


def test_votes_that_cannot_be_read_agree_with_nobody(tmp_path: Path) -> None:
    run = pair(tmp_path / "run")
    judged(run, [saying("T"), saying("who knows", model="scripted:other")])
    file = labels(tmp_path, "id,method,against,label\n0,rat,rag,tie\n")
    [line] = stepcraft(f"agreement {run} {file}").stdout.strip().splitlines()
    assert line.startswith("votes of scripted:judge, 1 labels: agreement 1.000")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,method,label\n0,rag,maybe\n", "label='maybe' cannot be used"),
        ("id,label\n0,right\n", "is missing in"),
        ("id,method,label\n0,nobody,right\n", "line 2 of the labels is of 'nobody' and '0'"),
        ("id,method,label\n0,rag,right\n9,rag,right\n", "line 3 of the labels is of 'rag'"),
        ("id,method,label\n0,rag,right\n", "no judge and no score"),
        ("id,method,label\n0,rag,right\n", "/run --judge MODEL`"),
        ("id,method,against,label\n0,rat,rag,win\n", "--judge MODEL --only vote --against rat`"),
        ("id,method,label\n0,rag\n", "labels.csv:2 cannot be read: it has 2 cells"),
        ("id,method,label\n0,rag,right\n0,rag,wrong\n", "line 3 of the labels contradicts"),
        ("id,method,label\n0,rat,win\n", "win, loss and tie need `against`"),
        ("id,method,against,label\n0,rat,rag,right\n", "right and wrong have none"),
    ],
)
def test_labels_that_cannot_be_used(tmp_path: Path, text: str, problem: str) -> None:
    run = pair(tmp_path / "run")
    ran = stepcraft(f"agreement {run} {labels(tmp_path, text)}")
    assert (ran.exit_code, problem in ran.stderr) == (2, True), ran.stderr


def test_votes_of_both_directions_count_once_and_the_baseline_changes_nothing(
    tmp_path: Path,
) -> None:
    judged(pair(tmp_path, 6), preferring("rat"), votes=2)
    judged(tmp_path, preferring("rag"), votes=2, against="rat")
    for baseline in ("rag", "rat"):
        [votes] = summarise(tmp_path, baseline).comparisons
        assert (votes.wins, votes.losses, votes.samples, votes.difference.mean) == (0, 0, 6, 0)


@pytest.mark.parametrize("label", ["rat,rag,loss", "rag,rat,win"])
def test_a_label_may_name_the_methods_in_either_order(tmp_path: Path, label: str) -> None:
    run = pair(tmp_path / "run", 2)
    judged(run, preferring("rag"), votes=2)
    file = labels(tmp_path, f"id,method,against,label\n0,{label}\n1,rat,rag,win\n")
    [line] = stepcraft(f"agreement {run} {file}").stdout.strip().splitlines()
    assert line.startswith("votes of scripted:judge, 2 labels: agreement 0.500")
    twice = labels(tmp_path, f"id,method,against,label\n0,{label}\n0,rat,rag,win\n")
    assert "line 3 of the labels contradicts" in stepcraft(f"agreement {run} {twice}").stderr


def test_labels_without_a_verdict_are_counted(tmp_path: Path) -> None:
    run = pair(tmp_path / "run", 2)
    judged(run, JudgeModel(lambda _node, prompt: "T" if "Question 0" in prompt else "?"), votes=2)
    file = labels(tmp_path, "id,method,against,label\n0,rat,rag,tie\n1,rat,rag,tie\n")
    assert "votes of scripted:judge, 1 of 2 labels" in stepcraft(f"agreement {run} {file}").stdout


def test_a_judge_that_goes_back_to_earlier_criteria_judges_by_them(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2})
    model = JudgeModel(lambda _node, prompt: "1: met" if "polite" in prompt else "1: unmet")
    for criterion, mean in (("It is polite.", 1), ("It is short.", 0), ("It is polite.", 1)):
        summary = judged(tmp_path, model, kinds=["rubric"], rubric=[criterion])
        assert summary.methods[0].scores["rubric by scripted:judge"].mean == mean
    assert len(model.calls) == 6
    judged(tmp_path, model, kinds=["rubric"], rubric=["It is polite."])
    assert len(model.calls) == 6, "nothing has changed"


def test_grades_by_different_criteria_are_pointed_out(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2})
    judged(tmp_path, saying("1: met"), kinds=["rubric"], rubric=["It is polite."])
    assert "other criteria" not in markdown(summarise(tmp_path))
    with pytest.raises(RunStopped):
        judged(
            tmp_path,
            saying("1: unmet"),
            kinds=["rubric"],
            rubric=["It is short."],
            budget=Budget(calls=3),
        )
    assert "scripted:judge graded some answers of rag by other criteria" in markdown(
        summarise(tmp_path)
    )


SHORT, POLITE = "It is short.", "It is polite."


@pytest.mark.parametrize(
    ("own", "before", "after", "is_warned"),
    [
        ([], [POLITE], [SHORT], True),
        (["It names the year."], [], [SHORT], True),
        ([SHORT], [SHORT], [], True),
        ([], [POLITE, SHORT], [SHORT, POLITE], False),
        (["It names the year."], [], [], False),
        ([SHORT], [SHORT, POLITE], [SHORT, POLITE], False),
    ],
)
def test_directories_that_were_graded_by_different_criteria_are_pointed_out(
    tmp_path: Path, own: list[str], before: list[str], after: list[str], *, is_warned: bool
) -> None:
    def met(_node: str, prompt: str) -> str:
        lines = shown(prompt)["rubric", ""].splitlines()
        return "\n".join(f"{number}: met" for number, _ in enumerate(lines, 1))

    for name, rubric in (("before", before), ("after", after)):
        run = evaluation(tmp_path / name, {"rag": ["rag"]}, {"rubric": own})
        with run_directory(run, {"methods": {}}, SAMPLES) as [file]:
            file.add(outcome("rag", 9, {"answer": "without criteria of its own"}))
        judged(run, JudgeModel(met), kinds=["rubric"], rubric=rubric)
    said = "scripted:judge graded some answers of"
    for command in ("compare", "report"):
        ran = stepcraft(f"{command} {tmp_path / 'before'} {tmp_path / 'after'}")
        assert (ran.exit_code, said in ran.stdout) == (0, is_warned), ran.stdout


def test_a_changed_fact_that_is_changed_back_is_not_judged_again(tmp_path: Path) -> None:
    model = JudgeModel(lambda *_: "1: covered")
    for fact in ("Rome is old.", "Rome is big.", "Rome is old."):
        evaluation(tmp_path, {"rag": ["rag"]}, {"facts": [fact]})
        assert judged(tmp_path, model, kinds=["facts"]).methods[0].scores
    assert len(model.calls) == 2


def test_no_answer_counts_as_wrong_in_a_rubric_for_all_and_in_gold_passages(
    tmp_path: Path,
) -> None:
    gold = {"gold": [{"title": "T", "sentences": []}]}
    evaluation(tmp_path, {"rag": ["rag", "rag"]}, gold)
    found = outcome("rag", 0, {"answer": "rag"}, scores={"gold passages": 1.0}, right=gold)
    gone = outcome("rag", 1, None, right=gold) | {"error": "NoAnswer: too hard"}
    with run_directory(tmp_path, {"methods": {}}, SAMPLES) as [file]:
        file.add(found)
        file.add(gone)
    model = saying("1: met")
    scores = judged(tmp_path, model, kinds=["rubric"], rubric=["It is polite."]).methods[0].scores
    assert scores["rubric by scripted:judge"].mean == 0.5
    assert scores["gold passages"].mean == 0.5
