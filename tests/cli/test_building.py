"""`stepcraft memory build`, `dedupe`, `credit` and `repair`: output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import data, run
from tests.servers.openai_server import OpenAIServer

TEA = "# Make tea\n\n1. Boil the water in the `kettle`.\n2. Pour it.\n3. Wait for 4 minutes.\n"
SOUP = "# Cook soup\n\n1. Peel every potato with the `peeler`.\n2. Simmer them.\n"
BUILD = "memory build docs -m m.db"


@pytest.fixture(autouse=True)
def docs(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two pages, below the working directory."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    docs = here / "docs"
    docs.mkdir()
    (docs / "soup.md").write_text(SOUP)
    (docs / "tea.md").write_text(TEA)
    return docs


def test_a_build_says_what_it_does_and_what_came_of_it() -> None:
    first = run("memory build corpus:docs/ -m m.db")
    assert "2 of 2 done, 0 failed" in first.stderr
    assert "warning: no language model was used" in first.stderr
    assert "2 procedures" in first.stdout
    assert first.stdout.endswith("the page is m.db.build.html\n")
    assert Path("m.db.build.html").exists()
    report = data(f"{BUILD} --quiet")
    assert (report["unchanged"], report["added"], report["failed"]) == (2, 2, [])


def test_a_document_that_fails_is_named_and_the_code_is_1(docs: Path) -> None:
    (docs / "torn.md").write_bytes(b"\0")
    result = run(BUILD, status=1)
    assert "docs/torn.md: it is binary" in result.stderr.splitlines()
    assert data(BUILD, status=1)["added"] == 2


def test_a_dry_run_asks_nothing_and_makes_nothing() -> None:
    shown = run(f"{BUILD} --dry-run").stdout
    assert "docs/soup.md" in shown
    assert shown.endswith("2 documents, 0 failed, 2 calls to read, 12 calls at most\n")
    assert not Path("m.db").exists()
    run("memory build docs/tea.md -m m.db")
    plan = data(f"{BUILD} --dry-run")
    assert [document["done"] for document in plan["documents"]] == [False, True]
    assert data(BUILD)["calls"] <= plan["calls"]


def test_what_a_deleted_file_taught_is_stale(docs: Path) -> None:
    run(BUILD)
    (docs / "soup.md").unlink()
    assert data(BUILD)["stale"] == 1
    assert "cook soup  (stale)" in run("memory list -m m.db").stdout


def test_procedures_for_the_same_task_are_merged_or_linked() -> None:
    for resource in ("leaves", "water"):
        run(f"memory add -o 'make tea' -i 'a pot, {resource}' -s Boil. -m m.db")
    assert "would be merged" in run("memory dedupe -m m.db --dry-run").stdout
    assert run("memory count -m m.db").stdout == "2\n"
    merged = data("memory dedupe -m m.db")
    assert (merged["compared"], merged["linked"], merged["merged"]) == (1, 0, 1)
    assert merged["changes"][0]["how"] == "merged"
    assert run("memory count -m m.db").stdout == "1\n"


REPAIRED = """\
CAUSE: The kettle was empty.
PROCEDURE: 1
OUTPUT: make tea
INPUT: tea, a kettle
STEPS:
1. Fill the `kettle`.
2. Boil the water in the `kettle`.
"""


def threads(*runs: dict[str, Any]) -> None:
    lines = [
        {
            "thread_id": str(number),
            "messages": [
                {"role": "user", "content": "make tea"},
                {"role": "assistant", "content": "The kettle is empty."},
            ],
            **run,
        }
        for number, run in enumerate(runs)
    ]
    Path("runs.jsonl").write_text("\n".join(map(json.dumps, lines)))


def test_the_outcomes_of_runs_are_credited_once() -> None:
    run(BUILD)
    tea = data("memory search kettle -m m.db")[0]["id"]
    threads(
        {"shown_procedures": [tea], "feedback": {"success": 1}},
        {"shown_procedures": [tea], "feedback": {"success": 0}},
        {"shown_procedures": [tea]},
        {"shown_procedures": None, "feedback": {"success": 1}},
        {"shown_procedures": [17, None], "feedback": {"success": 1}},
        {
            "values": {"question": "tea?", "answer": "So.", "evidence": [{"id": tea}]},
            "feedback": {"thumbs_up": 1},
        },
    )
    for path in ("runs.jsonl", "./runs.jsonl", Path("runs.jsonl").resolve()):
        credited = data(f"memory credit threads:{path} -m m.db")
        assert credited == {"runs": 6, "judged": 4, "credited": 3}
    assert "note    worked in 2 of 3 runs\n" in run(f"memory show {tea} -m m.db").stdout


def test_runs_that_cannot_be_read_are_in_the_result() -> None:
    run(BUILD)
    threads({"feedback": {"success": 1}})
    with Path("runs.jsonl").open("a") as file:
        file.write("\nbroken")
    credited = data("memory credit threads:runs.jsonl -m m.db", status=1)
    assert credited["runs"] == 1
    assert credited["failed"][0]["where"].startswith("runs.jsonl:2")


def test_only_as_many_runs_are_credited_as_a_procedure_remembers() -> None:
    run(BUILD)
    tea, soup = (procedure["id"] for procedure in data("memory list -m m.db"))
    for number in (205, 205, 210):
        shown = [[tea, soup, "page.md#1"]] * 3 + [[tea, "page.md#1"]] * (number - 3)
        threads(*({"shown_procedures": each, "feedback": {"success": 1}} for each in shown))
        credited = run("memory credit threads:runs.jsonl -m m.db")
        assert credited.stdout == f"{number} runs, {number} judged, 203 credited\n"
        assert f"{number} of the runs were shown {tea}; only the latest 200" in credited.stderr
        assert len(credited.stderr.splitlines()) == 1
    counts = [each["outcomes"]["successes"] for each in data("memory list -m m.db")]
    assert counts == [205, 3], "the five new runs are counted, and no other one again"


@pytest.mark.parametrize(
    ("options", "answer", "said", "versions", "count"),
    [
        ("", "y\n", "changed", 2, 2),
        ("", "n\n", "nothing was changed", 1, 2),
        ("--yes", "", "undo", 2, 2),
        ("--yes --candidate", "", "added beside it", 1, 3),
    ],
)
def test_a_procedure_is_repaired_once_it_is_approved(
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    answer: str,
    said: str,
    versions: int,
    count: int,
) -> None:
    run(f"{BUILD} --embeddings wordllama")  # the new text needs a vector
    stored = data("memory search kettle -m m.db")[0]
    tea, tagged = stored["id"], json.dumps({**stored, "tags": {"pot": "steel"}})
    run("memory add -m m.db --embeddings wordllama", stdin=tagged)  # makes an earlier version
    run(f"memory rate {tea} -1 -m m.db")
    threads({})
    repair = (
        f"memory repair {tea} threads:runs.jsonl -m m.db --model openai:{said[:4]}{count} {options}"
    )
    with OpenAIServer([REPAIRED]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        result = run(repair, stdin=answer)
    assert "cause: The kettle was empty" in result.stdout
    assert "1. Fill the `kettle`." in result.stdout
    assert said in result.stdout
    assert len(data(f"memory history {tea} -m m.db")) == versions
    assert run("memory count -m m.db").stdout == f"{count}\n"
    for other in data("memory list -m m.db"):
        assert other["id"] == tea or not {"outcomes", "versions"} & other.keys()
        assert other["output"] != "make tea" or other["tags"] == {"pot": "steel"}


def test_a_repair_takes_one_run_and_one_procedure() -> None:
    run(BUILD)
    tea = data("memory search kettle -m m.db")[0]["id"]
    threads({}, {})
    assert "has 2 runs" in run(f"memory repair {tea} threads:runs.jsonl -m m.db", status=2).stderr
    threads({})
    assert "no procedures" in run("memory repair zzz threads:runs.jsonl -m m.db", status=2).stderr
    Path("p.jsonl").write_text(run("memory export -m m.db").stdout)
    fixed = f"memory repair {tea} threads:runs.jsonl -m p.jsonl --model openai:not-called"
    assert "p.jsonl can only be searched" in run(fixed, status=2).stderr
    kept = run(f"memory repair {tea} threads:runs.jsonl -m m.db").stdout
    assert "nothing was changed" in kept, "the model without a key repairs nothing"
