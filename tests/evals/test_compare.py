"""Two directories, before and after a change; pairs, baselines and thresholds of one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stepcraft import BadInput
from stepcraft.evals.compare import paired_samples
from stepcraft.evals.directory import SAMPLES, run_directory
from stepcraft.evals.prices import Prices
from stepcraft.evals.reports.page import page
from stepcraft.evals.reports.tables import tables
from stepcraft.evals.summary import Comparison, summarise
from tests.evals.judged import outcome
from tests.evals.runs import problem_of, rewrite, stepcraft
from tests.report.reports import Reader

HALF = [1, 0] * 10
MOST = [1, 1, 1, 0] * 5


def evaluated(
    directory: Path, scores: dict[str, list[Any]], first_id: int = 0, **names: Any
) -> Path:
    """A finished evaluation with the scores "right" of each method, or scores by name."""
    methods = {name: {"graph": name, "settings": {}, "model": "m:x"} for name in scores}
    with run_directory(directory, {"methods": methods}, SAMPLES) as [file]:
        for method, each in scores.items():
            for number, score in enumerate(each):
                named = score if isinstance(score, dict) else {"right": score}
                line = outcome(method, number, {"answer": f"{method} {score}"}, scores=named)
                file.add({**line, "id": str(number + first_id), **names})
    return directory


def named(*directories: Path) -> dict[str, Path]:
    return {directory.name: directory for directory in directories}


def test_a_change_is_compared_question_by_question(tmp_path: Path) -> None:
    before = evaluated(tmp_path / "before", {"rag": HALF, "rat": HALF})
    after = evaluated(tmp_path / "after", {"rag": MOST, "rat": HALF}, first_id=100)
    directories = named(before, after)
    summary = summarise(directories)
    samples = paired_samples(summary, "after: rag", "before: rag")
    assert len(samples) == 20
    rag, rat = (comparison_of(directories, "right", f"after: {name}") for name in ("rag", "rat"))
    assert (rag.against, rat.against) == ("before: rag", "before: rat")
    assert (rag.wins, rag.losses, rag.difference.mean) == (5, 0, 0.25)
    assert rag.p == 2 * 2 / 32, "two methods were compared"
    assert rat.p == 1
    listed = stepcraft(f"compare {before} {after}").stdout
    differing = re.findall(r"^1\.000  0\.000  (\d+)  ", listed, re.MULTILINE)
    assert differing == ["1", "5", "9", "13", "17"]
    seen = Reader(page(summary))
    assert {"before: rag", "before: rat"} <= set(seen.texts("td"))


def test_the_walk_of_a_change_on_the_command_line(tmp_path: Path) -> None:
    before = evaluated(tmp_path / "before", {"rag:k=5": HALF})
    after = evaluated(tmp_path / "after", {"rag:k=10": MOST})
    html = tmp_path / "changed.html"
    ran = stepcraft(f"compare {before} {after} --html {html}")
    assert ran.exit_code == 0, ran.output
    assert f"{after}: rag:k=10 against {before}: rag:k=5, samples: 20" in ran.stdout
    assert "right: +0.250" in ran.stdout
    assert "p 0.062, wins 5, losses 0, ties 15" in ran.stdout
    text = html.read_text("utf-8")
    assert f'data-first="{after}: rag:k=10" data-second="{before}: rag:k=5"' in text
    report = stepcraft(f"report {before} {after}").stdout
    assert re.search(r"rag:k=10 \| .*rag:k=5 \| right \| \+0.250 .* \| 0.062 \| 5 \| 0 \|", report)


def test_the_page_of_a_change_opens_at_the_largest_mean_difference(tmp_path: Path) -> None:
    same = [{"F1": 0.5, "right": 1}] * 4
    reworded = [{"F1": 0.4, "right": 1}] * 4
    worse = [*reworded[:2], *[{"F1": 0.4, "right": 0}] * 2]
    before = evaluated(tmp_path / "before", {"rag": same, "rat": same})
    after = evaluated(tmp_path / "after", {"rag": reworded, "rat": worse})
    html = tmp_path / "changed.html"
    for options, method, score in (("", "rat", "right"), ("--score F1", "rag", "F1")):
        assert stepcraft(f"compare {before} {after} --html {html} {options}").exit_code == 0
        opened = f'data-first="{after}: {method}" data-second="{before}: {method}"'
        assert f'{opened} data-score="{score}"' in html.read_text("utf-8")


@pytest.mark.parametrize(
    ("asked", "pairs"),
    [
        ("after", [("after: rag", "before: rag"), ("after: rat", "before: rat")]),
        ("rat rpg", [("rat", "rpg")]),
    ],
)
def test_the_page_of_a_comparison_has_the_pairs_that_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, pairs: list[tuple[str, str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluated(Path("before"), {"rag": HALF, "rat": HALF, "rpg": MOST})
    evaluated(Path("after"), {"rag": MOST, "rat": HALF})
    assert stepcraft(f"compare before {asked} --html x.html").exit_code == 0
    text = Path("x.html").read_text("utf-8")
    verdicts = re.findall(r"could be shown between (\S+ ?\S+) and (\S+ ?\S+)\.", text)
    assert sorted(verdicts) == pairs
    assert not [each for each in Reader(text).texts("summary") if each.startswith("Against")]


def test_directories_that_cannot_be_compared(tmp_path: Path) -> None:
    before = evaluated(tmp_path / "before", {"rag": HALF})
    other = evaluated(tmp_path / "other", {"rag": [{"F1": 1.0}]})
    assert "have no scores of the same questions" in problem_of(f"compare {before} {other}")
    assert "is no other directory" in problem_of(f"compare {before} {before}")
    assert "is no other directory" in problem_of(f"compare {before} rag")


def test_a_pair_has_one_p_wherever_it_is_looked_at(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", {"direct": [0] * 20, "rag": HALF, "rat": MOST})
    by_pair: dict[frozenset[str], set[float]] = {}
    for baseline in (None, "rag", "rat"):
        for each in summarise(run, baseline).pairs:
            by_pair.setdefault(frozenset((each.method, each.against)), set()).add(each.p)
    assert sorted(map(len, by_pair.values())) == [1, 1, 1]
    [p] = by_pair[frozenset(("rag", "rat"))]
    assert f"p {p:.3f}" in stepcraft(f"compare {run} rag rat").stdout
    report = stepcraft(f"report {run} --baseline rag").stdout
    assert re.search(rf"\| rat \| rag \| right \| .* \| {p:.3f} \|", report)
    assert "Against rag (`--baseline` names another)" in report
    assert "Against direct" in stepcraft(f"report {run}").stdout, "the first that was named"
    seen = Reader(page(summarise(named(run))))
    assert {"Against rag", "Against rat"} <= set(seen.texts("summary"))
    assert "no method 'rta' here" in problem_of(f"report {run} --baseline rta")


def comparison_of(
    directories: Path | dict[str, Path], score: str, method: str = "rat"
) -> Comparison:
    summary = summarise(directories)
    return next(it for it in summary.comparisons if (it.score, it.method) == (score, method))


def test_scores_that_measure_the_same_count_as_one(tmp_path: Path) -> None:
    def scores(value: int) -> dict[str, int]:
        return {"exact match": value, "F1": value, "occurs": value}

    losing, winning = [scores(0)] * 20, [*[scores(1)] * 7, *[scores(0)] * 13]
    run = evaluated(tmp_path / "run", {"rag": losing, "rat": winning})
    assert {comparison_of(run, name).p for name in scores(0)} == {2 / 2**7}
    both = evaluated(
        tmp_path / "both",
        {
            "rag": [{**each, "steps": 0} for each in losing],
            "rat": [{**each, "steps": each["F1"]} for each in winning],
        },
    )
    assert comparison_of(both, "F1").p == 2 * 2 / 2**7


def test_thirty_wins_of_thirty_are_no_certainty(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", {"rag": [0] * 30, "rat": [1] * 30})
    [comparison, _] = summarise(run).pairs
    assert comparison.difference.high < -0.7 or 0.7 < comparison.difference.low < 1


def test_a_score_may_be_called_as_a_column_is(tmp_path: Path) -> None:
    scores = {"samples": 0.25, "model": 0.5, "seconds": 9.0}
    run = evaluated(tmp_path / "run", {"rag": [scores] * 3, "rat": [scores] * 3})
    table = tables(summarise(run))[0]
    assert [*table.columns].count("model") == 2
    assert table.rows[0][:2] == ["rag", "m:x"]
    assert table.rows[0][-3] == "3"
    stepcraft(f"report {run} --csv {run}.csv")
    header, row, *_ = Path(f"{run}.csv").read_text("utf-8").splitlines()
    assert {"score: samples", "seconds", "score: seconds", "answer"} <= {*header.split(",")}
    assert row.endswith("0.25,0.5,9.0")


def test_unknown_tokens_are_not_the_fewest_and_kinds_stand_apart(tmp_path: Path) -> None:
    def used(**usage: int) -> dict[str, Any]:
        return {"usage": {"calls": 2, **usage}}

    counted = used(input_tokens=90, cached_input_tokens=40, output_tokens=10)
    run = evaluated(tmp_path / "run", {"rag": [1, 1]}, **counted)
    evaluated(run, {"silent": [1, 1]}, **used())
    counted_method, silent = summarise(run).methods
    assert {"tokens in": 90, "cached": 40, "tokens out": 10}.items() <= counted_method.costs.items()
    assert "tokens in" not in silent.costs
    table = tables(summarise(run))[0]
    place = [*table.columns].index("tokens in")
    assert [row[place : place + 3] for row in table.rows] == [["90", "40", "10"], ["", "", ""]]
    assert not any(kind.startswith("tokens") for kind in summarise(run).pairs[0].factors)


def test_thresholds_end_with_a_status(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", {"rag": HALF, "rat": MOST})
    assert stepcraft(f"report {run} --fail-under right=0.5").exit_code == 0
    low = stepcraft(f"report {run} --fail-under right=0.6")
    assert (low.exit_code, "| rag |" in low.stdout) == (1, True)
    assert "rag has right 0.500: under --fail-under" in low.stderr
    assert "no method has the score 'F1'; there is right" in problem_of(
        f"report {run} --fail-under F1=0.6 --to {tmp_path}/x"
    )
    assert "has no number" in problem_of(f"report {run} --fail-under right")


@pytest.mark.parametrize(
    ("threshold", "problem"),
    [
        ("0.8", "'0.8' names no score; write score=0.8"),
        ("=0.8", "'=0.8' names no score"),
        ("right=nan", "has no number"),
        ("right=inf", "has no number"),
    ],
)
def test_thresholds_that_cannot_be_used(tmp_path: Path, threshold: str, problem: str) -> None:
    assert problem in problem_of(f"report {tmp_path} --fail-under {threshold}")


def test_the_page_says_what_answers_rest_on_and_what_went_wrong(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", {"rag": HALF}, warnings=["no source is named"])
    file = run / "configuration.json"
    configuration = json.loads(file.read_text())
    configuration["methods"]["rag"] |= {"searched": ["corpus:docs/"], "limits": {"max_calls": 9}}
    file.write_text(json.dumps(configuration))
    for text in (page(summarise(named(run))), stepcraft(f"report {run}").stdout):
        assert "rag searched corpus:docs/." in text
        assert "rag has max_calls 9." in text
        assert "rag, 20 of 20 samples: no source is named" in text


def test_a_baseline_that_only_one_of_several_directories_has(tmp_path: Path) -> None:
    one = evaluated(tmp_path / "one", {"rag": HALF, "rat": HALF})
    two = evaluated(tmp_path / "two", {"rag": HALF})
    assert summarise(named(one, two), "rat").baselines == ["one: rat", "two: rag"]
    with pytest.raises(BadInput, match="no method 'rat' here"):
        summarise(two, "rat")


def test_what_differs_most_comes_first(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", {"rag": [0.5] * 4, "rat": [0.6, 0.5, 0.0, 0.2]})
    listed = stepcraft(f"compare {run} rat rag").stdout
    assert re.findall(r"^0\.\d{3}  0\.500  (\d+)  ", listed, re.MULTILINE) == ["2", "3", "0"]


def test_another_directory_beside_it_changes_no_p(tmp_path: Path) -> None:
    one = evaluated(tmp_path / "one", {"rag": [0] * 20, "rat": MOST})
    two = evaluated(tmp_path / "two", {"rag": HALF, "rat": MOST, "rpg": HALF})
    [p, _] = [each.p for each in summarise(one).pairs]
    beside = {(it.method, it.against): it.p for it in summarise(named(one, two)).pairs}
    assert beside["one: rat", "one: rag"] == p


def test_one_table_prices_all_samples_of_a_report(tmp_path: Path) -> None:
    usage = {"calls": 1, "input_tokens": 1_000_000, "output_tokens": 0}
    run = evaluated(tmp_path / "run", {"rag": [1, 1]}, usage=usage, usd=7.0)
    assert summarise(run).methods[0].costs["USD"] == 7
    assert summarise(run, prices=Prices.of(["x=2/1"])).methods[0].costs["USD"] == 2
    assert "| 2 | 2 | 0 | 0 |" in stepcraft(f"report {run} --price m:x=2/1").stdout


def repetitions(directory: Path, right: int) -> Path:
    """An evaluation of eight questions with five answers each, right for the first questions."""
    with run_directory(directory, {"methods": {"rag": {"model": "m:x"}}}, SAMPLES) as [file]:
        for question in range(8):
            for number in range(5):
                sample: Any = {"question": f"{question}?", "task": str(question), "seed": number}
                line = outcome("rag", question, {"answer": "x"}, right=sample)
                score = {"pass@1": float(question < right)}
                file.add({**line, "id": f"{question}#{number}", "scores": score})
    return directory


def test_repeated_answers_to_a_question_are_no_further_evidence(tmp_path: Path) -> None:
    directories = named(repetitions(tmp_path / "before", 3), repetitions(tmp_path / "after", 6))
    compared = comparison_of(directories, "pass@1", "after: rag")
    assert (compared.samples, compared.wins, compared.losses, compared.p) == (8, 3, 0, 0.25)
    assert comparison_of(directories, "pass@5", "after: rag").samples == 8


@pytest.mark.parametrize("score", ["pass@5", "pass@1"])
def test_samples_that_differ_in_pass_at_five_are_listed_by_their_answers(
    tmp_path: Path, score: str
) -> None:
    before, after = repetitions(tmp_path / "before", 3), repetitions(tmp_path / "after", 6)
    listed = stepcraft(
        f"compare {before} {after} --score {score} --html {tmp_path}/page.html"
    ).stdout
    assert "pass@5: +0.375" in listed
    assert "where they differ most in pass@1:" in listed
    differing = re.findall(r"^1\.000  0\.000  \d  (\d)\?$", listed, re.MULTILINE)
    assert differing == [*"33333", *"44444"]
    assert 'data-score="pass@1"' in (tmp_path / "page.html").read_text("utf-8")


def test_a_score_of_ones_own_that_is_called_like_pass_at_five_is_listed(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", {"rag": HALF, "rat": MOST})
    rewrite(run, '"right"', '"pass@5"')
    assert "where they differ most in pass@5:" in stepcraft(f"compare {run} rat rag").stdout


def test_a_baseline_that_no_directory_has_is_refused(tmp_path: Path) -> None:
    before = evaluated(tmp_path / "before", {"rag": HALF, "rat": HALF})
    after = evaluated(tmp_path / "after", {"rag": MOST, "rat": HALF})
    for name in ("rta", "'after: rta'"):
        assert "there is no method" in problem_of(f"report {before} {after} --baseline {name}")
    for name in ("rat", "after: rat"):
        assert summarise(named(before, after), name).baselines[-1] == "after: rat"


def test_a_threshold_is_missed_by_a_method_that_failed_on_all_samples(tmp_path: Path) -> None:
    run = evaluated(tmp_path / "run", {"rag": [1, 1]})
    with run_directory(run, {"methods": {"rat": {"model": ""}}}, SAMPLES) as [file]:
        file.add(outcome("rat", 0, None))
    ran = stepcraft(f"report {run} --fail-under right=0.5")
    assert ran.exit_code == 1
    assert "rat failed on all 1 samples" in ran.stderr


def corrected(directory: Path, method: str, right: dict[str, Any]) -> Path:
    with run_directory(directory, {"methods": {method: {"model": ""}}}, SAMPLES) as [file]:
        for number in range(3):
            scores = {"exact match": 1.0}
            file.add(outcome(method, number, {"answer": "x"}, scores=scores, right=right))
    return directory


def test_methods_that_were_scored_by_different_right_answers_are_not_compared(
    tmp_path: Path,
) -> None:
    run = corrected(tmp_path, "rag", {"answers": ["x"]})
    corrected(run, "rat", {"answers": ["y"]})
    report = stepcraft(f"report {run}").stdout
    assert "3 questions in" in report
    assert "have other right answers for some methods" in report
    assert "The methods have no score of the same questions" in report


def test_facts_that_were_added_change_nothing_about_exact_match(tmp_path: Path) -> None:
    before = corrected(tmp_path / "before", "rag", {"answers": ["x"]})
    after = corrected(tmp_path / "after", "rag", {"answers": ["x"], "facts": ["It is so."]})
    assert comparison_of(named(before, after), "exact match", "after: rag").samples == 3
