"""`stepcraft memory rate`, `history` and `restore`, and the votes that other commands show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from stepcraft import open_memory
from stepcraft.cli.memory import memory_app
from tests.kitchen import dish

Shell = Callable[..., Result]
BREAD = dish(1, output="bake a bread", source="a book")
ID = BREAD.id[:8]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    with open_memory(tmp_path / "m.db", embeddings="wordllama") as memory:
        memory.add([BREAD, dish(2, output="slice a bread")])

    def run(*arguments: str) -> Result:
        result = CliRunner().invoke(memory_app, [*arguments, "--memory", str(tmp_path / "m.db")])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
        return result

    return run


def edit(shell: Shell, tmp_path: Path, *steps: str) -> None:
    record = {**BREAD.to_dict(), "steps": steps}
    (tmp_path / "edited.jsonl").write_text(json.dumps(record))
    assert shell("import", str(tmp_path / "edited.jsonl")).stdout == "0 added, 0 already there, 1 updated\n"


def test_votes_are_counted_and_shown(shell: Shell) -> None:
    assert (
        shell("rate", ID, "-1", "--why", "it burns\x1b[2J", "--by", "Ana").stdout
        == f"{ID}  bake a bread  (+0 -1)\n"
    )
    assert shell("rate", BREAD.id, "+1").stdout == f"{ID}  bake a bread  (+1 -1)\n"
    assert shell("list").stdout.splitlines()[0] == f"{ID}  bake a bread  (+1 -1)"
    shown = shell("show", ID).stdout
    assert "votes   +1 -1\n        -1  it burns[2J\n" in shown
    votes = json.loads(shell("show", ID, "--json").stdout)["metadata"]["votes"]
    assert [(vote["vote"], vote["by"]) for vote in votes] == [(-1, "Ana"), (1, "")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((ID, "2"), "stepcraft: the vote '2' is not understood; write +1 or -1\n"),
        (("zz", "-1"), "no procedure has an id that starts with 'zz'"),
        (("", "+1"), "no procedure has an id that starts with ''"),
        ((ID, "-1", "--wy", "x"), "unexpected extra argument"),
        ((ID, "-1", "--why", "x" * 1001), "the reason of a vote has 1,001 characters"),
    ],
)
def test_a_wrong_vote_changes_nothing(shell: Shell, arguments: tuple[str, ...], sentence: str) -> None:
    result = shell("rate", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert shell("list").stdout.splitlines()[0] == f"{ID}  bake a bread"


def test_a_search_follows_the_votes(shell: Shell) -> None:
    query = ("search", "bread", "-k", "1", "--feedback-weight")
    best = shell(*query, "0").stdout.split()[1]
    for _ in range(10):
        shell("rate", best, "-1")
    assert shell(*query, "0").stdout.split()[1] == best
    assert shell(*query, "1").stdout.split()[1] != best
    refused = shell(*query, "nan")
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)


def test_versions_are_shown_and_restored(shell: Shell, tmp_path: Path) -> None:
    assert shell("history", ID).stdout.startswith("version 1, now\n  bake a bread\n  needs   flour, water\n")
    edit(shell, tmp_path, "Mix 1.", "Bake slowly.", "Let it cool.")
    assert f"version 2; `stepcraft memory history {ID}`" in shell("show", ID).stdout
    first, second = shell("history", ID).stdout.split("version 2, now\n")
    assert first.startswith("version 1, until 20")
    assert "  source  a book\n  1. Mix 1.\n  2. Bake.\n" in first
    assert second == "  2. Bake{+ slowly.+}\n  {+3. Let it cool+}.\n"
    assert shell("restore", ID).stdout == f"{ID}  bake a bread\n"
    assert shell("history", ID).stdout.endswith(
        "version 3, now\n  2. Bake[- slowly.-]\n  [-3. Let it cool-].\n"
    )
    shell("restore", ID, "2")
    kept = json.loads(shell("show", ID, "--json").stdout)
    assert kept["steps"] == ["Mix 1.", "Bake slowly.", "Let it cool."]
    assert len(json.loads(shell("history", ID, "--json").stdout)) == 4
    assert shell("search", "let it cool", "-k", "1").stdout.endswith("bake a bread\n")


def test_votes_and_versions_of_others_are_shown_and_restored(shell: Shell, tmp_path: Path) -> None:
    history = [{"output": "bread", "input": "flour", "steps": ["Bake."]}, {"output": "x", "steps": 5}]
    record = {**BREAD.to_dict(), "metadata": {"votes": [{"vote": 1}], "history": history}}
    (tmp_path / "others.jsonl").write_text(json.dumps(record))
    shell("import", str(tmp_path / "others.jsonl"))
    assert "votes   +1 -0\nversion 2;" in shell("show", ID).stdout
    assert shell("history", ID).stdout.startswith("version 1, of unknown date\n  bread\n")
    assert shell("restore", ID).stdout == f"{ID}  bread  (+1 -0)\n"


def test_a_version_that_there_is_not(shell: Shell) -> None:
    for arguments in (("restore", ID), ("restore", ID, "7"), ("history", "zz")):
        result = shell(*arguments)
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
