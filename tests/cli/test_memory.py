"""`stepcraft memory` beside building: procedures in and out, votes, copies."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.shell import data, run

TEA = {"output": "tea", "input": "leaves", "steps": ["Boil.", "Pour."]}
SOUP = {
    "output": "potato soup",
    "input": "potatoes",
    "steps": ["[bold]Peel.", "Boil."],
    "source": "a book",
}
SKILL = "---\nname: greet\ndescription: Greet people.\n---\n1. Smile.\n2. Say hello.\n"


@pytest.fixture(autouse=True)
def memory(here: Path) -> None:
    """The memory m.db, with the procedures of p.jsonl."""
    write("p.jsonl", TEA, SOUP)
    run("memory import p.jsonl -m m.db")


def write(file: str, *records: object) -> None:
    Path(file).write_text("\n".join(map(json.dumps, records)))


def ids() -> list[str]:
    return [procedure["id"] for procedure in data("memory list -m m.db")]


def test_importing_twice_adds_once() -> None:
    again = run("memory import p.jsonl -m m.db").stdout
    assert again == "0 added, 2 present, 0 updated, 0 failed\n"
    assert run("memory count -m m.db").stdout == "2\n"


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({}, ["Steep."]),
        ({"id": "page 7", "tags": {"pot": "clay"}}, ["Steep."]),
        ({"key": "page 7"}, TEA["steps"]),
        ({"id": "00000000-0000-5000-8000-000000000000"}, TEA["steps"]),
    ],
)
def test_a_record_takes_back_an_edit_only_if_it_has_a_key_or_id(
    fields: dict, steps: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    write("t.jsonl", {**TEA, "output": "iced tea", **fields})
    run("memory import t.jsonl -m m.db")
    [tea] = data("memory search 'iced tea' -k 1 -m m.db")
    run("memory add -m m.db", stdin=json.dumps(tea | {"steps": ["Steep."], "tags": {}}))
    is_kept = steps == ["Steep."]
    assert data("memory import t.jsonl -m m.db")["present"] == (is_kept and not fields)
    assert ("t.jsonl:1: the memory has a later version" in caplog.text) == is_kept
    stored = data(f"memory show {tea['id']} -m m.db")
    assert (stored["steps"], stored.get("tags", {})) == (steps, fields.get("tags", {}))


def test_broken_lines_are_named_and_the_rest_goes_in() -> None:
    write("b.jsonl", TEA, "broken", {**TEA, "steps": []}, SOUP)
    shown = run("memory import b.jsonl -m b.db", status=1).stderr
    assert [line.split(": ")[0] for line in shown.splitlines()] == ["b.jsonl:2", "b.jsonl:3"]
    report = data("memory import b.jsonl -m b.db", status=1)
    assert (report["added"], report["present"], len(report["failed"])) == (0, 2, 2)


def test_fields_of_a_file_have_other_names() -> None:
    write("other.jsonl", {"title": "tea", "ingredients": "leaves", "directions": ["Boil."]})
    names = "'output=title, input=ingredients,steps=directions'"
    run(f"memory import other.jsonl --map {names} -m other.db")
    assert run("memory list -m other.db").stdout.endswith("  tea\n")


def test_add_takes_options_or_json() -> None:
    assert data("memory add -o tea -i leaves -s Boil. -s Pour. -m m.db")["present"] == 1
    iced = json.dumps({**TEA, "output": "iced tea"})
    assert data("memory add -m m.db", stdin=iced)["added"] == 1
    data("memory add -m m.db --source 'page 7'", stdin=json.dumps({**TEA, "output": "red tea"}))
    assert "source  page 7\n" in run(f"memory show {ids()[-1]} -m m.db").stdout


def test_search_list_and_show() -> None:
    found = run("memory search 'soup of potatoes' -k 1 -m m.db").stdout
    assert found.endswith("  potato soup\n")
    assert data("memory search soup -m m.db")[0]["output"] == "potato soup"
    listed = data("memory list -m m.db")
    assert [each["output"] for each in listed] == ["tea", "potato soup"]
    tea, soup = run("memory list -m m.db").stdout.splitlines()
    shown = run(f"memory show {soup.split()[0]} -m m.db").stdout
    assert "source  a book" in shown
    assert "1. [bold]Peel.\n2. Boil.\n" in shown
    assert data(f"memory show {tea.split()[0]} -m m.db")["steps"] == TEA["steps"]


def test_remove_takes_all_or_none() -> None:
    tea, soup = ids()
    run(f"memory remove {tea} zzzz -m m.db", status=2)
    assert run("memory count -m m.db").stdout == "2\n"
    assert run(f"memory remove {tea} {soup} -m m.db").stdout == "2 removed\n"


def test_outcomes_are_counted_and_move_a_search() -> None:
    best = data("memory search boil -m m.db")[0]["id"]
    assert run(f"memory rate {best} +1 -m m.db").stdout.endswith("(+1 -0)\n")
    for _ in range(10):
        run(f"memory rate {best} -1 -m m.db")
    shown = run(f"memory show {best} -m m.db").stdout
    assert "note    worked in 1 of 11 runs\nnote    keeps failing\n" in shown
    search = "memory search boil -m m.db --outcome-weight"
    assert data(f"{search} 1")[0]["id"] != best
    assert data(f"{search} 0")[0]["id"] == best


def test_export_can_be_imported(here: Path) -> None:
    lines = run("memory export -m m.db").stdout
    assert [json.loads(line)["output"] for line in lines.splitlines()] == ["tea", "potato soup"]
    run("memory export --to out.jsonl -m m.db")
    assert (here / "out.jsonl").read_text() == lines
    assert "2 present" in run("memory import out.jsonl -m m.db").stdout


def test_skills_go_out_and_in(here: Path) -> None:
    for _ in range(2):
        assert "2 written to" in run("memory export --format skills out -m m.db").stderr
    assert len(list((here / "out").iterdir())) == 2
    greet = here / "out" / "greet"
    greet.mkdir()
    (greet / "SKILL.md").write_text(SKILL)
    assert "3 added" in run("memory import out -m other.db").stdout


def test_an_edited_skill_is_not_overwritten_by_the_next_export(here: Path) -> None:
    run("memory export --format skills out -m m.db")
    [tea] = (here / "out").glob("tea-*/SKILL.md")
    tea.write_text(tea.read_text() + "\nMind the cat.\n")
    exported = run("memory export --format skills out -m m.db", status=1)
    assert "1 written to out" in exported.stderr
    assert f"{tea.relative_to(here)}: it was edited" in exported.stderr
    assert "Mind the cat." in tea.read_text()


@pytest.mark.parametrize(
    ("skill", "stored", "steps", "report"),
    [
        (None, {"steps": ["Steep."]}, ["Steep."], (0, 2, 0, 0)),
        (None, {"tags": {"pot": "clay"}, "expires": "2999-01-01"}, TEA["steps"], (0, 2, 0, 0)),
        ("Drink.", {"tags": {"pot": "clay"}}, ["Boil.", "Drink."], (0, 1, 1, 0)),
        ("Drink.", {"steps": ["Boil.", "Drink."]}, ["Boil.", "Drink."], (0, 2, 0, 0)),
        ("Drink.", {"steps": ["Steep."]}, ["Steep."], (0, 1, 0, 1)),
    ],
)
def test_a_skill_takes_back_nothing_that_changed_since_its_export(
    here: Path, skill: str | None, stored: dict, steps: list[str], report: tuple[int, ...]
) -> None:
    tea = data("memory search tea -k 1 -m m.db")[0] | {"tags": {"pot": "steel"}}
    run("memory add -m m.db", stdin=json.dumps(tea))
    run("memory export --format skills out -m m.db")
    run("memory add -m m.db", stdin=json.dumps(tea | {"metadata": {"by": "Ada"}} | stored))
    [file] = (here / "out").glob("tea-*/SKILL.md")
    file.write_text(file.read_text().replace("2. Pour.", f"2. {skill or 'Pour.'}"))
    imported = data("memory import out -m m.db", status=report[-1])
    counts = (imported["added"], imported["present"], imported["updated"], len(imported["failed"]))
    assert counts == report
    now = data(f"memory show {tea['id']} -m m.db")
    assert (now["steps"], now["metadata"]) == (steps, {"by": "Ada"})
    assert now["tags"] == stored.get("tags", tea["tags"])


@pytest.mark.parametrize(
    ("stored", "steps"), [(TEA["steps"], ["Boil.", "Drink."]), (["Steep."], ["Steep."])]
)
def test_an_edit_of_the_front_matter_too_takes_back_nothing(
    here: Path, stored: list[str], steps: list[str]
) -> None:
    earlier = {**TEA, "steps": ["Pour."], "at": "2026-01-01T00:00:00+00:00", "why": "", "by": ""}
    tea = data("memory search tea -k 1 -m m.db")[0] | {"versions": [earlier]}
    run("memory add -m m.db", stdin=json.dumps(tea))
    run("memory export --format skills out -m m.db")
    run("memory add -m m.db", stdin=json.dumps(tea | {"steps": stored}))
    [file] = (here / "out").glob("tea-*/SKILL.md")
    file.write_text(file.read_text().replace("Pour", "Drink"))  # as `sed -i` does
    is_kept = steps == stored
    imported = run("memory import out -m m.db", status=is_kept)
    assert ("has changed meanwhile. It says now:" in imported.stderr) == is_kept
    assert data(f"memory show {tea['id']} -m m.db")["steps"] == steps


def test_a_skill_takes_back_no_edit_of_its_export(here: Path) -> None:
    own = here / "skills" / "welcome" / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text(SKILL)
    run("memory import skills -m g.db")
    run("memory export --format skills skills -m g.db")
    [made] = (here / "skills").glob("greet-people-*/SKILL.md")
    made.write_text(f"{made.read_text().rstrip()}\n3. Bow.\n")
    for name, report in (
        ("g", "0 added, 1 present, 1 updated"),
        ("g", "0 added, 2 present, 0 updated"),
        ("other", "1 added, 0 present, 1 updated"),
        ("other", "0 added, 2 present, 0 updated"),
    ):
        assert f"{report}, 0 failed" in run(f"memory import skills -m {name}.db").stdout
        [greeting] = data(f"memory list -m {name}.db")
        assert greeting["steps"] == ["Smile.", "Say hello.", "Bow."]
    own.write_text(SKILL.replace("hello", "good day"))
    assert "1 added, 1 present" in run("memory import skills -m g.db").stdout


def test_a_skill_is_edited_twice_restored_and_given_to_others(here: Path) -> None:
    run("memory export --format skills out -m m.db")
    [file] = (here / "out").glob("tea-*/SKILL.md")
    for before, after in (("Pour.", "Drink."), ("Drink.", "Pour."), ("Pour.", "Sip.")):
        file.write_text(file.read_text().replace(f"\n2. {before}", f"\n2. {after}"))
        assert "1 updated, 0 failed" in run("memory import out -m m.db").stdout
    run(f"memory remove {' '.join(ids())} -m m.db")
    assert "2 added" in run("memory import out -m m.db").stdout
    run("memory import p.jsonl -m theirs.db")
    file.unlink()
    run("memory export --format skills out -m m.db")
    assert "1 present, 1 updated" in run("memory import out -m theirs.db").stdout
    [tea] = data("memory search tea -k 1 -m theirs.db")
    assert tea["steps"] == ["Boil.", "Sip."]


@pytest.mark.parametrize("kind", ["local", "weaviate"])
def test_a_copy_is_the_same(kind: str, request: pytest.FixtureRequest) -> None:
    target = "c.db" if kind == "local" else request.getfixturevalue("new_collection")()
    assert "2 added" in run(f"memory copy m.db '{target}'").stdout
    assert "2 present" in run(f"memory copy m.db '{target}'").stdout


@pytest.mark.parametrize(
    ("old", "new", "answer", "said"),
    [
        ("2. Pour.", "2. Pour.\n3. Drink.", "y", "changed; "),
        ("# tea", "# tea for two", "y", "changed; "),
        ("2. Pour.", "2. Drink.", "n", "nothing was changed"),
        ("2. Pour.", "2. Pour.", "", "nothing was changed"),
        ("2. Pour.", "", "", "nothing was changed: Command"),
    ],
)
def test_a_procedure_is_edited_in_an_editor(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str, answer: str, said: str
) -> None:
    Path("editor.py").write_text(
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n"
        f"file.write_text(file.read_text().replace({old!r}, {new!r}))\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} editor.py" if new else "false")
    tea = ids()[0]
    result = run(f"memory edit {tea} -m m.db", stdin=f"{answer}\n", status=0 if new else 2)
    assert said in result.output
    after = data(f"memory show {tea} -m m.db")
    is_changed = said == "changed; "
    assert [each["output"] for each in after.get("versions", [])] == ["tea"] * is_changed
    assert ("Drink." in after["steps"] or after["output"] == "tea for two") == is_changed


def test_a_procedure_that_cannot_be_stored_is_not_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "/no/such/editor")
    tea = data("memory list -m p.jsonl")[0]["id"]
    assert "p.jsonl can only be searched" in run(f"memory edit {tea} -m p.jsonl", status=2).stderr


@pytest.mark.parametrize(
    ("bad", "reason"), [(b"\n## Note\n", "'## Note' belongs"), (b"\xe4", "utf-8")]
)
@pytest.mark.parametrize(("answers", "is_mended"), [("y\ny\n", True), ("n\n", False), ("", False)])
def test_text_that_cannot_be_stored_is_edited_again_or_kept_in_a_file(
    monkeypatch: pytest.MonkeyPatch, bad: bytes, reason: str, answers: str, is_mended: bool
) -> None:
    """The editor writes something bad the first time, and removes it the second time."""
    Path("editor.py").write_text(
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n"
        f"before, bad = file.read_bytes(), {bad!r}\n"
        "after = before.replace(b'Pour.', b'Pour slowly.') + bad\n"
        "file.write_bytes(before.replace(bad, b'') if bad in before else after)\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} editor.py")
    tea = ids()[0]
    result = run(f"memory edit {tea} -m m.db", stdin=answers, status=0 if is_mended else 2)
    assert reason in result.stderr
    assert data(f"memory show {tea} -m m.db")["steps"][1] == (
        "Pour slowly." if is_mended else "Pour."
    )
    if not is_mended:
        kept = Path(result.stderr.rpartition("your text is in ")[2].strip())
        assert b"2. Pour slowly." in kept.read_bytes()
        assert bad in kept.read_bytes()


def test_the_history_has_tags_and_an_undo_without_effect_says_so() -> None:
    tagged = {**TEA, "tags": {"garden": "herbs"}, "expires": "2999-12-31", "key": "page 7"}
    for record in (tagged, {**TEA, "key": "page 7"}):
        write("t.jsonl", record)
        run("memory import t.jsonl -m m.db")
    shown = run("memory history 'page 7' -m m.db").stdout
    assert "\n   tags garden=herbs\n   expires 2999-12-31\n   1. Boil." in shown
    assert "nothing was changed" not in run("memory undo 'page 7' -m m.db").stderr
    assert "tags    garden=herbs" in run("memory show 'page 7' -m m.db").stdout
    assert "nothing was changed" in run("memory undo 'page 7' 2 -m m.db").stderr


def test_tags_filter_a_search_and_keys_name_a_procedure() -> None:
    tagged = {**TEA, "output": "mint tea", "tags": {"garden": "herbs"}, "key": "page 7"}
    write("t.jsonl", tagged, {**SOUP, "output": "leek soup", "tags": ["easy"]})
    run("memory import t.jsonl -m m.db")
    found = data("memory search tea -m m.db --where garden=herbs -k 5")
    assert [each["output"] for each in found] == ["mint tea"]
    shown = run("memory show 'page 7' -m m.db").stdout
    assert "key     page 7\ntags    garden=herbs\n" in shown
    [soup] = [each for each in data("memory list -m m.db") if each["output"] == "leek soup"]
    assert soup["metadata"] == {"tags": ["easy"]}, "what is no tag of ours stays"
    write("t.jsonl", {**tagged, "steps": ["Steep mint.", "Pour."]})
    assert data("memory import t.jsonl -m m.db")["updated"] == 1
    assert "1. Boil." in run("memory history 'page 7' -m m.db").stdout
    run("memory undo 'page 7' -m m.db")
    assert "1. Boil." in run("memory show 'page 7' -m m.db").stdout
    wrong = run("memory undo 'page 7' 9 -m m.db", status=2).stderr
    assert "has 2 earlier versions, and no version 9" in wrong
    assert (
        "tags must be names with texts"
        in run("memory search tea -m m.db --where garden", status=2).stderr
    )
