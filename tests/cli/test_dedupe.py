"""`stepcraft memory dedupe`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stepcraft.cli import app
from stepcraft.memory.files import write_jsonl
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Procedure
from tests.teas import BREAD, GREEN

LONGER = Procedure(GREEN.input, "Make a pot of  green tea", (*GREEN.steps, "Rinse the pot."), source="b.md")


@pytest.fixture
def memory(tmp_path: Path) -> str:
    with LocalMemory(tmp_path / "m.db", embeddings="none") as made:
        made.add([GREEN, LONGER, BREAD])
    return str(tmp_path / "m.db")


def run(*arguments: str, cache: Path) -> Result:
    variables = {"STEPCRAFT_EMBEDDINGS": "none", "XDG_CACHE_HOME": str(cache)}
    result = CliRunner().invoke(app, ["memory", "dedupe", *arguments], env=variables)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def test_a_dry_run_and_the_run(memory: str, tmp_path: Path):
    dry = run("--memory", memory, "--dry-run", cache=tmp_path)
    assert dry.exit_code == 0
    assert dry.stdout == (
        f"{GREEN.id[:8]}  make a pot of green tea\n"
        f"    {LONGER.id[:8]}  Make a pot of green tea  (would be merged into it)\n"
        "3 procedures, 1 pair compared: 1 would be merged, 0 would be linked\n"
    )
    assert "no language model" in dry.stderr
    done = run("--memory", memory, "--quiet", cache=tmp_path)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "(merged into it)\n3 procedures, 1 pair compared: 1 merged, 0 linked\n" in done.stdout
    with LocalMemory(memory, embeddings="none") as left:
        assert [one.id for one in left] == [GREEN.id, BREAD.id]


def test_json(memory: str, tmp_path: Path):
    result = run("--memory", memory, "--on-duplicate", "keep", "--json", cache=tmp_path)
    shown = json.loads(result.stdout)
    assert (shown["procedures"], shown["compared"], shown["linked"], shown["merged"]) == (3, 1, 1, 0)
    (change,) = shown["changes"]
    assert change["result"]["metadata"] == {"also": [LONGER.id]}


def test_what_cannot_be_done_is_said(memory: str, tmp_path: Path):
    write_jsonl([BREAD], tmp_path / "m.jsonl")
    for arguments, message in (
        (["--memory", str(tmp_path / "m.jsonl")], "can be searched, not changed"),
        (["--memory", memory, "--on-duplicate", "skip"], "'skip' cannot be used; it is merge or keep"),
        (["--memory", str(tmp_path / "none.db")], "none.db"),
        (["--memory", memory, "--model", "nonesuch:x"], "nonesuch"),
    ):
        result = run(*arguments, cache=tmp_path)
        assert result.exit_code in {1, 2}
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
