"""Reading the official files, and scores by the official scripts' definitions on stored cases."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from papers.tests.official import OFFICIAL, official_file
from papers.tests.registered import BENCHMARKS
from stepcraft import open_memory
from stepcraft.errors import BadInput
from stepcraft.evals.benchmark import Questions
from stepcraft.evals.samples import Sample
from stepcraft_papers.long_form import long_answer_scores
from stepcraft_papers.procedures import solution_scores
from stepcraft_papers.short_form import alias_accuracy, label_accuracy


def load(name: str, folder: Path) -> Questions:
    return BENCHMARKS[name].load(official_file(name, folder), None)


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_file_in_another_format_is_one_sentence(name: str, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"prompt": "Who?", "completion": "He."}\n')
    with pytest.raises(BadInput, match=r"^[^\n]*other\.jsonl:1 is no record of [^\n]*$"):
        BENCHMARKS[name].load(file, None)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    file = official_file("asqa", tmp_path)
    file.write_text(file.read_text("utf-8")[:-9], "utf-8")
    with pytest.raises(BadInput, match="is not JSON"):
        BENCHMARKS["asqa"].load(file, None)


def test_the_aliases_of_2wikimultihopqa_lie_beside_its_file(tmp_path: Path) -> None:
    """As in its script v1.1: aliases and demonyms of the answer's id are right, others are not."""
    before = load("2wikimultihopqa", tmp_path).samples
    lines = [
        {"Q_id": "QArvel", "aliases": ["Arvel Riviera"], "demonyms": ["Arvelian"]},
        {"Q_id": "Q1", "aliases": ["x"], "demonyms": []},
    ]
    (tmp_path / "id_aliases.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    samples = load("2wikimultihopqa", tmp_path).samples
    assert samples[0]["answers"] == ["the Arvel coast", "Arvel Riviera", "Arvelian"]
    assert samples[1:] == before[1:]


@pytest.mark.parametrize("is_hub", [False, True])
def test_the_gold_of_hotpotqa(tmp_path: Path, is_hub: bool) -> None:
    """The hub has columns in place of pairs."""
    file = official_file("hotpotqa", tmp_path)
    if is_hub:
        rows = json.loads(file.read_text("utf-8"))
        for row in rows:
            titles, numbers = zip(*row["supporting_facts"], strict=True)
            row["supporting_facts"] = {"title": titles, "sent_id": numbers}
            titles, sentences = zip(*row["context"], strict=True)
            row["context"] = {"title": titles, "sentences": sentences}
        file.write_text(json.dumps(rows), "utf-8")
    questions = BENCHMARKS["hotpotqa"].load(file, 1)
    assert questions.samples[0]["id"] == "hop-Arvel"
    assert questions.samples[0]["gold"] == [
        {"title": "Lighthouse of Arvel", "sentences": ["It was built by Oarvel, an architect."]},
        {"title": "Architect Oarvel", "sentences": ["Oarvel was born in 1855."]},
    ]
    pooled = Path(questions.settings["sources"][0].removeprefix("corpus:"))
    assert len(pooled.read_text("utf-8").splitlines()) == 12 * 3 + 1


@pytest.mark.parametrize(
    ("answer", "label", "right"),
    [
        ("True.", "true", 1.0),
        ("The claim is **false**: it is not true.", "false", 1.0),
        ("It is not true.", "true", 0.0),
        ("unproven, and so not false", "unproven", 1.0),
        ("", "false", 0.0),
        ("This claim cannot be called true; it is false.", "false", 1.0),
        ("It isn't exactly the case that this is true. False.", "false", 1.0),
        ("It is untrue.", "false", 1.0),
        ("The claim is not supported, so it is false.", "false", 1.0),
    ],
)
def test_the_label_of_a_claim(answer: str, label: str, right: float) -> None:
    sample = Sample(id="1", question="?", answers=[label])
    assert label_accuracy(sample, {"answer": answer}) == {"accuracy": right}


def test_claims_in_the_format_of_the_authors_are_true_or_false(tmp_path: Path) -> None:
    file = tmp_path / "health_claims_processed.jsonl"
    file.write_text(json.dumps({"question": "Cats fly.", "answers": ["false"]}))
    [sample] = BENCHMARKS["pubhealth"].load(file, None).samples
    assert (sample["answers"], "mixture" in sample["question"]) == (["false"], False)
    assert sample["question"].endswith("Claim: Cats fly.")


def test_claims_without_a_label_are_left_out(tmp_path: Path) -> None:
    samples = load("pubhealth", tmp_path).samples
    labels = ["true", "false", "mixture", "unproven"] * 3
    assert [sample["answers"] for sample in samples] == [[label] for label in labels]
    assert samples[0]["question"].endswith('Claim: The air of Arvel heals "all" colds.')
    hub = tmp_path / "hub.jsonl"
    hub.write_text('{"claim": "a", "label": 2}\n{"claim": "b", "label": -1}\n')
    [sample] = BENCHMARKS["pubhealth"].load(hub, None).samples
    assert sample["answers"] == ["true"]


@pytest.mark.parametrize(
    ("answer", "right"),
    [("He was a politician.", 1.0), ("Politician", 1.0), ("POLITICIAN", 0.0), ("", 0.0)],
)
def test_an_alias_in_an_answer(answer: str, right: float) -> None:
    """The official script looks for an alias as it is, in lower case and capitalised."""
    sample = Sample(id="1", question="?", answers=["politician", "political leader"])
    assert alias_accuracy(sample, {"answer": answer}) == {"accuracy": right}


def test_long_answers() -> None:
    sample = Sample(
        id="1",
        question="?",
        contains=[["1801", "1 May"], ["1899"]],
        long_answers=["the cat sat", "a dog ran home quickly today"],
        facts=["The cat sat.", "Lenses turn."],
    )
    # Three of five and three of three words: the better of the two references counts, as in ALCE.
    assert long_answer_scores(sample, {"answer": "The cat sat in 1801."}) == {
        "STR-EM": 0.5,
        "ROUGE-Lsum": pytest.approx(0.75),
        "claim words": 0.5,
    }


@pytest.mark.parametrize(
    ("last", "answer", "right"),
    [
        ("So the answer is $\\boxed{7}$.", "7", 1.0),
        ("That makes 17.", "7", 0.0),
        ("We get $\\dfrac{1}{2}$.", "\\frac{1}{2}", 1.0),
        ("We get 1/2.", "\\frac{1}{2}", 1.0),
        ("There are 1,000 ways.", "1000", 1.0),
        ("It is $n ^ 2$.", "$n^2$", 1.0),
        ("", "7", 0.0),
    ],
)
def test_the_answer_of_a_solution(last: str, answer: str, right: float) -> None:
    sample = Sample(id="1", question="?", answers=[answer], steps=["Think."])
    assert solution_scores(sample, {"steps": ["It is 7.", last]})["right answer"] == right


def lengths(steps: Sequence[Sequence[str]]) -> list[int]:
    return [sum(map(len, each)) for each in steps]


@pytest.mark.parametrize("name", ["recipenlg", "champ"])
def test_the_longest_procedures_are_asked_for_and_the_rest_is_the_memory(
    name: str, tmp_path: Path
) -> None:
    val, test = (load(f"{name}-{split}", tmp_path) for split in ("val", "test"))
    assert val.settings == test.settings
    with open_memory(test.settings["memory"], embeddings="none") as memory:
        rest = list(memory)
    assert (len(rest), len(val.samples), len(test.samples)) == (9, 1, 2)
    val_lengths, test_lengths = (
        lengths([each["steps"] for each in part.samples]) for part in (val, test)
    )
    assert max(lengths([each.steps for each in rest])) <= min(val_lengths)
    assert max(val_lengths) <= min(test_lengths)
    asked = {each["question"] for each in (*val.samples, *test.samples)}
    assert not {each.output for each in rest} & asked


def test_a_file_that_is_too_small_to_be_split(tmp_path: Path) -> None:
    file = tmp_path / "few.csv"
    file.write_text('title,ingredients,directions\nTea,"[""leaves""]","[""Boil.""]"\n')
    with pytest.raises(BadInput, match="has 1 procedures"):
        BENCHMARKS["recipenlg-test"].load(file, None)


def test_solutions_end_with_their_answer(tmp_path: Path) -> None:
    samples = load("champ-test", tmp_path).samples
    assert samples[0]["steps"][-1] == "The answer is $n^2$."
    assert "@@" not in json.dumps(samples)


def test_the_writing_tasks_are_three_templates_with_three_fills() -> None:
    questions = BENCHMARKS["writing"].load(None, None)
    assert len({sample["question"] for sample in questions.samples}) == 9
    assert questions.scorers[0](questions.samples[0], {"answer": "Once."}) == {}
