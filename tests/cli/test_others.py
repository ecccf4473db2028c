"""`stepcraft source check`, `doctor`, `server key`, `mcp`, and `eval compare`."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stepcraft.cli.options import check_writable, tags_of
from tests.cli.shell import STEPCRAFT, data, run
from tests.servers.openai_server import OpenAIServer
from tests.servers.ports import Ports, listens

if TYPE_CHECKING:
    from mcp import StdioServerParameters


@pytest.fixture(autouse=True)
def tea(here: Path) -> None:
    (here / "tea.md").write_text("# Tea\n\n## Green [bold]\nSteep for two minutes.\nNot longer.\n")


def test_a_source_shows_what_it_finds(here: Path) -> None:
    result = run("source check corpus:tea.md 'green tea'")
    assert result.stdout == "1.000  Tea › Green [bold]  (tea.md:4)\n       Steep for two minutes.\n"
    (passage,) = data("source check corpus:tea.md 'green tea' -k 3")
    assert passage["text"] == "Steep for two minutes.\nNot longer."
    assert run("source check corpus:tea.md potatoes").stderr == "nothing found\n"
    (here / "data").write_bytes(b"\0")
    for query in ("'green tea'", "potatoes"):
        assert "data: it is binary" in run(f"source check corpus:tea.md,data {query}").stderr


def test_the_files_of_a_corpus_are_listed(here: Path) -> None:
    (here / "data.txt").write_bytes(b"\0")
    (here / ".notes").write_text("")
    result = run("source check corpus:. --files")
    assert result.stdout.splitlines() == [
        "problem   data.txt: it is binary",
        "read      tea.md",
        "left out  .notes: it is hidden",
    ]
    assert result.stderr == "1 problem, 1 read, 1 left out\n"
    assert [each["state"] for each in data("source check corpus:. --files")] == [
        "problem",
        "read",
        "left out",
    ]
    assert "data.txt: it is binary" in run("source check corpus:. potatoes").stderr
    assert (
        "name a query or --files" in run("source check corpus:. x --files --json", status=2).stderr
    )
    assert "only a corpus" in run("source check memory --files", status=2).stderr
    assert "--files" in run("source check corpus:.", status=2).stderr


def test_modules_of_the_folder_are_sources(here: Path) -> None:
    (here / "own_source.py").write_text("from tests.sources.own import fixed\n")
    assert "Tea of kind" in run("source check own_source:fixed tea").stdout
    assert "Tea of kind" in run("run rag 'Which teas?' --from own_source:fixed").stdout
    run("source check tests.sources.own:failing tea", status=1)


def test_a_source_may_stream_anything(here: Path) -> None:
    (here / "own_tool.py").write_text(
        "from langchain_core.tools import tool\n"
        "from langgraph.config import get_stream_writer\n\n\n"
        "@tool\n"
        "def search(query: str) -> str:\n"
        '    """Search."""\n'
        '    get_stream_writer()(f"Searching {query}")\n'
        '    return "Green tea steeps for two minutes."\n'
    )
    assert (
        "two minutes"
        in run("run rag 'How long does green tea steep?' --from own_tool:search").stdout
    )


def test_the_doctor_lists_what_is_installed_despite_a_broken_package(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "gone-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(here)
    assert "langgraph " in run("doctor --from corpus:tea.md").stdout


def test_the_doctor_shows_the_version_that_is_imported(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, version in (("a", 1), ("b", 2)):
        metadata = here / folder / f"langteas-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True)
        metadata.write_text(f"Name: langteas\nVersion: {version}\n")
        monkeypatch.syspath_prepend(here / folder)
    shown = run("doctor --from corpus:tea.md").stdout
    assert ("langteas 2\n" in shown, shown.count("langteas")) == (True, 1)


def test_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "opensesame")
    with OpenAIServer(["ready"]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        result = run("doctor --model openai:doctor --from corpus:tea.md")
    for part in ("langgraph ", f"OPENAI_BASE_URL={server.base_url}", "'ready'", "in corpus:tea.md"):
        assert part in result.stdout
    assert "opensesame" not in result.output
    broken = run("doctor --model nosuch:m --memory none.db", status=1).stdout
    assert broken.count("FAILED") == 2
    assert "none.db" in broken
    monkeypatch.setenv("STEPCRAFT_SOURCE", "corpus:tea.md")
    assert "none.db does not exist" in run("doctor --memory none.db", status=1).stdout


def test_the_doctor_shows_no_secret_whatever_its_name_ends_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY_2", "LANGSMITH_TOKEN_EU", "WEAVIATE_APIKEY"):
        monkeypatch.setenv(name, f"opensesame of {name}")
    monkeypatch.setenv("OPENAI_MAX_TOKENS", "500")
    monkeypatch.setenv("LANGGRAPH_KEYS_FILE", "keys.toml")
    shown = run("doctor --from corpus:tea.md").stdout
    assert "opensesame" not in shown
    for line in ("OPENAI_API_KEY_2=***", "OPENAI_MAX_TOKENS=500", "LANGGRAPH_KEYS_FILE=keys.toml"):
        assert line in shown.splitlines()


def test_a_link_to_a_file_that_is_written_later_stays(here: Path) -> None:
    link, file = here / "report.html", here / "www.html"
    link.symlink_to(file.name)
    check_writable(link)
    assert (link.is_symlink(), file.exists()) == (True, False)
    file.write_text("old")
    check_writable(link, here / "new.html")
    assert (link.read_text(), (here / "new.html").exists()) == ("old", False)


def test_a_tag_has_one_value(here: Path) -> None:
    assert tags_of(["team=a", "product=a", "team = a"]) == {"team": "a", "product": "a"}
    (here / "p.jsonl").write_text('{"output": "tea", "input": "leaves", "steps": ["Boil."]}')
    result = run("memory search tea -m p.jsonl --where team=a --where team=b", status=2)
    assert "the tag 'team' has two values, 'a' and 'b'; give it one" in result.stderr


def test_a_key_is_shown_with_its_table() -> None:
    secret, _, table, keys = run("server key 'A\"na'").stdout.splitlines()
    assert secret.startswith("sk-")
    assert table == '[users."A\\"na"]'
    assert keys.startswith('keys = ["sha256:')


async def ask_over_mcp(server: StdioServerParameters | str) -> None:
    from mcp import Client  # noqa: PLC0415 - takes a second

    async with Client(server) as session:
        names = {tool.name for tool in (await session.list_tools()).tools}
        reply = await session.call_tool("rat", {"question": "How long does green tea steep?"})
    assert {"aag", "rat", "rpg", "search_procedures"} <= names
    assert "two minutes" in str(reply.content[0])


async def test_graphs_and_the_memory_are_served_over_stdio_and_http(here: Path) -> None:
    from mcp import StdioServerParameters  # noqa: PLC0415 - takes a second

    command = [*STEPCRAFT, "mcp", "--from", "corpus:tea.md"]
    await ask_over_mcp(StdioServerParameters(command=command[0], args=command[1:], cwd=here))
    with Ports(1) as (port,):
        served = [*command, "--http", "--port", str(port)]
        server = await asyncio.create_subprocess_exec(*served, cwd=here)
        try:
            while not listens(port):
                assert server.returncode is None
                await asyncio.sleep(0.1)
            await ask_over_mcp(f"http://127.0.0.1:{port}/mcp")
        finally:
            server.kill()
            await server.wait()


def test_two_methods_are_compared(here: Path) -> None:
    question = {"id": "steep", "question": "How long?", "contains": ["two minutes"]}
    (here / "q.jsonl").write_text(json.dumps(question))
    run("eval run q.jsonl --methods rag,direct --from corpus:tea.md --allow-keyless --quiet")
    shown = run("eval compare eval rag direct").stdout
    assert shown.startswith("rag against direct, samples: 1\n")
    assert "no sample differs in contains" in shown


def test_questions_of_an_earlier_run_are_named_as_they_count(here: Path) -> None:
    lines = [json.dumps({"id": name, "question": "How long?", "answer": "2"}) for name in "ab"]
    command = "eval run q.jsonl --methods direct --allow-keyless --quiet"
    (here / "q.jsonl").write_text("\n".join(lines))
    assert "not asked now" not in run(command).stderr
    (here / "q.jsonl").write_text(lines[1])
    assert "eval also has answers to questions that were not asked now, such as 'a'" in (
        run(command).stderr
    )


def test_the_directory_of_an_evaluation_may_be_in_the_home_directory(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.setenv("USERPROFILE", str(here))
    (here / "q.jsonl").write_text(json.dumps({"question": "How long?", "answer": "2"}))
    run("eval run q.jsonl --methods direct --allow-keyless --quiet --into=~/e")
    assert (here / "e" / "samples.jsonl").exists()
