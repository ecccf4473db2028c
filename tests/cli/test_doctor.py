"""`stepcraft doctor`: each check where nothing is set up, where it works, and where it does not."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langsmith.utils import get_env_var
from typer.testing import CliRunner

from stepcraft.cli import app
from stepcraft.cli.doctor import CHECKS
from stepcraft.cli.doctor._configured import VARIABLES
from stepcraft.memory.open import open_memory
from tests.kitchen import PROCEDURES
from tests.servers.openai_replies import error, hang
from tests.servers.openai_server import OpenAIServer
from tests.servers.pages_server import Asked, PagesServer, Served

ROOT = Path(__file__).parents[2]
STEPCRAFT = [sys.executable, "-c", "from stepcraft.cli import main; main()"]
Row = dict[str, str]


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def examined(check: str) -> list[Row]:
    """What a check says; the exit status must be 1 if something is wrong, and 0 otherwise."""
    done = CliRunner().invoke(app, ["doctor", check, "--json", "--timeout", "60"])
    told = json.loads(done.stdout)
    rows: list[Row] = told["checks"]
    wrong = any(row["state"] == "wrong" for row in rows)
    assert (done.exit_code, told["ok"]) == (int(wrong), not wrong)
    assert {row["check"] for row in rows} == {check}
    return rows


def only(check: str) -> Row:
    (row,) = examined(check)
    return row


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def test_a_set_up_where_nothing_works_is_told_without_tracebacks_and_secrets(tmp_path: Path) -> None:
    (tmp_path / "langgraph.json").write_text('{"graphs": {"mine": "nowhere:graph"}}', encoding="utf-8")
    set_up = {
        "STEPCRAFT_MODEL": "openai:m",
        "OPENAI_API_KEY": "sk-abcdefghijklmnop0123456789",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{closed_port()}/v1",
        "STEPCRAFT_MODLE": "x",
        "STEPCRAFT_EMBEDDINGS": "wordlama",
        "STEPCRAFT_MEMORY": "gone.db",
        "STEPCRAFT_SOURCE": "corpus:gone",
        "STEPCRAFT_ALLOW": "docs=corpus:gone",
        "STEPCRAFT_ACCESS": "gone.toml",
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_API_KEY": "lsv2_pt_0123456789abcdef",
        "LANGSMITH_ENDPOINT": f"http://127.0.0.1:{closed_port()}",
    }
    done = subprocess.run(
        [*STEPCRAFT, "doctor", "--timeout", "60"],
        capture_output=True,
        text=True,
        env={**os.environ, **set_up, "PYTHONPATH": str(ROOT)},
        timeout=100,
        check=False,
    )
    states = rows_of(done.stdout)
    assert (done.returncode, list(states)) == (1, [*CHECKS])
    right = {"python", "packages", "sandbox"}
    assert {name for name, state in states.items() if state != "wrong"} <= right
    assert "Traceback" not in done.stdout + done.stderr
    assert "sk-abc" not in done.stdout + done.stderr
    assert "lsv2" not in done.stdout + done.stderr


def rows_of(output: str) -> dict[str, str]:
    return {name: state for state, name in re.findall(r"^(ok|missing|wrong) +(\w+)", output, re.MULTILINE)}


def test_without_any_set_up_nothing_is_wrong() -> None:
    done = CliRunner().invoke(app, ["doctor", "--timeout", "60"])
    found = rows_of(done.stdout)
    assert done.exit_code == 0
    assert list(found) == [*CHECKS]
    assert {name for name, state in found.items() if state == "missing"} - {"sandbox"} == {
        "access",
        "model",
        "source",
        "tracing",
        "server",
    }
    assert re.search(r"^\d+ ok, \d missing, 0 wrong$", done.stdout, re.MULTILINE)
    assert "-> STEPCRAFT_MODEL=" in done.stdout


def test_a_check_that_there_is_not() -> None:
    done = CliRunner().invoke(app, ["doctor", "memmory"])
    assert done.exit_code == 2
    assert "there is no check 'memmory'; there are python, packages" in done.stderr


def test_a_check_is_not_waited_for_any_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer([hang()]) as server:
        names_model(monkeypatch, server.base_url, "openai:hangs")
        began = time.monotonic()
        done = CliRunner().invoke(app, ["doctor", "model", "python", "--timeout", "1"])
        assert time.monotonic() - began < 10
    assert done.exit_code == 1
    assert "wrong    model       no answer within 1 s" in done.stdout
    assert "ok       python" in done.stdout


def package(folder: Path, name: str, version: str, *needs: str) -> None:
    """Install a package that is nothing but its metadata."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    (info / "METADATA").write_text(
        "\n".join([*lines, *(f"Requires-Dist: {one}" for one in needs)]), encoding="utf-8"
    )


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return lambda *given: package(folder, *given)


def test_python_and_packages() -> None:
    assert re.match(
        rf"Python {sys.version_info.major}\.\d+\.\d+, .+ in .+stepcraft$", only("python")["found"]
    )
    row = only("packages")
    assert row["state"] == "ok"
    assert re.search(r"langgraph \d+\.\d+.*, weaviate-client \d+\.\d+.*, grpcio \d+", row["found"])


def test_a_package_that_another_cannot_use(packages: Callable[..., None]) -> None:
    packages("grpcio", "1.60.0")
    rows = [row for row in examined("packages") if "langgraph-api" in row["found"]]
    assert [row["state"] for row in rows] == ["wrong"]
    assert re.match(r"langgraph-api .+ needs grpcio.*, and 1\.60\.0 is installed", rows[0]["found"])
    assert rows[0]["advice"].startswith('pip install "grpcio>=1.81,<1.82"')


def test_the_pair_of_server_and_weaviate_client_that_is_tested_together(
    packages: Callable[..., None],
) -> None:
    packages("weaviate-client", "4.23.1", "grpcio<1.80.0,>=1.59.5")
    packages("grpcio", "1.81.2")
    assert only("packages")["state"] == "ok"


def test_a_package_that_is_not_there(packages: Callable[..., None]) -> None:
    packages("stepcraft", "0.1.0", "no-such-package>=2", "numpy>=1", 'no-such-extra; extra == "server"')
    row = only("packages")
    assert row["state"] == "wrong"
    assert row["found"] == "stepcraft 0.1.0 needs no-such-package>=2, and it is not installed"
    assert row["advice"] == 'pip install "no-such-package>=2"'


def test_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert only("settings")["found"] == "no STEPCRAFT_ variable is set"
    monkeypatch.setenv("STEPCRAFT_MEMORY", "recipes.db")
    row = only("settings")
    assert (row["state"], row["found"]) == ("ok", "set: STEPCRAFT_MEMORY")
    (tmp_path / "langgraph.json").write_text('{"env": ".env"}', encoding="utf-8")
    (tmp_path / ".env").write_text(
        "# notes\nexport STEPCRAFT_MODEL=openai:m\nOPENAI_API_KEY=sk-0\nSTEPCRAFT_SOURCE=\n", encoding="utf-8"
    )
    row = only("settings")
    assert row["state"] == "missing"
    assert row["found"].startswith(".env sets OPENAI_API_KEY, STEPCRAFT_MODEL, which the server reads")
    monkeypatch.setenv("STEPCRAFT_MEMROY", "recipes.db")
    wrong = examined("settings")[0]
    assert wrong["found"] == "STEPCRAFT_MEMROY is set, and nothing reads it"
    assert wrong["advice"] == "did you mean STEPCRAFT_MEMORY?"


def test_prices_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRAFT_PRICES", "cheap")
    row = only("settings")
    assert row["state"] == "wrong"
    assert "cheap" in row["found"]


def test_the_variables_are_those_that_the_package_reads() -> None:
    texts = [file.read_text("utf-8") for file in (ROOT / "stepcraft").rglob("*.py")]
    named = {name for text in texts for name in re.findall(r'"(STEPCRAFT_[A-Z_]+[A-Z])"', text)}
    assert named == {*VARIABLES}
    described = re.findall(r"^# (STEPCRAFT_\w+)=", (ROOT / ".env.example").read_text("utf-8"), re.MULTILINE)
    assert {*described} == {*VARIABLES}


def names_model(monkeypatch: pytest.MonkeyPatch, base_url: str, name: str) -> None:
    """A model is built once in a process, so each test has another."""
    monkeypatch.setenv("STEPCRAFT_MODEL", name)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", base_url)


def test_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    row = only("model")
    assert row["state"] == "missing"
    assert row["found"].startswith("no language model is named")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop0123456789")
    assert only("model")["found"].endswith("OPENAI_API_KEY is set and not used")
    monkeypatch.setenv("STEPCRAFT_MODEL", "extractive")
    assert only("model")["state"] == "ok"


def test_a_model_is_asked_for_one_token(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer(["yes"]) as server:
        names_model(monkeypatch, server.base_url, "openai:works")
        row = only("model")
    assert row["state"] == "ok"
    assert re.fullmatch(r"openai:works answered in \d+\.\d s", row["found"])
    (body,) = server.bodies
    assert (body.get("max_completion_tokens") or body.get("max_tokens")) == 1


@pytest.mark.parametrize(
    ("status", "message", "state", "advice"),
    [
        (401, "Incorrect API key provided: sk-abcdefghijklmnop0123456789", "wrong", "OPENAI_API_KEY"),
        (404, "The model does not exist", "wrong", "STEPCRAFT_MODEL"),
        (429, "You exceeded your current quota", "wrong", "credit"),
        (503, "overloaded", "wrong", "provider"),
        (400, "Could not finish the message because max_tokens or model output limit was reached", "ok", ""),
    ],
)
def test_a_model_that_refuses(
    monkeypatch: pytest.MonkeyPatch, status: int, message: str, state: str, advice: str
) -> None:
    with OpenAIServer([error(status, message)]) as server:
        names_model(monkeypatch, server.base_url, f"openai:refuses-{status}")
        row = only("model")
    assert row["state"] == state
    assert advice in row["advice"]
    assert "sk-abc" not in json.dumps(row)


def test_a_model_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    names_model(monkeypatch, f"http://127.0.0.1:{closed_port()}/v1", "openai:away")
    row = only("model")
    assert row["state"] == "wrong"
    assert "OPENAI_BASE_URL" in row["advice"]


@pytest.mark.parametrize(
    ("name", "says"),
    [("nobody:m", "'nobody:m' cannot be used"), ("anthropic:m", "needs a package that is not installed")],
)
def test_a_model_of_no_provider_here(monkeypatch: pytest.MonkeyPatch, name: str, says: str) -> None:
    monkeypatch.setenv("STEPCRAFT_MODEL", name)
    row = only("model")
    assert row["state"] == "wrong"
    assert says in row["found"]


def test_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert only("embeddings")["found"] == "wordllama, 256 dimensions"
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")
    row = only("embeddings")
    assert (row["state"], row["found"][:4]) == ("ok", "none")
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "wordlama")
    row = only("embeddings")
    assert row["state"] == "wrong"
    assert "there is no embedding model 'wordlama'" in row["found"]


def test_no_embeddings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    row = only("embeddings")
    assert row["state"] == "missing"
    assert "by words alone" in row["found"]


def test_the_bundled_memory() -> None:
    row = only("memory")
    assert row["state"] == "ok"
    assert row["found"] == "the bundled procedures: 212 procedures, embeddings wordllama of 256 dimensions"


def test_a_memory_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "recipes.db")
    monkeypatch.setenv("STEPCRAFT_MEMORY", url)
    row = only("memory")
    assert (row["state"], "recipes.db" in row["found"]) == ("wrong", True)
    with open_memory(url, embeddings="none") as memory:
        row = only("memory")
        assert row["state"] == "missing"
        assert row["advice"] == f"stepcraft memory import FILE --memory {url}"
        memory.add(PROCEDURES)
    row = only("memory")
    assert row["state"] == "ok"
    assert f"{url}: {len(PROCEDURES)} procedures, embeddings none" in row["found"]
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "wordllama")
    row = only("memory")
    assert row["state"] == "wrong"
    assert "embeddings 'none', not 'wordllama'" in row["found"]


def test_memories_that_are_not_opened_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRAFT_MEMORY", "store:recipes")
    assert "in the store of the LangGraph server" in only("memory")["found"]
    monkeypatch.setenv("STEPCRAFT_MEMORY", f"weaviate+embedded://{tmp_path}/gone/Recipes")
    row = only("memory")
    assert (row["state"], f"there is no folder {tmp_path}/gone" in row["found"]) == ("wrong", True)
    (tmp_path / "gone").mkdir()
    assert only("memory")["state"] == "ok"


def test_a_memory_in_weaviate(new_collection: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_collection()
    monkeypatch.setenv("STEPCRAFT_MEMORY", url)
    row = only("memory")
    assert (row["state"], "there is no collection" in row["found"]) == ("wrong", True)
    with open_memory(url) as memory:
        memory.add(PROCEDURES)
    row = only("memory")
    assert row["state"] == "ok"
    assert row["found"].endswith(f"{len(PROCEDURES)} procedures, embeddings wordllama of 256 dimensions")
    monkeypatch.setenv("STEPCRAFT_SOURCE", url)
    assert only("source")["state"] == "ok"
    pattern = re.sub("/Test[0-9a-f]+", "/*", url)
    monkeypatch.setenv("STEPCRAFT_ALLOW", f"{pattern}; team={url}")
    assert only("allow")["state"] == "ok"


def test_a_weaviate_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"weaviate://127.0.0.1:{closed_port()}/Recipes"
    monkeypatch.setenv("STEPCRAFT_MEMORY", url)
    row = only("memory")
    assert row["state"] == "wrong"
    assert "is Weaviate running there?" in row["found"]
    monkeypatch.setenv("STEPCRAFT_ALLOW", f"{url.removesuffix('Recipes')}*")
    row = only("allow")
    assert row["state"] == "wrong"
    assert "is Weaviate running there?" in row["found"]


def test_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert only("access")["state"] == "missing"
    file = tmp_path / "access.toml"
    user = f'[users.ann]\nkeys = ["sha256:{"0" * 64}"]\ngroups = ["cooks"]\n'
    file.write_text(f"{user}[groups.cooks]\ncalls_per_day = 10\n", "utf-8")
    monkeypatch.setenv("STEPCRAFT_ACCESS", str(file))
    row = only("access")
    assert (row["state"], "set STEPCRAFT_LIMITS_DB" in row["found"]) == ("wrong", True)
    monkeypatch.setenv("STEPCRAFT_LIMITS_DB", f"sqlite:///{tmp_path}/limits.db")
    assert (only("access")["state"], only("access")["found"]) == ("ok", "users: 1, groups: 1")
    other = tmp_path / "other.toml"
    other.write_text(user, "utf-8")
    monkeypatch.setenv("STEPCRAFT_ACCESS", str(other))
    row = only("access")
    assert (row["state"], "the group 'cooks', which there is not" in row["found"]) == ("wrong", True)


def test_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert only("source")["state"] == "missing"
    docs = tmp_path / "docs"
    docs.mkdir()
    for spec, says in [
        ("corpus:docs", "holds no file that can be read"),
        ("corpus:gone", "there is no file or folder"),
        ("web:tavily", "set TAVILY_API_KEY"),
        ("nowhere:retriever", "there is no module nowhere"),
        ("docs", "is no source of evidence"),
    ]:
        monkeypatch.setenv("STEPCRAFT_SOURCE", spec)
        row = only("source")
        assert row["state"] == "wrong"
        assert says in row["found"]
    (docs / "one.md").write_text("# One", encoding="utf-8")
    (docs / "two.txt").write_text("Two", encoding="utf-8")
    monkeypatch.setenv("STEPCRAFT_SOURCE", "corpus:docs")
    assert only("source")["found"] == "corpus:docs: 2 files"
    monkeypatch.setenv("STEPCRAFT_SOURCE", "memory")
    assert only("source")["state"] == "ok"


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Turns tracing to an endpoint on; langsmith reads the variables once."""

    def turn_on(endpoint: str) -> None:
        get_env_var.cache_clear()
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", endpoint)

    get_env_var.cache_clear()
    yield turn_on
    get_env_var.cache_clear()


def test_tracing(traced: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert only("tracing")["state"] == "missing"

    def sessions(asked: Asked) -> Served:
        known = asked.headers.get("x-api-key") == "lsv2_pt_0123456789abcdef"
        return Served(b"[]" if known else b"{}", 200 if known else 401, "application/json")

    with PagesServer({"/sessions": sessions}) as server:
        traced(server.url)
        row = only("tracing")
        assert (row["state"], "there is no key" in row["found"]) == ("wrong", True)
        monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_pt_0123456789abcdef")
        traced(server.url)
        assert only("tracing")["found"] == f"{server.url}, project default"
        monkeypatch.setenv("LANGSMITH_API_KEY", "lsv2_pt_another")
        traced(server.url)
        row = only("tracing")
        assert (row["state"], row["found"]) == ("wrong", f"{server.url} refuses the key (401)")
        traced(f"{server.url}/elsewhere")
        assert only("tracing")["found"] == f"{server.url}/elsewhere answers 404"
    traced(f"http://127.0.0.1:{closed_port()}")
    row = only("tracing")
    assert (row["state"], "cannot be reached" in row["found"]) == ("wrong", True)
    assert "lsv2" not in json.dumps(row)


def test_the_server_and_its_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    versions, missing = examined("server")
    assert re.match(r"langgraph-api \d+\.\d+\.\d+, langgraph-cli \d+", versions["found"])
    assert (missing["state"], "there is no langgraph.json" in missing["found"]) == ("missing", True)
    monkeypatch.chdir(ROOT)
    served = examined("server")[1]
    assert served["state"] == "ok"
    assert served["found"].startswith("langgraph.json: aag, rat, rpg, ")


def test_a_server_that_is_too_old(packages: Callable[..., None]) -> None:
    packages("langgraph-api", "0.8.7")
    row = examined("server")[0]
    assert row["state"] == "wrong"
    assert re.search(r"needs langgraph-api>=0\.16\.6, and 0\.8\.7 is installed", row["found"])


GRAPHS = """
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

builder = StateGraph(dict).add_node("one", lambda state: state).set_entry_point("one")
bare, kept, words = builder.compile(), builder.compile(checkpointer=InMemorySaver()), "graph"
def make():
    return bare
"""


def test_graphs_that_cannot_be_served(tmp_path: Path) -> None:
    (tmp_path / "doctored.py").write_text(GRAPHS, encoding="utf-8")
    (tmp_path / "broken.py").write_text("print('noise')\nraise SystemExit('no')", encoding="utf-8")
    graphs: dict[str, Any] = {
        "bare": "doctored:bare",
        "file": {"path": "./doctored.py:bare"},
        "made": "doctored:make",
        "kept": "doctored:kept",
        "words": "doctored:words",
        "gone": "doctored:gone",
        "broken": "./broken.py:graph",
        "plain": "doctored",
    }
    config = tmp_path / "langgraph.json"
    config.write_text(json.dumps({"graphs": graphs, "auth": {"path": "nowhere:auth"}}), encoding="utf-8")
    found = "\n".join(row["found"] for row in examined("server")[1:])
    told = dict(re.findall(r"the (?:graph|auth) (\S+) cannot be served: (.+)", found))
    assert list(told) == ["kept", "words", "gone", "broken", "plain", "nowhere:auth"]
    assert told["kept"] == "it is compiled with a checkpointer; the server brings its own"
    assert told["words"] == "words is a str and no compiled graph"
    assert told["gone"].startswith("AttributeError")
    assert told["broken"] == "SystemExit: no"
    assert "No module named 'nowhere'" in told["nowhere:auth"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"graphs": {"a": 1}}'])
def test_a_langgraph_json_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "langgraph.json").write_text(text, encoding="utf-8")
    row = examined("server")[1]
    assert row["state"] == "wrong"
    assert row["found"].startswith("langgraph.json cannot be read: ")


def test_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.environ["PATH"]
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    row = only("sandbox")
    assert (row["state"], row["found"]) == ("missing", "bubblewrap is not installed (no `bwrap` on the PATH)")
    assert "apt-get install bubblewrap" in row["advice"]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{path}")
    refusing = tmp_path / "bin/bwrap"
    refusing.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n", encoding="utf-8"
    )
    refusing.chmod(0o755)
    row = only("sandbox")
    assert (row["state"], "Permission denied" in row["found"]) == ("wrong", True)


def test_a_sandbox_that_works() -> None:
    if not shutil.which("bwrap"):
        (pytest.fail if os.environ.get("CI") else pytest.skip)("bubblewrap is not installed")
    row = only("sandbox")
    assert row["state"] == "ok"
    assert row["found"].startswith("generated programs run in bubblewrap, Python")


def test_what_a_run_may_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert only("allow")["found"].endswith("STEPCRAFT_ALLOW is not set")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/one.md").write_text("# One", encoding="utf-8")
    there = [
        f"docs=corpus:{tmp_path}/docs",
        f"corpus:{tmp_path}/docs",
        f"memory:{tmp_path}/docs/*.db",
        f"corpus:{tmp_path}/do*",
        "store:team/*",
        "model:openai:gpt-5*",
        "embeddings:openai:*",
        "weaviate://*/Docs",
        "!instructions",
    ]
    monkeypatch.setenv("STEPCRAFT_ALLOW", "; ".join(there))
    row = only("allow")
    assert (row["state"], row["found"]) == ("ok", f"runs may also name {'; '.join(there)}")


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("corpus:/gone/docs", "there is no file or folder /gone/docs"),
        ("memory:/gone/*.db", "there is no file or folder /gone"),
        ("docs=corpus:/gone", "there is no file or folder /gone"),
        ("mine=nowhere:make", "there is no module nowhere"),
        ("web:tavily", "set TAVILY_API_KEY"),
        ("model:anthropic:*", "langchain-anthropic"),
        ("nonsense", "STEPCRAFT_ALLOW has the entry 'nonsense', which is not understood"),
    ],
)
def test_an_entry_that_names_what_is_not_there(
    monkeypatch: pytest.MonkeyPatch, entry: str, says: str
) -> None:
    monkeypatch.setenv("STEPCRAFT_ALLOW", f"store:team/*; {entry}")
    row = only("allow")
    assert row["state"] == "wrong"
    assert says in row["found"].replace("_", "-") or says in row["found"]
