"""`stepcraft memory build` and `memory check --against`: what they print, and their exit status."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from stepcraft.cli import app

HOW_TO = """\
# Make tea

1. Boil the water in the `kettle`.
2. Pour it over the leaves.
3. Wait for 4 minutes.
"""
SOUP = """\
# Cook soup

1. Peel every potato with the `peeler`.
2. Simmer them until they are soft.
"""


def run(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["memory", *arguments], env={"STEPCRAFT_EMBEDDINGS": "none"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code == status, result.output
    return result


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with two pages in docs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "soup.md").write_text(SOUP)
    (tmp_path / "docs" / "tea.md").write_text(HOW_TO)
    return tmp_path


def test_a_build_says_what_it_does_and_what_came_of_it(here: Path) -> None:
    first = run("build", "corpus:docs/", "--memory", "m.db")
    assert first.stderr.splitlines()[0] == (
        "2 documents, read by extractive, into m.db; the records are in m.db.build"
    )
    assert "warning: no language model wrote this" in first.stderr
    assert first.stdout == (
        "2 documents, 0 unchanged, 0 failed\n"
        "2 procedures, 2 added; 0 flagged, 0 rejected, 0 of earlier versions stale\n"
        "the page is m.db.build/report.html\n"
    )
    assert (here / "m.db.build" / "report.html").exists()
    told = json.loads(run("build", "docs", "-m", "m.db", "--json", "--quiet").stdout)
    assert (told["documents"], told["unchanged"], told["added"], told["failed"]) == (2, 2, 2, [])
    built = [one["metadata"]["built"] for one in json.loads(run("list", "-m", "m.db", "--json").stdout)]
    assert {one["from"] for one in built} == {"docs/soup.md", "docs/tea.md"}


def test_a_document_that_fails_is_named_and_the_status_is_1(here: Path) -> None:
    (here / "docs" / "torn.md").write_bytes(b"\0")
    result = run("build", "docs", "-m", "m.db", status=1)
    assert "docs/torn.md: it is binary" in result.stderr.splitlines()
    assert result.stdout.startswith("3 documents, 0 unchanged, 1 failed\n2 procedures, 2 added;")


def test_a_dry_run_asks_nothing_and_makes_nothing(here: Path) -> None:
    lines = run("build", "docs", "-m", "m.db", "--dry-run", "--price", "1/2").stdout.splitlines()
    assert lines[:2] == [
        f"   1 section         {len(SOUP):>2} characters  docs/soup.md",
        f"   1 section         {len(HOW_TO):>2} characters  docs/tea.md",
    ]
    assert lines[2].startswith("2 documents; at most about 12 calls, ")
    assert " USD, if no call is repeated" in lines[2]
    assert [one.name for one in here.iterdir()] == ["docs"]
    run("build", "docs/tea.md", "-m", "m.db")
    plan = json.loads(run("build", "docs", "-m", "m.db", "--dry-run", "--json").stdout)
    assert [(one["source"], one["done"]) for one in plan["documents"]] == [
        ("docs/soup.md", False),
        ("docs/tea.md", True),
    ]
    spent = json.loads(run("build", "docs", "-m", "m.db", "--json").stdout)["usage"]
    assert spent["input_tokens"] / 2 < plan["input_tokens"]


def test_a_dry_run_names_the_document_that_a_build_refuses(here: Path) -> None:
    (here / "docs" / "long.md").write_text("# Long\n\n" + "word " * 400_000)
    refusal = "docs/long.md: the document has 2,000,008 characters; at most 2,000,000 are taken, so split it"
    for options in (["--dry-run"], ["--quiet"]):
        result = run("build", "docs", "-m", "m.db", *options, status=1)
        assert result.stderr.splitlines()[0] == refusal


def test_a_dry_run_counts_the_comparisons_of_each_procedure(here: Path) -> None:
    tasks = (f"# Fill tank {n}\n\n1. Open valve `v{n}`.\n2. Close valve `v{n}`.\n" for n in range(9))
    (here / "docs" / "many.md").write_text("\n".join(tasks))
    plan = json.loads(run("build", "docs", "-m", "m.db", "--dry-run", "--json").stdout)
    spent = json.loads(run("build", "docs", "-m", "m.db", "--json", "--quiet").stdout)["usage"]
    assert 3 + 9 * 2 < spent["calls"] <= plan["calls"]
    assert spent["input_tokens"] <= plan["input_tokens"]
    assert spent["output_tokens"] <= plan["output_tokens"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["docs"], "there is no memory to build; name one with --memory, such as --memory docs.db"),
        (["nowhere", "-m", "m.db"], "there is no file or folder nowhere; check the name"),
        (["docs", "", "-m", "m.db"], "the name of a source is empty; name corpus:PATH or a path"),
        (["docs", "-m", "m.db", "--set", "stric=true"], "did you mean 'strict'?"),
        (["docs", "-m", "m.db", "--model", "no:model"], "the model 'no:model' cannot be used"),
        (["docs", "-m", "m.db", "--max-usd", "1"], "a budget in USD needs the price of every model"),
        (["docs", "-m", "m.db", "--directory", "docs"], "docs holds other files, such as 'soup.md'"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(here: Path, arguments: list[str], problem: str) -> None:
    told = run("build", *arguments, status=2).stderr.splitlines()
    assert problem in told[-1]
    assert told[-1].startswith("stepcraft: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere"],
        [""],
        ["docs", "--model", "no:model"],
        ["docs", "--model", "foo"],
        ["docs", "--on-duplicate", "drop"],
    ],
)
def test_what_cannot_be_used_makes_no_memory(here: Path, arguments: list[str]) -> None:
    run("build", *arguments, "-m", "m.db", status=2)
    assert [one.name for one in here.iterdir()] == ["docs"]


def test_documents_that_are_gone_or_changed_are_found_and_marked(here: Path) -> None:
    run("build", "docs", "-m", "m.db", "--concurrency", "1")
    run("add", "-m", "m.db", "-o", "a cake", "-i", "flour", "-s", "Stir.", "-s", "Bake.")
    same = run("check", "m.db", "--against", "corpus:docs/")
    assert same.stdout == "2 current, 0 stale, 1 from elsewhere\n"
    (here / "docs" / "soup.md").unlink()
    (here / "docs" / "tea.md").write_text(HOW_TO.replace("4", "5"))
    found = run("check", "m.db", "--against", str(here / "docs"), status=1)
    lines = found.stdout.splitlines()
    assert lines[0].endswith("cook soup: docs/soup.md is gone")
    assert lines[1].endswith("make tea: docs/tea.md has changed since it was built")
    assert lines[2] == "0 current, 2 stale, 1 from elsewhere"
    assert not [
        one for one in json.loads(run("list", "-m", "m.db", "--json").stdout) if "stale" in one["metadata"]
    ]
    run("check", "m.db", "--against", "docs", "--mark", status=1)
    marked = json.loads(run("check", "m.db", "--against", "docs", "--mark", "--json", status=1).stdout)
    assert (len(marked["stale"]), marked["marked"]) == (2, 0)
    reasons = [one["metadata"].get("stale") for one in json.loads(run("list", "-m", "m.db", "--json").stdout)]
    assert reasons == ["docs/soup.md is gone", "docs/tea.md has changed since it was built", None]


def test_a_document_that_is_back_is_no_longer_stale(here: Path) -> None:
    run("build", "docs", "-m", "m.db")
    (here / "docs" / "soup.md").rename(here / "soup.md")
    run("check", "m.db", "--against", "docs", "--mark", status=1)
    (here / "soup.md").rename(here / "docs" / "soup.md")
    run("build", "docs", "-m", "m.db")
    assert run("check", "m.db", "--against", "docs").stdout == "2 current, 0 stale, 0 from elsewhere\n"


def test_check_takes_a_file_or_documents(here: Path) -> None:
    run("build", "docs", "-m", "m.db")
    run("export", "-m", "m.db", "--to", "p.jsonl")
    assert run("check", "m.db", "p.jsonl").stdout == "2 the same, 0 missing, 0 extra, 0 different\n"
    for wrong in ([], ["p.jsonl", "--against", "docs"], ["p.jsonl", "--mark"]):
        assert "name either a file" in run("check", "m.db", *wrong, status=2).stderr


def test_what_another_document_teaches_too_is_not_stale(here: Path) -> None:
    for name in ("other.md", "third.md"):
        (here / "docs" / name).write_text(HOW_TO)
    told = json.loads(run("build", "docs", "-m", "m.db", "--json").stdout)
    assert (told["procedures"], told["added"], told["present"]) == (4, 2, 2)
    (here / "docs" / "tea.md").unlink()
    assert run("check", "m.db", "--against", "docs").stdout.startswith("2 current, 0 stale")
    (here / "docs" / "other.md").write_text(SOUP)
    assert run("check", "m.db", "--against", "docs").stdout.startswith("2 current, 0 stale")
    (here / "docs" / "third.md").write_text(SOUP)
    assert (
        run("check", "m.db", "--against", "docs", status=1)
        .stdout.splitlines()[-1]
        .startswith("1 current, 1 stale")
    )
