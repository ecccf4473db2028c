"""Reading the benchmarks' official files, and scores against the official scripts' definitions on stored cases."""

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from stepcraft import BadInput, open_memory
from stepcraft.evals.benchmarks.asqa import long_answer_scores
from stepcraft.evals.benchmarks.champ import solution_scores
from stepcraft.evals.benchmarks.eli5 import explanation_scores
from stepcraft.evals.benchmarks.popqa import accuracy as names_an_alias
from stepcraft.evals.benchmarks.pubhealth import accuracy as names_the_label
from stepcraft.evals.benchmarks.registry import BENCHMARKS, named_samples
from stepcraft.evals.samples import Sample
from tests.evals.official import OFFICIAL, official_file


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is made of a benchmark's file is written into the folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_file_in_another_format_is_one_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"prompt": "Who?", "completion": "He."}\n')
    with pytest.raises(
        BadInput, match=r"^[^\n]*other\.jsonl:1 (is no record of|has no question)[^\n]*$"
    ):
        named_samples(name, file, None)
    with pytest.raises(BadInput, match=r"is not part of the package; get it from https://"):
        named_samples(name, None, None)


@pytest.mark.parametrize("name", ["asqa", "champ-test"])
def test_a_file_that_is_cut_off(name: str, tmp_path: Path) -> None:
    file = official_file(name, tmp_path)
    file.write_text(file.read_text("utf-8")[:-9], "utf-8")
    with pytest.raises(BadInput, match="is not JSON"):
        named_samples(name, file, None)


def test_every_benchmark_tells_its_source_licence_and_paper() -> None:
    for name in (*OFFICIAL, "writing"):
        one = BENCHMARKS[name]
        assert one.line
        assert one.licence
        assert one.source
        assert one.citation
        assert "\n" not in one.citation


def test_the_aliases_of_2wikimultihopqa_lie_beside_its_file(tmp_path: Path) -> None:
    """As in 2wikimultihop_evaluate_v1.1.py: aliases and demonyms of the answer's id are right, those of others are not."""
    file = official_file("2wikimultihopqa", tmp_path)
    before, _, _ = named_samples("2wikimultihopqa", file, None)
    lines = [
        {"Q_id": "QArvel", "aliases": ["Arvel Riviera"], "demonyms": ["Arvelian"]},
        {"Q_id": "Q1", "aliases": ["x"], "demonyms": []},
    ]
    (tmp_path / "id_aliases.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    samples, score, _ = named_samples("2wikimultihopqa", file, None)
    assert samples[0]["answers"] == ["the Arvel coast", "Arvel Riviera", "Arvelian"]
    assert samples[1:] == before[1:]
    made = score(samples[0], {"answer": "The arvel Riviera."})
    assert isinstance(made, dict)
    assert (made["exact match"], made["F1"]) == (1.0, 1.0)


def test_the_gold_of_hotpotqa(tmp_path: Path) -> None:
    samples, _, fields = named_samples("hotpotqa", official_file("hotpotqa", tmp_path), 1)
    assert samples[0]["id"] == "hop-Arvel"
    assert samples[0]["gold"] == [
        {"title": "Lighthouse of Arvel", "sentences": ["It was built by Oarvel, an architect."]},
        {"title": "Architect Oarvel", "sentences": ["Oarvel was born in 1855."]},
    ]
    pooled = Path(fields["sources"][0].removeprefix("corpus:")).read_text("utf-8").splitlines()
    assert len(pooled) == 12 * 3 + 1


@pytest.mark.parametrize(
    ("answer", "label", "right"),
    [
        ("True.", "true", 1.0),
        ("The claim is **false**: it is not true.", "false", 1.0),
        ("mixture", "mixture", 1.0),
        ("It is not true.", "true", 0.0),
        ("untrue", "true", 0.0),
        ("unproven, and so not false", "unproven", 1.0),
        ("", "false", 0.0),
    ],
)
def test_the_label_of_a_claim(answer: str, label: str, right: float) -> None:
    assert names_the_label(Sample(id="1", question="?", answers=[label]), {"answer": answer}) == {
        "accuracy": right
    }


def test_claims_without_a_label_are_left_out(tmp_path: Path) -> None:
    samples, _, _ = named_samples("pubhealth", official_file("pubhealth", tmp_path), None)
    assert [sample["answers"][0] for sample in samples] == [
        "true",
        "false",
        "mixture",
        "unproven",
    ] * 3
    assert samples[0]["question"].endswith('Claim: The air of Arvel heals "all" colds.')
    hub = tmp_path / "hub.jsonl"
    hub.write_text(
        '{"claim": "a", "label": 2}\n{"claim": "b", "label": -1}\n{"claim": "c", "label": 0}\n'
    )
    assert [one["answers"] for one in named_samples("pubhealth", hub, None)[0]] == [
        ["true"],
        ["false"],
    ]


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("He was a politician.", 1.0),
        ("Politician", 1.0),
        ("POLITICIAN", 0.0),
        ("an actor", 0.0),
        ("", 0.0),
    ],
)
def test_an_alias_in_an_answer(answer: str, right: float) -> None:
    """The official script looks for an alias as it is, in lower case and capitalised."""
    sample = Sample(id="1", question="?", answers=["politician", "political leader"])
    assert names_an_alias(sample, {"answer": answer}) == {"accuracy": right}


def test_long_answers() -> None:
    sample = Sample(
        id="1",
        question="?",
        contains=[["1801", "1 May"], ["1899"]],
        long_answers=["the cat sat", "a dog ran home quickly today"],
    )
    made = long_answer_scores(sample, {"answer": "The cat sat in 1801."})
    # Three of five and three of three words: the better of the two references counts, as in ALCE.
    assert made == {"STR-EM": 0.5, "ROUGE-Lsum": pytest.approx(0.75)}


def test_claim_words() -> None:
    sample = Sample(id="1", question="?", claims=["The lighthouse guides ships.", "Lenses turn."])
    assert (
        explanation_scores(sample, {"answer": "A lighthouse guides a ship."})["claim words"] == 0.5
    )


@pytest.mark.parametrize(
    ("last", "answer", "right"),
    [
        ("So the answer is $\\boxed{7}$.", "7", 1.0),
        ("That makes 17.", "7", 0.0),
        ("That makes 7.5.", "7", 0.0),
        ("That makes -7.", "7", 0.0),
        ("We get $\\dfrac{1}{2}$.", "\\frac{1}{2}", 1.0),
        ("We get 1/2.", "\\frac{1}{2}", 1.0),
        ("We get 12.", "\\frac{1}{2}", 0.0),
        ("We get 1/2.", "2", 0.0),
        ("There are 1,000 ways.", "1000", 1.0),
        ("It is $n ^ 2$.", "$n^2$", 1.0),
        ("", "7", 0.0),
    ],
)
def test_the_answer_of_a_solution(last: str, answer: str, right: float) -> None:
    sample = Sample(id="1", question="?", answers=[answer], steps=["Think."])
    assert solution_scores(sample, {"steps": ["It is 7.", last]})["right answer"] == right


def lengths(steps: Sequence[Sequence[str]]) -> list[int]:
    return [sum(map(len, one)) for one in steps]


@pytest.mark.parametrize("name", ["recipenlg", "champ"])
def test_the_longest_procedures_are_asked_for_and_the_rest_is_the_memory(
    name: str, tmp_path: Path
) -> None:
    file = official_file(f"{name}-test", tmp_path)
    val, _, _ = named_samples(f"{name}-val", file, None)
    test, _, fields = named_samples(f"{name}-test", file, None)
    with open_memory(fields["memory"], embeddings="none") as memory:
        rest = list(memory)
    assert (len(rest), len(val), len(test)) == (9, 1, 2)
    ordered = [
        lengths([one.steps for one in rest]),
        *(lengths([one["steps"] for one in some]) for some in (val, test)),
    ]
    assert max(ordered[0]) <= min(ordered[1])
    assert max(ordered[1]) <= min(ordered[2])
    assert not {one.output for one in rest} & {one["question"] for one in (*val, *test)}
    assert named_samples(f"{name}-val", file, None)[2] == fields


def test_a_file_that_is_too_small_to_be_split(tmp_path: Path) -> None:
    file = tmp_path / "few.csv"
    with file.open("w", encoding="utf-8", newline="") as text:
        csv.writer(text).writerows(
            [["title", "ingredients", "directions"], ["Tea", '["leaves"]', '["Boil."]']]
        )
    with pytest.raises(BadInput, match="has 1 procedures"):
        named_samples("recipenlg-test", file, None)


def test_solutions_end_with_their_answer(tmp_path: Path) -> None:
    test, _, _ = named_samples("champ-test", official_file("champ-test", tmp_path), None)
    assert test[0]["steps"][-1] == "The answer is $n^2$."
    assert "@@" not in json.dumps(test)


def test_the_writing_tasks_are_three_templates_with_three_fills() -> None:
    samples, score, _ = named_samples("writing", None, None)
    assert len({sample["question"] for sample in samples}) == 9
    assert score(samples[0], {"answer": "Once."}) == {}
    with pytest.raises(BadInput, match="leave out --data"):
        named_samples("writing", Path("x.jsonl"), None)


def test_what_is_made_of_a_file_depends_on_its_content_alone(tmp_path: Path) -> None:
    file = official_file("hotpotqa", tmp_path)
    _, _, fields = named_samples("hotpotqa", file, None)
    made = Path(fields["sources"][0].removeprefix("corpus:"))
    assert made.stat().st_mode & 0o077 == 0
    (tmp_path / "elsewhere").mkdir()
    moved = shutil.copy(file, tmp_path / "elsewhere")
    assert named_samples("hotpotqa", Path(moved), None)[2] == fields
    assert [*made.parent.iterdir()] == [made]


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "taken"))
    with pytest.raises(BadInput, match="set XDG_CACHE_HOME to a folder that can be"):
        named_samples("hotpotqa", official_file("hotpotqa", tmp_path), None)
    assert named_samples("popqa", official_file("popqa", tmp_path), None)[2] == {"kind": "short"}
