"""`stepcraft memory` beside building: procedures in and out, votes, copies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.shell import data, run

TEA = {"output": "tea", "input": "leaves", "steps": ["Boil.", "Pour."]}
SOUP = {
    "output": "potato soup",
    "input": "potatoes",
    "steps": ["Peel.", "Boil."],
    "source": "a book",
}
SKILL = "---\nname: greet\ndescription: Greet people.\n---\n1. Smile.\n2. Say hello.\n"


def written(file: Path, *records: object) -> Path:
    lines = (record if isinstance(record, str) else json.dumps(record) for record in records)
    file.write_text("\n".join(lines))
    return file


@pytest.fixture
def db(tmp_path: Path) -> Path:
    run("memory", "import", written(tmp_path / "p.jsonl", TEA, SOUP), "-m", tmp_path / "m.db")
    return tmp_path / "m.db"


def ids(db: Path) -> list[str]:
    return [line.split()[0] for line in run("memory", "list", "-m", db).stdout.splitlines()]


def test_importing_twice_adds_once(db: Path) -> None:
    again = run("memory", "import", db.with_name("p.jsonl"), "-m", db).stdout
    assert again == "0 added, 2 present, 0 updated, 0 failed\n"
    assert run("memory", "count", "-m", db).stdout == "2\n"


def test_broken_lines_are_named_and_the_rest_goes_in(tmp_path: Path) -> None:
    file = written(tmp_path / "b.jsonl", TEA, "broken", {**TEA, "steps": []}, SOUP)
    result = run("memory", "import", file, "-m", tmp_path / "m.db", status=1)
    assert [line.split(": ")[0] for line in result.stderr.splitlines()] == [
        f"{file}:2",
        f"{file}:3",
    ]
    report = data("memory", "import", file, "-m", tmp_path / "m.db", status=1)
    assert (report["added"], report["present"], len(report["failed"])) == (0, 2, 2)


def test_fields_of_a_file_have_other_names(tmp_path: Path) -> None:
    record = {"title": "tea", "ingredients": "leaves", "directions": ["Boil."]}
    names = "output=title, input=ingredients,steps=directions"
    file = written(tmp_path / "p.jsonl", record)
    run("memory", "import", file, "--map", names, "-m", tmp_path / "m.db")
    assert run("memory", "list", "-m", tmp_path / "m.db").stdout.endswith("  tea\n")


def test_add_takes_options_or_json(db: Path) -> None:
    steps = ["-s", "Boil.", "-s", "Pour."]
    assert data("memory", "add", "-o", "tea", "-i", "leaves", *steps, "-m", db)["present"] == 1
    added = data("memory", "add", "-m", db, stdin=json.dumps({**TEA, "output": "iced tea"}))
    assert added["added"] == 1


def test_search_list_and_show(db: Path) -> None:
    assert run("memory", "search", "soup of potatoes", "-k", "1", "-m", db).stdout.endswith(
        "  potato soup\n"
    )
    assert data("memory", "search", "soup", "-m", db)[0]["output"] == "potato soup"
    assert [each["output"] for each in data("memory", "list", "-m", db)] == ["tea", "potato soup"]
    tea, soup = ids(db)
    shown = run("memory", "show", soup, "-m", db).stdout
    assert "source  a book" in shown
    assert "1. Peel.\n2. Boil.\n" in shown
    assert data("memory", "show", tea, "-m", db)["steps"] == TEA["steps"]


def test_remove_takes_all_or_none(db: Path) -> None:
    run("memory", "remove", ids(db)[0], "zzzz", "-m", db, status=2)
    assert run("memory", "count", "-m", db).stdout == "2\n"
    assert run("memory", "remove", *ids(db), "-m", db).stdout == "2 removed\n"


def test_what_a_procedure_holds_is_shown_as_it_is(db: Path) -> None:
    run("memory", "add", "-o", "[red]mate", "-i", "\x1b[31mleaves", "-s", "[bold]Boil.", "-m", db)
    shown = run("memory", "show", ids(db)[2], "-m", db).stdout
    assert "[red]mate" in shown
    assert "[bold]Boil." in shown
    assert "\x1b" not in shown


def test_votes_are_counted_and_move_a_search(db: Path) -> None:
    tea = ids(db)[0]
    assert run("memory", "rate", tea, "-1", "-m", db).stdout.endswith("(+0 -1)\n")
    assert run("memory", "rate", tea, "+1", "-m", db).stdout.endswith("(+1 -1)\n")
    assert "votes   +1 -1\n" in run("memory", "show", tea, "-m", db).stdout
    best = run("memory", "search", "boil", "-k", "1", "-m", db).stdout.split()[1]
    for _ in range(10):
        run("memory", "rate", best, "-1", "-m", db)
    search = ["memory", "search", "boil", "-k", "1", "-m", db, "--feedback-weight"]
    assert run(*search, "1").stdout.split()[1] != best
    assert run(*search, "0").stdout.split()[1] == best


def test_export_can_be_imported(db: Path) -> None:
    lines = run("memory", "export", "-m", db).stdout
    assert [json.loads(line)["output"] for line in lines.splitlines()] == ["tea", "potato soup"]
    to = db.with_name("out.jsonl")
    run("memory", "export", "--to", to, "-m", db)
    assert to.read_text() == lines
    assert "2 present" in run("memory", "import", to, "-m", db).stdout


def test_skills_go_out_and_in(db: Path) -> None:
    out, other = db.with_name("out"), db.with_name("other.db")
    export = ["memory", "export", "--format", "skills", out, "-m", db]
    for _ in range(2):
        assert "2 written to" in run(*export).stderr
    assert len(list(out.iterdir())) == 2
    (out / "greet").mkdir()
    (out / "greet" / "SKILL.md").write_text(SKILL)
    assert "3 added" in run("memory", "import", out, "-m", other).stdout


@pytest.mark.parametrize("kind", ["local", "weaviate"])
def test_a_copy_is_the_same(kind: str, db: Path, request: pytest.FixtureRequest) -> None:
    target = (
        db.with_name("c.db") if kind == "local" else request.getfixturevalue("new_collection")()
    )
    assert "2 added" in run("memory", "copy", db, target).stdout
    assert "2 present" in run("memory", "copy", db, target).stdout
    assert data("memory", "check", target, db.with_name("p.jsonl"))["same"] == 2


def test_what_differs_from_a_file_is_named(db: Path) -> None:
    tea, soup = data("memory", "list", "-m", db)
    cake = {**TEA, "output": "cake"}
    file = written(db.with_name("x.jsonl"), {**tea, "source": "elsewhere"}, cake)
    lines = run("memory", "check", db, file, status=1).stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["missing", "extra", "different"]
    report = data("memory", "check", db, file, status=1)
    assert (report["same"], report["extra"][0]["id"]) == (0, soup["id"])
    with file.open("a") as text:
        text.write("\nbroken")
    assert "nothing was compared" in run("memory", "check", db, file, status=2).stderr
