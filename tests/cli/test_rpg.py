"""`stepcraft rpg`: progress, output, and passages from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stepcraft import RpgContext
from stepcraft.cli import app
from tests.graphs.killed import Dying
from tests.report.reports import Reader
from tests.servers.openai_server import OpenAIServer

QUESTION = "Who built the old bridge of Mostar?"
PASSAGES: list[dict[str, Any]] = [
    {"id": "a", "title": "Stari Most", "text": "The old bridge of Mostar was built by Mimar Haldruvin. It has one arch."},
    {"id": "b", "title": "Mostar", "text": "Mostar lies on the Neretva.", "source": "https://example.org/mostar"},
]  # fmt: skip


def stepcraft(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "passages.jsonl"
    file.write_text("\n".join(map(json.dumps, PASSAGES)), "utf-8")
    return file


def steps(result: Any) -> list[str]:
    """Return the lines of progress, without their times."""
    return [line.split("s  ", 1)[1] for line in result.stderr.splitlines() if " s  " in line]


def test_plan_sentences_and_segment_while_it_works_and_then_the_answer(file: Path) -> None:
    result = stepcraft("rpg", QUESTION, "--passages", str(file), "--kind", "multihop")
    assert result.exit_code == 0
    answer, _, used = result.stdout.partition("\n\nEvidence:\n")
    assert "Mimar Haldruvin" in answer
    assert used.splitlines()[0] == "  [1]  Stari Most"
    told = steps(result)
    assert told[0] == "begin"
    assert told[1] == f"plan      {QUESTION}"
    assert told[2].startswith("select    ")
    assert told[2].endswith(("sentence", "sentences"))
    chosen = [line for line in told if line.startswith("select      ")]
    assert chosen[0].endswith("The old bridge of Mostar was built by Mimar Haldruvin.")
    assert any(line.startswith("answer    ") and "Mimar Haldruvin" in line for line in told)
    assert told[-2:] == ["combine", "trace     1 sentence rests on evidence."]


def test_topics_and_their_segments_while_it_works(file: Path) -> None:
    told = steps(stepcraft("rpg", QUESTION, "--passages", str(file), "--kind", "long"))
    assert told == [
        "begin",
        "outline   1 topic",
        f"outline     {QUESTION}",
        "segment   The old bridge of Mostar was built by Mimar Haldruvin [1]. It has one arch [1].",
        "gather    1 segment",
        "combine",
        "trace     Each of the 2 sentences rests on evidence.",
    ]


def test_a_topic_without_evidence_while_it_works(file: Path) -> None:
    given = ["--passages", str(file), "--set", "threshold=1e9"]
    assert f"pass_over  nothing was found on: {QUESTION}" in steps(stepcraft("rpg", QUESTION, *given))
    long = steps(stepcraft("rpg", QUESTION, *given, "--kind", "long"))
    assert f"segment   nothing was written on: {QUESTION}" in long


@pytest.mark.parametrize("citations", ["ids", "inline"])
def test_how_many_sentences_rest_on_evidence_is_said_below_the_answer(file: Path, citations: str) -> None:
    told = stepcraft("rpg", QUESTION, "--passages", str(file), "--citations", citations).stdout
    answer, counts, _ = told.split("\n\n")
    assert ("[1]" in answer) == (citations == "inline")
    assert counts == "Each of the 2 sentences rests on evidence."


def test_an_answer_without_evidence_is_said_to_have_none(file: Path) -> None:
    told = stepcraft("rpg", QUESTION, "--passages", str(file), "--set", "threshold=1e9").stdout
    assert told.endswith("\n\nNo sentence rests on evidence.\n")


def test_the_loop_of_the_paper(file: Path) -> None:
    result = stepcraft("rpg", QUESTION, "--passages", str(file), "--set", "paper=true")
    assert [line.split()[0] for line in steps(result) if "  select      " not in f"  {line}"] == [
        "begin", "plan", "select", "answer", "plan", "combine", "trace",
    ]  # fmt: skip


def test_what_a_check_found(file: Path) -> None:
    replies = {
        "outline": "short\n- the builder of the old bridge of Mostar",
        "answer": "Mimar Haldruvin built it [1]. It has two arches [1].",
        "check": "2",
    }
    with OpenAIServer(Dying(lambda node, _: replies[node], RpgContext())) as server:
        given = ["--passages", str(file), "--model", "openai:m", "--set", "check=flag"]
        env = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": server.base_url}
        result = CliRunner().invoke(app, ["rpg", QUESTION, *given], env=env)
    assert steps(result)[-3:] == [
        "trace     Each of the 2 sentences rests on evidence.",
        "check     1 sentence not borne out",
        "trace     1 sentence rests on evidence, 1 does not.",
    ]
    assert "\n\n1 sentence rests on evidence, 1 does not.\n\nEvidence:\n" in result.stdout


def test_from_a_source(tmp_path: Path) -> None:
    (tmp_path / "bridge.md").write_text(f"# Stari Most\n\n{PASSAGES[0]['text']}", "utf-8")
    given = ["--from", f"corpus:{tmp_path}", "--kind", "short", "--set", "k=1"]
    result = stepcraft("rpg", QUESTION, *given)
    assert result.exit_code == 0
    assert "retrieve  1 passage\n" in result.stderr
    assert "Stari Most  (" in result.stdout
    assert "bridge.md:" in result.stdout


def test_json_and_settings(file: Path) -> None:
    given = ["--json", "--kind", "short", "--set", "plan=false", "--set", "select=false"]
    told = json.loads(stepcraft("rpg", QUESTION, "--passages", str(file), *given).stdout)
    assert set(told) == {"answer", "sentences", "plans", "segments", "evidence", "warnings", "usage"}
    [segment] = told["segments"]
    assert [one["text"] for one in segment["sentences"]] == [passage["text"] for passage in PASSAGES]
    assert "plan" not in told["usage"]["nodes"]


def test_the_page(file: Path, tmp_path: Path) -> None:
    html = tmp_path / "page.html"
    assert stepcraft("rpg", QUESTION, "--passages", str(file), "--html", str(html)).exit_code == 0
    seen = Reader(html.read_text("utf-8"))
    assert seen.texts("h1") == [QUESTION]
    assert any("Mimar Haldruvin" in quote for quote in seen.texts("blockquote"))
    assert seen.all("button", "mark")


def test_strict_wants_evidence_for_every_segment(file: Path) -> None:
    assert stepcraft("rpg", QUESTION, "--passages", str(file), "--strict", "--kind", "short").exit_code == 0
    bare = stepcraft("rpg", QUESTION, "--passages", str(file), "--strict", "--set", "threshold=1e9")
    assert bare.exit_code == 1
    assert "select    no sentence fits" in bare.stderr
    assert bare.stderr.splitlines()[-1].endswith(
        "1 of 1 segments rest on no evidence, and --strict asks for all: No evidence was found for this."
    )


def test_passages_of_a_text_stand_between_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "passages.txt"
    file.write_text("The old bridge of Mostar was\nbuilt by Haldruvin.\n \n\nIt fell.\n", "utf-8")
    told = json.loads(
        stepcraft("rpg", QUESTION, "--passages", str(file), "--set", "select=false", "--json").stdout
    )
    assert [passage["text"] for passage in told["evidence"]] == [
        "The old bridge of Mostar was\nbuilt by Haldruvin.",
        "It fell.",
    ]


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("p.jsonl", b'{"title": "x"}', "{file}:1 has no text; give each passage one under 'text'"),
        ("p.jsonl", b'{"text": "x"}\n{"text": 7}', "{file}:2 has no text"),
        ("p.jsonl", b'{"text": "x"}\n{"te', "{file}:2 cannot be read: it is not JSON"),
        ("p.txt", b"\xff\xfe\x00x", "{file} is not in UTF-8; save it as UTF-8"),
        ("p.pdf", b"x", "{file} is not a kind of file that is read; name a .jsonl, .json, .csv or .txt file"),
        ("p.txt", None, "there is no file {file}; check the name"),
        ("p.jsonl", None, "there is no file {file}; check the name"),
    ],
)
def test_passages_that_cannot_be_read(
    tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    result = stepcraft("rpg", QUESTION, "--passages", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"stepcraft: {sentence.format(file=file)}")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--kind", "brief"], "kind='brief' cannot be used: it should be one of auto, long, short, multihop"),
        (["--citations", "foot"], "citations='foot' cannot be used: it should be 'ids' or 'inline'"),
        (["--from", "corpus:docs"], "--passages {file} leaves nothing to search for; leave out --from"),
        (["--set", "cycles=2"], "there is no setting 'cycles'; did you mean 'max_cycles'?"),
    ],
)
def test_bad_input(file: Path, arguments: list[str], sentence: str) -> None:
    result = stepcraft("rpg", QUESTION, "--passages", str(file), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"stepcraft: {sentence.format(file=file)}")


def test_draw() -> None:
    drawn = stepcraft("draw", "rpg").stdout
    for node in ("begin", "retrieve", "plan", "select", "answer", "combine"):
        assert f"  {node} -" in drawn
