"""Judging a directory: several judges and their agreement, budgets, and inputs that are too long."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from stepcraft import BadInput
from stepcraft.cli import app
from stepcraft.errors import RunStopped
from stepcraft.evals.evaluate import Budget
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.shortening import cited_ids, passage_tokens, shortened
from stepcraft.evals.summary import summarise
from stepcraft.evals.votes import Alike, every_judgement, read_judgements
from stepcraft.evidence import Evidence
from tests.evals.judged import JudgeModel, evaluation, judged, shown
from tests.servers.openai_server import OpenAIServer


def by_question(name: str, *verdicts: str) -> JudgeModel:
    """A judge that prefers the method's answer ("w"), the other ("l") or none ("t"), question by question."""

    def reply(_node: str, prompt: str) -> str:
        texts = shown(prompt)
        wanted = verdicts[int(texts["question", ""].partition("Question ")[2].rstrip("?"))]
        letter = "A" if texts["answer", "A"].startswith("rat") == (wanted == "w") else "B"
        return "T" if wanted == "t" else letter

    return JudgeModel(reply, model=name)


def test_two_judges_are_compared_by_kappa_and_alpha(tmp_path: Path) -> None:
    """On 3 of 4 samples they agree, on 7/4 by chance: (3 - 7/4) / (4 - 7/4) = 5/9.

    For alpha 5, 2 and 1 of 8 verdicts are wins, losses and ties: 22/7 agree by chance, 6 do, (6 - 22/7) / (8 - 22/7).
    """
    evaluation(tmp_path, {"rag": ["rag"] * 4, "rat": ["rat"] * 4})
    one, other = by_question("one", "w", "w", "l", "t"), by_question("two", "w", "w", "l", "w")
    summary = judged(tmp_path, [one, other], votes=2)
    [pair] = summary.judge_pairs
    assert (pair.judges, pair.method, pair.against) == (("one", "two"), "rat", "rag")
    assert pair.majorities == Alike(4, 0.75, pytest.approx(5 / 9), pytest.approx(20 / 34))
    assert (pair.votes.units, pair.votes.share) == (8, 0.75)
    assert pair.votes.alpha == pytest.approx((12 - 104 / 15) / (16 - 104 / 15))
    told = "| one and two | rat | rag | 4 | 75% | 0.56 | 0.59 | 8 | 75% | 0.56 | 0.56 |"
    assert told in markdown(summary)


def test_judges_that_were_asked_at_different_times_are_compared_where_both_have_a_vote(
    tmp_path: Path,
) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 3, "rat": ["rat"] * 3})
    judged(tmp_path, by_question("one", "w", "l", "w"), votes=4)
    prose = iter(["I cannot say."] * 2 + ["T"] * 4)
    partly = judged(tmp_path, JudgeModel(lambda *_: next(prose), model="two"), votes=2)
    [pair] = partly.judge_pairs
    assert (pair.majorities.units, pair.votes.units, pair.votes.share) == (2, 4, 0.0)
    third = judged(tmp_path, by_question("three", "w", "l", "w"), votes=2)
    found = {one.judges: one.majorities.kappa for one in third.judge_pairs}
    assert set(found) == {("one", "two"), ("one", "three"), ("three", "two")}
    assert found["one", "three"] == 1


def test_judges_without_a_common_vote_and_two_of_one_name(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"], "rat": ["rat"]})
    assert judged(tmp_path, JudgeModel(lambda *_: "A"), votes=2).judge_pairs == []
    for judges in ([JudgeModel(["A"]), JudgeModel(["A"])], []):
        with pytest.raises(BadInput, match="name each judge once"):
            judged(tmp_path, judges)


def test_a_budget_of_calls_is_kept_and_the_same_command_goes_on(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 4, "rat": ["rat"] * 4})
    model = JudgeModel(lambda *_: "T", latency=0.001)
    for most, made in ((5, 5), (5, 5), (12, 12)):
        stopped = f"the budget of {most} calls is used up: {made} of 16 calls to judges are done; raise it"
        with pytest.raises(RunStopped, match=stopped):
            judged(tmp_path, model, votes=4, concurrency=3, budget=Budget(calls=most))
        assert len(model.calls) == len(read_judgements(tmp_path)) == made
    other = JudgeModel(lambda *_: "T", model="other")
    judged(tmp_path, other, votes=4, budget=Budget(calls=16))
    assert len(other.calls) == 16, "what another judge was asked does not count"
    judged(tmp_path, model, votes=4, budget=Budget(calls=16))
    assert len(model.calls) == 16, "a budget that just does is no reason to stop"


def test_a_budget_of_tokens_counts_calls_that_failed_before(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2, "rat": ["rat"] * 2})

    def counted(_node: str, _prompt: str) -> AIMessage:
        return AIMessage(
            "T", usage_metadata={"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}
        )

    with pytest.raises(RunStopped, match="the budget of 250 tokens is used up: 3 of 4"):
        judged(tmp_path, JudgeModel(counted), votes=2, budget=Budget(tokens=250))
    with pytest.raises(RunStopped, match="the budget of 300 tokens is used up: 3 of 4"):
        judged(tmp_path, JudgeModel(counted), votes=2, budget=Budget(tokens=300))
    assert sum(one["usage"]["input_tokens"] for one in every_judgement(tmp_path)) == 270
    failing = JudgeModel(lambda *_: RuntimeError("no such luck"))
    judged(tmp_path, failing, votes=2, budget=Budget(calls=4))
    with pytest.raises(RunStopped, match="the budget of 4 calls is used up: 3 of 4"):
        judged(tmp_path, failing, votes=2, budget=Budget(calls=4))


def test_several_judges_within_a_budget_have_samples_in_common(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 6, "rat": ["rat"] * 6})
    judges = [by_question("one", *"wwwwww"), by_question("two", *"llllll")]
    with pytest.raises(RunStopped, match="the budget of 12 calls"):
        judged(tmp_path, judges, votes=2, budget=Budget(calls=12))
    assert summarise(tmp_path).judge_pairs[0].majorities.units == 3


def test_votes_stand_where_another_method_becomes_the_cheapest(tmp_path: Path) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2, "rat": ["rat"] * 2})
    judged(tmp_path, by_question("one", *"wwww"), votes=2)
    file = tmp_path / "samples.jsonl"
    file.write_text(
        file.read_text("utf-8").replace('"input_tokens": 100,', '"input_tokens": 900,'), "utf-8"
    )
    again, other = by_question("one", *"wwww"), by_question("two", *"wwww")
    summary = judged(tmp_path, [again, other], votes=2)
    assert (summary.cheapest, len(again.calls), len(other.calls)) == ("rat", 0, 4)
    found = [(one.judge, one.method, one.against, one.wins) for one in summary.preferences]
    assert found == [("one", "rat", "rag", 2), ("two", "rat", "rag", 2)]


def test_ctrl_c_stops_judging_and_the_same_command_goes_on(tmp_path: Path) -> None:
    evaluation(tmp_path / "run", {"rag": ["rag"] * 20, "rat": ["rat"] * 20})
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeding}; from stepcraft.cli import main; main()"
    command = [
        sys.executable,
        "-c",
        code,
        "eval",
        "judge",
        str(tmp_path / "run"),
        "--judge",
        "openai:judge",
    ]

    def reply(_body: object) -> str:
        if len(server.requests) > 10:  # so that it is under way when it is stopped
            server.closing.wait(60)
        return "T"

    with OpenAIServer(reply) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "x"}
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr
            assert "of 200 done" in process.stderr.readline()
            while len(server.requests) <= 10:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            told = process.stderr.read()
            assert process.wait(30) == 130
        finally:
            process.kill()
            process.communicate()
    assert told.strip().splitlines()[-1] == "stopped; the same command goes on from here"
    kept = len(read_judgements(tmp_path / "run"))
    assert 3 <= kept <= 10
    rest = JudgeModel(lambda *_: "T", model="openai:judge")
    judged(tmp_path / "run", rest, concurrency=16)
    assert len(rest.calls) == 200 - kept


def passage(id_: str, *sentences: str) -> Evidence:
    return Evidence(id=id_, title=f"Page {id_}", text=" ".join(sentences), source="", score=1.0)


FILLING = [
    f"Nothing in particular happened in the year {year} in that quiet valley."
    for year in range(1700, 1760)
]
BRIDGE = "The bridge of Mostar was finished in 1566 by an Ottoman builder."
RIVER = "The river Neretva flows under the bridge of Mostar to the sea."


def test_passages_keep_what_is_cited_and_fits_the_answer_best() -> None:
    evidence = [
        passage("a", *FILLING[:30], BRIDGE, *FILLING[30:]),
        passage("b", *FILLING[:30], RIVER, *FILLING[30:]),
        passage("c", *FILLING),
    ]
    answer = ["The bridge of Mostar was finished in 1566.", "The Neretva flows under it."]
    kept = shortened(evidence, answer, {"a"}, 200)
    assert passage_tokens(kept) <= 200
    assert kept[0]["id"] == "a"
    assert BRIDGE in kept[0]["text"]
    assert FILLING[29] in kept[0]["text"], "a sentence is kept with its neighbours"
    assert " \u2026 " in kept[0]["text"]
    assert kept[0]["text"].endswith(" \u2026")
    fair = shortened(evidence, answer, set(), 400)
    assert [BRIDGE in fair[0]["text"], RIVER in fair[1]["text"]] == [True, True]
    assert shortened(evidence, answer, set(), passage_tokens(evidence)) == evidence
    assert shortened(evidence, answer, {"a"}, 3) == []
    assert shortened([], answer, set(), 3) == []


@pytest.mark.parametrize("budget", [100, 137, 500, 2_000])
def test_shortened_passages_are_within_every_budget(budget: int) -> None:
    evidence = [passage(str(number), *FILLING[number:]) for number in range(40)]
    kept = shortened([*evidence, evidence[0]], ["It happened in 1720."], {"7"}, budget)
    assert 0 < passage_tokens(kept) <= budget
    assert "7" in {one["id"] for one in kept}


def test_the_passages_that_are_cited() -> None:
    evidence = [passage("a"), passage("b"), passage("c")]
    assert cited_ids({"answer": "One [1]. Three [3][9].", "evidence": evidence}) == {"a", "c"}
    assert cited_ids({"answer": "None.", "evidence": evidence}) == set()
    traced = [{"text": "Two.", "evidence": ["b"]}, {"text": "Nothing.", "evidence": []}]
    assert cited_ids({"answer": "Two. [1]", "sentences": traced, "evidence": evidence}) == {"b"}


def test_long_passages_are_shortened_with_a_note_and_counted(tmp_path: Path) -> None:
    evidence = [passage("a", *FILLING), passage("b", *FILLING, BRIDGE)]
    answers = [
        {"answer": "It was finished in 1566 [2].", "evidence": evidence},
        {"answer": "x", "evidence": evidence[:0]},
    ]
    evaluation(tmp_path, {"rag": answers})
    model = JudgeModel(lambda *_: "NONE")
    summary = judged(tmp_path, model, passage_tokens=150)
    [call] = model.calls
    assert BRIDGE in call.prompt
    assert len(call.prompt) < 4 * 700
    [line] = read_judgements(tmp_path)
    assert line.get("note", "").startswith(
        f"the passages were shortened from about {passage_tokens(evidence):,} tokens to 1"
    )
    assert (summary.supports[0].answers, summary.supports[0].shortened) == (1, 1)
    assert "| scripted:judge | rag | 1.000 (0.207\u20131.000) | 1 | 1 | 0 | 0 |" in markdown(
        summary
    )


def test_passages_are_shortened_to_the_window_of_the_judge(tmp_path: Path) -> None:
    evaluation(
        tmp_path,
        {
            "rag": [
                {"answer": "It was finished in 1566.", "evidence": [passage("a", BRIDGE, *FILLING)]}
            ]
        },
    )
    model = JudgeModel(lambda *_: "NONE", profile={"max_input_tokens": 600})
    judged(tmp_path, model)
    assert BRIDGE in model.calls[0].prompt
    assert "note" in read_judgements(tmp_path)[0]


def test_an_answer_that_is_too_long_is_an_error_and_never_cut(tmp_path: Path) -> None:
    long = " ".join(FILLING)
    evaluation(
        tmp_path, {"rag": ["rag"], "rat": [{"answer": long, "evidence": [passage("a", BRIDGE)]}]}
    )
    model = JudgeModel(lambda *_: "A", profile={"max_input_tokens": 600})
    summary = judged(tmp_path, model, votes=2)
    assert model.calls == []
    [vote, *_], [support] = (
        [one["error"] for one in read_judgements(tmp_path) if one["kind"] == kind]
        for kind in ("vote", "support")
    )
    assert (
        "tokens and scripted:judge takes 600: the answers are too long for it and are not cut"
        in vote
    )
    assert "the answer leaves 0 tokens to its passages" in support
    assert (summary.preferences[0].failed, summary.supports[0].failed) == (2, 1)
    wide = JudgeModel(lambda *_: "T")
    judged(tmp_path, wide, votes=2)
    assert shown(wide.calls[0].prompt)["answer", "A"] == long


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation(tmp_path, {"rag": ["rag"] * 2, "rat": ["rat"] * 2})
    monkeypatch.setenv("OPENAI_API_KEY", "opensesame-opensesame")
    command = [
        "eval",
        "judge",
        str(tmp_path),
        "--judge",
        "openai:one",
        "--judge",
        "openai:two",
        "--votes",
        "2",
    ]
    with OpenAIServer(lambda _body: "T") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        stopped = CliRunner().invoke(app, [*command, "--max-calls", "5", "--quiet"])
        assert stopped.exit_code == 1
        assert stopped.stderr.strip().endswith("start the same command again")
        assert len(stopped.stderr.strip().splitlines()) == 1
        poor = CliRunner().invoke(
            app, [*command, "--max-usd", "0.000001", "--price", "1/1", "--quiet"]
        )
        assert "the budget of 1e-06 USD is used up: 5 of 8" in poor.stderr
        unknown = CliRunner().invoke(app, [*command, "--max-usd", "1", "--price", "openai:one=1/1"])
        assert "that of openai:two of the judges is unknown; name it with --price" in unknown.stderr
        result = CliRunner().invoke(app, [*command, "--price", "1/1"])
        assert re.search(r"8 of 8 done.* 3 calls.* USD", result.stderr)
        assert result.exit_code == 0, result.stderr
        assert "| openai:one and openai:two | rat | rag | 2 | 100% |" in result.stdout
        asked = [
            json.loads(line)["judge"]
            for line in (tmp_path / "votes.jsonl").read_text().splitlines()
        ]
        assert sorted(asked) == ["openai:one"] * 4 + ["openai:two"] * 4
