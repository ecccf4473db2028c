"""No message, warning, trace label, report or line of the command line shows a secret."""

from __future__ import annotations

import ast
import base64
import inspect
import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote_plus

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.store.memory import InMemoryStore
from typer.testing import CliRunner

from stepcraft import errors, get_graph, open_memory, open_source
from stepcraft.cli import app
from stepcraft.errors import AddReport, AddStopped, NoAnswer, StepcraftError
from stepcraft.graphs.baselines import build_rag
from stepcraft.graphs.compile import resources_of
from stepcraft.graphs.registry import GRAPHS, context_of
from stepcraft.memory.files import check_file, import_file, read_all, write_jsonl
from stepcraft.memory.procedure import Procedure
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.models.resolve import checked_model, resolve_model
from stepcraft.policy import Policy
from stepcraft.report import page
from stepcraft.rerank.resolve import resolve_reranker
from stepcraft.secrets import excerpt, redacted, without_secrets
from stepcraft.sources.web.fetch import Fetcher
from tests.kitchen import PROCEDURES
from tests.scripted import ScriptedModel

PACKAGE = Path(errors.__file__).parent
CLASSES = [
    kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, StepcraftError)
]
LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
BODIES = st.text(LETTERS, min_size=20, max_size=44).map(lambda text: f"Zq7{text}")
"""As providers make them. The beginning keeps them apart from words of the messages."""
PASSWORDS = st.text(LETTERS + "@/:!$%+=~-_.", min_size=4, max_size=20).map(lambda text: f"Zq7{text}")
VALUES = st.text(LETTERS + "@/:!$%+=~-_.{}[]()'\"\\&*^#;,<>|é漢", min_size=5, max_size=30).map(
    lambda text: f"Zq7{text}"
)
PREFIXES = [
    *("sk-", "sk-proj-", "sk-ant-api03-", "pk-", "lsv2_pt_", "ghp_", "gho_", "github_pat_", "xoxb-", "AIza", "hf_", "gsk_"),
    *("glpat-", "tvly-", "sk_live_", "nvapi-", "eyJ"),
]  # fmt: skip
HEADERS = ["Authorization: Bearer ", "Authorization: Basic ", "Bearer ", "{'Authorization': 'Bearer "]
SCHEMES = ["https", "postgres", "weaviate", "redis", "mongodb+srv", "weaviate+cloud", "file", "socks5h"]
NAMES = ["key", "api_key", "apikey", "access_token", "token", "password", "secret", "client_secret", "sig", "X-Amz-Signature"]  # fmt: skip
VARIABLES = ["PANTRY_KEY", "PANTRY_TOKEN", "pantry_secret", "PantryPassword", "MY_KEYS", "TOKEN"]


@st.composite
def held(draw: st.DrawFn) -> tuple[str, str]:
    """A text that holds a secret in a position that tells it, and the secret."""
    kind = draw(st.sampled_from(["user", "query", "header", "prefix"]))
    body = draw(BODIES)
    if kind == "user":
        body = draw(PASSWORDS)
        return f"{draw(st.sampled_from(SCHEMES))}://cook:{body}@kitchen.example/x", body
    if kind == "query":
        return f"https://kitchen.example/x?a=b&{draw(st.sampled_from(NAMES))}={body}&c=d", body
    if kind == "header":
        return draw(st.sampled_from(HEADERS)) + body, body
    return draw(st.sampled_from(PREFIXES)) + body, body


def shows(text: str, secret: str) -> bool:
    """Whether a text shows the secret, or so much of it that it helps."""
    return secret[:8] in text


@example(("{'Authorization': 'Bearer Zq700000000000000000000", "Zq700000000000000000000"), "", "")
@given(held(), st.text(max_size=30), st.text(max_size=30))
def test_a_secret_is_masked_wherever_it_stands(held: tuple[str, str], before: str, after: str) -> None:
    text, secret = held
    assume(secret[:8] not in before + after)
    for whole in (
        text,
        f"{before} {text} {after}",
        f"it failed: {text!r}",
        json.dumps({"a": [text]}),
        f"x?u={quote_plus(text)}",
    ):
        masked = without_secrets(whole)
        assert not shows(masked, secret)
        assert "***" in masked
        assert without_secrets(masked) == masked


@given(VALUES, st.sampled_from(VARIABLES), st.text(max_size=20))
def test_the_value_of_a_variable_is_masked(value: str, name: str, around: str) -> None:
    assume(value.strip() == value)
    with patch.dict(os.environ, {name: value}):
        for text in (
            f"{around} {value} {around}",
            f"{value!r}",
            json.dumps(value),
            f"x-{value}-x",
            excerpt([value]),
        ):
            masked = without_secrets(text)
            assert value not in masked
            assert without_secrets(masked) == masked
        assert redacted({"a": [{value: (value, 1, None)}]}) == {"a": [{"***": ["***", 1, None]}]}


@given(
    st.text(),
    st.lists(
        st.sampled_from(["://", "@", "key=", "?", "&", "sk-1", "Bearer ", "eyJ", ":", "/", "***", "token"])
    ),
)
def test_masking_is_idempotent(text: str, parts: list[str]) -> None:
    with patch.dict(os.environ, {"PANTRY_KEY": "sesame", "OTHER_TOKEN": "oatmeal-with-milk"}):
        for whole in (
            text,
            "".join(parts),
            text.join(parts),
            "sesame".join(parts),
            "oatmeal-with-milk".join(parts),
        ):
            masked = without_secrets(whole)
            assert without_secrets(masked) == masked


def test_short_values_are_masked_as_whole_words_and_settings_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    given_ = {"A_KEY": "rye1", "B_TOKEN": "abc", "C_SECRET": "test", "MAX_TOKENS": "4096", "D_PASSWORD": "true", "E_PASSWORD": "oatmeal1"}  # fmt: skip
    for name, value in given_.items():
        monkeypatch.setenv(name, value)
    text = "rye1 rye12 'rye1' abc test true 4096 oatmeal1s"
    assert without_secrets(text) == "*** rye12 '***' abc test true 4096 ***s"


def test_basic_credentials_without_a_header() -> None:
    coded = base64.b64encode(b"cook:sesame").decode()
    assert without_secrets(f"Basic {coded}") == "Basic ***"


ORDINARY = [
    "Skill-based routing of a key-value store; key-holders, pk-4 schools, sk-learn, task-123456 and desk-2024.",
    'token = next(tokens); password = getpass("Password: "); max_tokens=4096; sorted(items, key=len)',
    "def login(password: str, token=None) -> Token: return authenticate(password, api_key=settings.api_key)",
    "<div class='sk-fading-circle sk-cube-grid'>; ALTER TABLE t ADD CONSTRAINT pk_customer_id PRIMARY KEY (id);",
    "HF_HUB_ENABLE_HF_TRANSFER uses hf_transfer and hf_hub_download; npm_config_registry; import key_value",
    "See https://medium.com/@user/post, https://unpkg.com/@scope/pkg@1.0.0 and https://x/?u=https%3A%2F%2Fa.b%2F%40c.",
    "https://example.org/search?q=key&page=2&lang=en#token and https://example.org/a?keyword=rye&monkey=1&author=me",
    "Write to cook@example.org; https://example.org:8443/a@b; ssh example.org:22; C:/users/@x/a@b; //comment: me@example.org",
    "Basic understanding of bearer bonds; the bearer of news; Bearer tokens; Basic instructions for beginners.",
    "weaviate://localhost:8080/Recipes?grpc=50051&tenant=a; corpus:docs/*.md; file:///srv/data/x.db; C:\\keys\\a.txt",
    "The secret: three spoons of salt. Password: none needed. Token: a piece of text. key: value",
    "Ein Schl\u00fcssel, \u5bc6\u94a5: \u4e09\u52fa\u76d0, \u043a\u043b\u044e\u0447=\u0434\u0430",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_left_alone(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if "PANTRY" in name.upper()]:
        monkeypatch.delenv(name)
    assert without_secrets(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        *("a", "@", ":", "/", "://", "://a:", "://a:b@", "://a:1/", "https://", "?key=", "&key=a", "&amp;", "sk-", "sk-1"),
        *("eyJ", "eyJaaaaaaaa.", "Bearer ", "basic aaaaaaaa ", "%3A%2F%2F", "%3F", "%26key%3Da","%3A%2F%2Fa%40", "bearer+", "authorization: ", "token=", 'token:"a1', "key: ", "***"),
        *("ghp_", "xoxb-aaaaaa.", "AKIA", "'", '"', "-", "_", "%", "\n", "sesame ", "oatmeal-with-milk", "oatmeal-with-mil"),
    ],
)  # fmt: skip
def test_time_is_linear(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANTRY_KEY", "sesame")
    monkeypatch.setenv("OTHER_TOKEN", "oatmeal-with-milk")
    text = piece * (200_000 // len(piece))

    def seconds() -> float:
        began = time.thread_time()
        without_secrets(text)
        return time.thread_time() - began

    assert any(seconds() < 0.5 for _ in range(3)), "a busy machine takes up to twice the time"


Site = tuple[str, int, int]


def raise_sites() -> set[Site]:
    """Where the package raises its own errors: the file, first and last line of each `raise`."""
    names = {kind.__name__ for kind in CLASSES}
    found: set[Site] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                called = node.exc.func
                name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                if name in names:
                    found.add((str(path.relative_to(PACKAGE)), node.lineno, node.end_lineno or node.lineno))
    return found


@given(held())
def test_every_error_masks_its_message(held: tuple[str, str]) -> None:
    """Whatever is raised passes through the constructor, at each of the places that `raise_sites` finds."""
    text, secret = held
    for kind in CLASSES:
        error = kind(text, AddReport(), 1, ["a"]) if kind is AddStopped else kind(f"it failed: {text}")
        assert not shows(f"{error} {error!r} {error.args}", secret)


def refuse(text: str) -> Callable[..., Any]:
    def failing(*_: object, **__: object) -> Any:
        raise RuntimeError(f"the provider said: {text}")

    return failing


class Refusing(BaseRetriever):
    """A retriever whose server repeats the key in its error."""

    text: str

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        raise RuntimeError(f"{self.text} is no key of this server")


class BrokenStore(InMemoryStore):
    """A store whose driver shows its connection string."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def batch(self, ops: Any) -> Any:
        raise RuntimeError(f"cannot connect to {self._text}")


class SecretEmbeddings:
    """Embeddings whose provider repeats the key."""

    model = "rye"

    def __init__(self, text: str) -> None:
        self.embed_documents = self.embed_query = refuse(text)


def attempts(text: str, folder: Path) -> Iterator[Callable[[], Any]]:  # noqa: C901 - a list of calls
    """Calls of the package that fail, each with a text from outside in its message."""
    short = "kitchen" if "/" in text else text
    for named in (
        text, f"{short}.jsonl", f"{short}.db", f"{folder}/{short}.csv", f"{folder}/{short}/x.db", f"redis:{text}",
        f"weaviate://cook:{text}@h/C", f"weaviate://127.0.0.1:1/C?{text}", f"weaviate://127.0.0.1:1/{text}",
        f"weaviate://127.0.0.1:1/C?grpc={text}", f"weaviate://127.0.0.1:1/C?quantizer={text}", f"weaviate://h:{text}/C",
        f"weaviate://127.0.0.1:1/C?tls={text}", f"weaviate+cloud:///{text}", f"weaviate+embedded://{text}",
        f"weaviate+embedded:///{folder}/C?binary={text}", f"store:{text}", f"file://{text}.db", f"~{short}/a.db",
    ):  # fmt: skip
        yield lambda named=named: open_memory(named, create=False)
        yield lambda named=named: open_source(f"memory:{named}").invoke("rye")
        yield lambda named=named: open_source(named).invoke("rye")
        yield lambda named=named: Policy.of("").check("memory", named, [])
    for spec in (
        f"corpus:{short}",
        f"corpus:{text}",
        f"web:{text}",
        f"web:searxng+{text}",
        f"{short}:x",
        f"os:{text}",
    ):
        yield lambda spec=spec: open_source(spec).invoke("rye")
    yield lambda: Policy.of(f"{text}")
    yield lambda: open_memory(f"{folder}/new.db", embeddings=text)
    yield lambda: open_memory(f"{folder}/new.db", template=text)
    yield lambda: open_memory("store:a", store=BrokenStore(text)).count()
    yield lambda: open_memory("store:a", store=BrokenStore(text)).add(PROCEDURES)
    yield lambda: open_memory(f"{folder}/kitchen.jsonl").delete([text])
    yield lambda: open_memory(f"{folder}/other.db", embeddings=SecretEmbeddings(text)).add(PROCEDURES)
    for resolve in (resolve_model, resolve_embeddings, resolve_reranker, checked_model, get_graph):
        yield lambda resolve=resolve: resolve(text)
        yield lambda resolve=resolve: resolve({text: text})
    yield lambda: resolve_reranker(f"cross-encoder:{text}")
    for wrong in (
        {"steps": text},
        {"output": {text: text}},
        {"id": text},
        {"metadata": text},
        {"source": [text]},
        {text: text},
    ):
        yield lambda wrong=wrong: Procedure.from_dict({"output": "a", "input": "b", "steps": ["c"], **wrong})
    for name in ("wrong.jsonl", "wrong.json", "wrong.csv", f"{short}.txt"):
        (folder / name).write_text(f"{text}\n{text}", "utf-8", "replace")
        yield lambda name=name: read_all(folder / name)
        yield lambda name=name: check_file(folder / name)
        yield lambda name=name: import_file(
            open_memory(f"{folder}/kitchen.db"), folder / name, fields={text: text}
        )
    yield lambda: write_jsonl(PROCEDURES, folder / "none" / short)
    yield lambda: page(text, {}, {}, [])
    for url in (text, f"http://cook:{text}@127.0.0.1/", f"http://127.0.0.1/{text}", f"ftp://{text}"):
        yield lambda url=url: Fetcher().fetch(url)
    for graph in GRAPHS:
        context = context_of(graph)
        for wrong in (
            {text: text},
            {"model": text},
            {"temperature": text},
            {"node_models": {text: text}},
            {"max_calls": [text]},
            {"retriever": text},
            {"memory": text},
        ):
            yield lambda context=context, wrong=wrong: context(**wrong)
    for wrong in (
        {"question": [1, text]},
        {"question": {text: text}},
        {"question": "x", "passages": [{text: text}]},
        {"question": "x", "passages": text},
        {"question": "x", "kind": text},
    ):
        for graph in ("rpg", "rag"):
            source = {"retriever": "memory"}
            yield lambda graph=graph, wrong=wrong, source=source: get_graph(graph).invoke(
                wrong, context=source
            )


@contextmanager
def logged() -> Iterator[list[str]]:
    """What the package logs and warns of meanwhile."""
    found: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("stepcraft").addHandler(handler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
        found += [str(warning.message) for warning in caught]
    logging.getLogger("stepcraft").removeHandler(handler)


def test_no_error_shows_a_secret(tmp_path: Path) -> None:
    reached: set[tuple[str, int]] = set()
    messages: set[str] = set()
    secrets: set[str] = set()
    write_jsonl(PROCEDURES, tmp_path / "kitchen.jsonl")

    @settings(max_examples=25)
    @given(held())
    def check(held: tuple[str, str]) -> None:
        text, secret = held
        secrets.add(secret)
        for attempt in attempts(text, tmp_path):
            with logged() as told:
                try:
                    attempt()
                except StepcraftError as error:
                    told.append(f"{error} {error!r}")
                    at = error.__traceback__
                    while at:
                        name = at.tb_frame.f_code.co_filename
                        if name.startswith(str(PACKAGE)):
                            reached.add((str(Path(name).relative_to(PACKAGE)), at.tb_lineno))
                        at = at.tb_next
                except Exception as error:  # reported by the command line, see below
                    told.append(without_secrets(str(error)))
            messages.update(told)
            assert [line for line in told if shows(line, secret)] == []

    check()
    sites = [
        site
        for site in raise_sites()
        if any((site[0], line) in reached for line in range(site[1], site[2] + 1))
    ]
    assert (len(messages) >= 500, len(secrets) >= 15) == (True, True)
    assert len(sites) >= 55


@settings(max_examples=10)
@given(held())
def test_no_run_shows_a_secret(held: tuple[str, str]) -> None:
    text, secret = held
    failing = ScriptedModel(lambda _node, _prompt: RuntimeError(f"{text} is no key"))
    store = BrokenStore(text)
    shelf = [Refusing(text=text), "memory"]
    context = {"node_models": {"answer": f"openai:{text}"}, "retriever": ["memory", text]}
    shown = [json.dumps(resources_of(get_graph("rag")).labels(context_of("rag")(**context)), default=str)]
    for graph in (
        build_rag(model=failing, retriever=shelf, allow="*"),
        build_rag(model=ScriptedModel(["Rye."] * 9), retriever=shelf, allow="*"),
        build_rag(model=ScriptedModel(["Rye."] * 9), memory="store:a", store=store, allow="*"),
    ):
        try:
            result = graph.invoke({"question": "How is rye bread baked?"})
            shown += [str(result["warnings"])]
        except StepcraftError as error:
            shown.append(str(error))
    assert not [line for line in shown if shows(line, secret)]


@settings(max_examples=10)
@given(held())
def test_no_report_shows_a_secret(held: tuple[str, str]) -> None:
    text, secret = held
    passage = {"id": text, "title": text, "text": f"Rye. {text} Oats.", "source": text, "score": 0.5}
    usage = {"calls": 1, "input_tokens": 1, "output_tokens": 1, "nodes": {}}
    result = {"answer": f"Rye {text}.", "evidence": [passage], "warnings": [text], "usage": usage}
    revision = {
        "step": 1, "thought": text, "query": text, "changed": True, "skipped": "", "evidence": [passage],
        "before": f"Before {text}", "after": f"After {text[:-4]}",
    }  # fmt: skip
    given_ = {"question": f"What is {text}?", "retriever": text}
    shown = page("rag", given_, result, [])
    shown += page("rat", given_, {**result, "draft": text, "revisions": [revision]}, [])
    assert not shows(shown, secret)
    assert "***" in shown


def test_no_command_shows_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()

    @settings(max_examples=4)
    @given(held())
    def check(held: tuple[str, str]) -> None:
        text, secret = held
        record = {"output": f"rye {text}", "input": text, "steps": [f"use {text}"], "source": text}
        Path("m.jsonl").write_text(json.dumps(record) + "\n")
        Path("docs/rye.md").write_text(f"# Rye {text}\n\nRye bread: {text}\n")
        for arguments in (
            ["memory", "count", "-m", text], ["memory", "list", "-m", "m.jsonl"], ["memory", "list", "-m", "m.jsonl", "--json"],
            ["memory", "search", "rye", "-m", "m.jsonl"], ["memory", "import", text, "-m", "new.db"],
            ["memory", "copy", "m.jsonl", text], ["source", "check", text, "rye"], ["source", "check", "corpus:docs", "rye"],
            ["source", "check", "corpus:docs", "rye", "--json"], ["run", text, "x"], ["run", "cot", "x", "--set", f"{text}=1"],
            ["run", "cot", "x", "--html", f"none/{text}"], ["run", "few_shot", "rye", "--memory", "m.jsonl"],
            ["run", "rag", f"rye {text}", "--from", "corpus:docs", "--html", "page.html"],
            ["run", "rag", f"rye {text}", "--from", "corpus:docs", "--json"],
        ):  # fmt: skip
            done = CliRunner().invoke(app, arguments)
            lines = (done.stdout + done.stderr).splitlines()
            assert [line for line in lines if shows(line, secret)] == [], arguments
            assert "Traceback" not in done.stderr
        assert not shows(Path("page.html").read_text("utf-8"), secret)

    check()


def test_a_strict_run_masks_the_warning_that_ends_it() -> None:
    with pytest.raises(NoAnswer) as ended:
        raise NoAnswer("a part of the work was not done: https://h/?api_key=Zq7aaaaaaaaaaaa1")
    assert "api_key=***" in str(ended.value)
