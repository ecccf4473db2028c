"""What cannot be used, by any command: one sentence with the value, and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import run

BAD = [
    ("aag ''", "the question is empty"),
    ("aag x --set max_query=1", "'max_query'"),
    ("aag x --set k=0", "k='0'"),
    ("aag x --set k=many", "k='many'"),
    ("aag x --set k", "--set 'k'"),
    ("aag x --set node_models={", "node_models='{'"),
    ("""aag x --set 'node_models={"critics":"extractive"}'""", "'critics'"),
    ("aag x --model nosuch:model", "'nosuch:model'"),
    ("aag x --model openai:gpt-5-mini", "OPENAI_API_KEY"),
    ("aag x --memory no.jsonl", "no.jsonl"),
    ("aag x --memory redis://x", "redis"),
    ("aag x --html no/page.html", "no/page.html"),
    ("aag x --html .", ". cannot be used: Is a directory"),
    ("aag x --review -m p.jsonl", "--review"),
    ("aag x --remember -m p.jsonl", "p.jsonl can only be searched"),
    ("rat x --from nosuch", "'nosuch'"),
    ("rat x --draft /dev/null", "/dev/null is empty"),
    ("rat x --draft binary.bin", "binary.bin cannot be checked: it is binary"),
    ("rpg x --kind brief", "kind='brief'"),
    ("run nosuch x", "'nosuch'"),
    ("run direct x --from web", "'sources'"),
    ("run rag x --using y", "resources"),
    ("draw aga", "'aga'"),
    ("memory import no.jsonl -m m.db", "no.jsonl"),
    ("memory import empty.jsonl -m m.db", "empty.jsonl"),
    ("memory import folder -m m.db", "SKILL.md"),
    ("memory import p.jsonl --map output -m m.db", "'output'"),
    ("memory import p.jsonl --map output=title,sorce=url -m m.db", "'sorce' is none of"),
    ("memory import p.jsonl --map tags=oven,tags=team -m m.db", "names a field twice"),
    ("memory add -m m.db", "JSON"),
    ("memory add -o tea -s Boil. -m m.db", "input is empty"),
    ("memory search x --alpha 3 -m p.jsonl", "3"),
    ("memory search x --outcome-weight nan -m p.jsonl", "nan"),
    ("memory show zz -m p.jsonl", "'zz'"),
    ("memory rate zz +1 -m p.jsonl", "'zz'"),
    ("memory count -m none.db", "none.db"),
    ("memory copy none.db m.db", "none.db"),
    ("memory export --format skills -m p.jsonl", "--format skills"),
    ("memory export folder -m p.jsonl", "--format skills"),
    ("memory export --to m.db -m p.jsonl", "m.db"),
    ("memory export --to p.jsonl -m p.jsonl", "p.jsonl is the memory"),
    ("memory build folder", "--memory"),
    ("memory build nowhere -m m.db", "nowhere"),
    ("memory build folder -m m.db --set stric=true", "stric"),
    ("memory build folder -m m.db --model no:model", "'no:model'"),
    ("memory dedupe -m none.db", "none.db"),
    ("source check corpus:nowhere tea", "nowhere"),
    ("eval run p.jsonl --methods ragg --into e", "'ragg'"),
    ("eval run nosuch --into e", "'nosuch'"),
    ("eval compare folder a b", "folder"),
    ("eval judge folder --judge m", "folder"),
]


@pytest.fixture(autouse=True)
def files(here: Path) -> None:
    (here / "folder").mkdir()
    (here / "empty.jsonl").touch()
    (here / "binary.bin").write_bytes(b"\x00\x01\x02")
    tea = '{"output": "tea", "input": "leaves", "steps": ["Boil."]}'
    (here / "p.jsonl").write_text(f'{tea}\n{{"question": "tea?"}}\n')


@pytest.mark.parametrize(("line", "value"), BAD, ids=[line for line, _ in BAD])
def test_bad_input(line: str, value: str, here: Path) -> None:
    before = sorted(here.iterdir())
    result = run(line, status=2)
    *_, last = result.stderr.splitlines()
    assert (result.stdout, last.startswith("stepcraft: ")) == ("", True)
    assert value in last
    assert sorted(here.iterdir()) == before, "nothing is left behind"


@pytest.mark.parametrize("text", ["{", "[]", b"\xff\xfe\x00"])
def test_what_is_no_procedure(text: str | bytes) -> None:
    run("memory add -m m.db", status=2, stdin=text)


@pytest.mark.parametrize(
    "line", ["", "aag", "aag x --bogus", "memory rate a 2", "rat x --draft no.md", "mcp --port x"]
)
def test_wrong_use_shows_the_usage(line: str) -> None:
    assert "Usage: " in run(line, status=2).output
