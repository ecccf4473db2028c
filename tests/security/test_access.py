"""The file of users and groups, the rules of a run in progress, tokens, and limits that several workers share."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from typer.testing import CliRunner

from stepcraft import BadInput, LimitsFailure, NoAnswer, build_aag, open_memory
from stepcraft.access import Access, Caller, access
from stepcraft.cli import app
from stepcraft.graphs.baselines import build_rag
from stepcraft.limits import open_counters
from stepcraft.memory.urls import references
from stepcraft.policy import Policy, user_part
from stepcraft.secrets import without_secrets
from stepcraft.server.credentials import authenticated, new_key
from tests.kitchen import PROCEDURES

QUESTION = {"question": "make yoghurt"}
DIGEST = "sha256:" + "0" * 64
DAY = 86_400


def caller(identity: str, *groups: str) -> Any:
    """The config of a run as the server makes it for an authenticated caller."""
    return {"configurable": {"langgraph_auth_user": SimpleNamespace(identity=identity, groups=groups)}}


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes the file that STEPCRAFT_ACCESS names, and gives limits a database."""

    def write(text: str) -> Path:
        path = tmp_path / "access.toml"
        path.write_text(text)
        monkeypatch.setenv("STEPCRAFT_ACCESS", str(path))
        monkeypatch.setenv("STEPCRAFT_LIMITS_DB", f"sqlite:///{tmp_path}/limits.db")
        return path

    return write


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"it lets nobody in: give a user a key \(`stepcraft server key NAME`\) or add \[jwt\]"),
        ("[users.ann", "is no TOML"),
        ("[users.ann]\nkeys = ['sk_stepcraft_plainplain']", "users.ann.keys.0: String should match pattern"),
        ("[users.ann]\nkeys = ['myplainplainkey']", "users.ann.keys.0: String should match pattern"),
        (
            f"[users.ann]\nkeys = ['{DIGEST}']\nadmin = true",
            "users.ann.admin: Extra inputs are not permitted",
        ),
        (
            f"[users.ann]\nkeys = ['{DIGEST}']\ngroups = ['staff']",
            "'ann' is in the group 'staff', which there is not",
        ),
        (f"[users.ann]\nkeys = ['{DIGEST}']\n[groups.staff]", "'ann' is in no group; name one, or define"),
        (
            f"[users.ann]\nkeys = ['{DIGEST}']\n[users.bob]\nkeys = ['{DIGEST}']",
            "'ann' and 'bob' have the same key",
        ),
        (
            f"[users.ann]\nkeys = ['{DIGEST}']\n[groups.everyone]\nallow = ['docs']",
            "the entry 'docs', which is not",
        ),
        (
            f"[users.ann]\nkeys = ['{DIGEST}']\n[groups.everyone]\ncalls_per_day = 0",
            "greater than or equal to 1: 0",
        ),
        ("[jwt]\nissuer = 'i'\naudience = 'a'\nkey_file = 'k'", "jwt.algorithms: Field required"),
        (
            "[jwt]\nalgorithms = ['HS256']\nissuer = 'i'\naudience = 'a'\nkey_file = 'k'",
            "'HS256' is not accepted",
        ),
        (
            "[jwt]\nalgorithms = ['none']\nissuer = 'i'\naudience = 'a'\nkey_file = 'k'",
            "'none' is not accepted",
        ),
        ("[jwt]\nalgorithms = ['RS256']\naudience = 'a'\nkey_file = 'k'", "jwt.issuer: Field required"),
        ("[jwt]\nalgorithms = ['RS256']\nissuer = 'i'\naudience = 'a'", "name one of key_file and jwks_url"),
        (
            "[jwt]\nalgorithms = ['RS256']\nissuer = 'i'\naudience = 'a'\njwks_url = 'http://i/jwks'",
            "jwt.jwks_url: String should match pattern",
        ),
        (
            "[jwt]\nalgorithms = ['RS256']\nissuer = 'i'\naudience = 'a'\nkey_file = '/nowhere.pem'",
            "there is no key_file /nowhere.pem",
        ),
    ],
)
def test_half_a_file_is_refused(users: Callable[[str], Path], text: str, reason: str) -> None:
    path = users(text)
    with pytest.raises(BadInput, match=reason) as caught:
        access()
    assert str(path) in str(caught.value)
    assert "plainplain" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "stepcraft.server.auth as its auth, but STEPCRAFT_ACCESS is not set"),
        ({"STEPCRAFT_ACCESS": "/nowhere.toml"}, r"/nowhere.toml \(STEPCRAFT_ACCESS\) cannot be read"),
        (
            {"STEPCRAFT_ACCESS": "{limited}"},
            "a group has a limit, but nothing is counted: set STEPCRAFT_LIMITS_DB",
        ),
        (
            {"STEPCRAFT_ACCESS": "{limited}", "STEPCRAFT_LIMITS_DB": "redis://u:hush@h"},
            r"is not understood: 'redis://\*",
        ),
        (
            {"STEPCRAFT_ACCESS": "{limited}", "STEPCRAFT_LIMITS_DB": "sqlite:////nowhere/x.db"},
            "cannot be opened",
        ),
    ],
)
def test_a_server_with_half_a_configuration_does_not_start(
    tmp_path: Path, settings: dict[str, str], reason: str
) -> None:
    limited = tmp_path / "limited.toml"
    limited.write_text(f"[groups.everyone]\ncalls_per_day = 5\n[users.ann]\nkeys = ['{DIGEST}']")
    code = (
        "import sys\ntry:\n    import stepcraft.server.auth\n"
        "except Exception as error:\n    print(type(error).__name__, error)"
    )
    environment = {**os.environ, **{name: value.format(limited=limited) for name, value in settings.items()}}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert "hush" not in told
    assert re.search(reason, told), told


def test_a_changed_file_holds_at_once_and_a_broken_one_does_not(
    users: Callable[[str], Path], caplog: pytest.LogCaptureFixture
) -> None:
    (old, old_hash), (new, new_hash) = new_key(), new_key()
    path = users(f"[users.ann]\nkeys = ['{old_hash}']")
    assert authenticated(access(refresh=True) or Access(), old) == Caller("ann")
    path.write_text(f"[users.ann]\nkeys = ['{new_hash}'] # rotated")
    now = access(refresh=True)
    assert now
    assert [authenticated(now, key) for key in (old, new)] == [None, Caller("ann")]
    path.write_text("[users.ann")
    with caplog.at_level(logging.WARNING):
        assert access(refresh=True) == now
    assert "is no TOML" in caplog.text


def test_a_key_is_printed_once_and_its_hash_lets_in(tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, ["server", "key", "ann@example.org"])
    assert printed.exit_code == 0
    key, _, table = printed.stdout.partition("\n")
    path = tmp_path / "access.toml"
    path.write_text(table.partition("\nThe key")[0])
    assert key not in table
    assert key[13:] not in without_secrets(f"it is {key}.")
    import tomllib  # noqa: PLC0415

    known = Access.model_validate(tomllib.loads(path.read_text()))
    assert authenticated(known, key) == Caller("ann@example.org")
    assert [
        authenticated(known, wrong)
        for wrong in ("", key[:-1], f"{key} ", known.users["ann@example.org"].keys[0])
    ] == [None] * 4


ISSUER = {"algorithms": ["RS256"], "issuer": "https://login.example/", "audience": "stepcraft"}


@pytest.fixture(scope="module")
def issuer() -> SimpleNamespace:
    private, other = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SimpleNamespace(private=private, other=other, public=public)


def claims(**changed: Any) -> dict[str, Any]:
    now = int(time.time())
    given = {"sub": "ann", "iss": ISSUER["issuer"], "aud": "stepcraft", "exp": now + 60, "groups": ["staff"]}
    return {name: value for name, value in {**given, **changed}.items() if value is not None}


def unsigned(header: dict[str, str], payload: dict[str, Any], secret: bytes) -> str:
    """A token as an attacker makes it, whatever the library would refuse to sign."""
    import base64  # noqa: PLC0415
    import hashlib  # noqa: PLC0415
    import hmac  # noqa: PLC0415

    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()

    body = f"{part(json.dumps(header).encode())}.{part(json.dumps(payload).encode())}"
    signature = hmac.new(secret, body.encode(), hashlib.sha256).digest() if secret else b""
    return f"{body}.{part(signature)}"


def test_tokens(tmp_path: Path, issuer: SimpleNamespace) -> None:
    (tmp_path / "key.pem").write_bytes(issuer.public)
    known = Access.model_validate({"jwt": {**ISSUER, "key_file": tmp_path / "key.pem", "leeway_s": 5}})
    assert authenticated(known, jwt.encode(claims(), issuer.private, "RS256")) == Caller("ann", ("staff",))
    just_late = claims(exp=int(time.time()) - 2)
    assert authenticated(known, jwt.encode(just_late, issuer.private, "RS256")) == Caller("ann", ("staff",))
    refused = [
        jwt.encode(claims(), issuer.other, "RS256"),
        jwt.encode(claims(), issuer.private, "RS512"),
        jwt.encode(claims(), issuer.private, "RS256")[:-4] + "AAAA",
        unsigned({"alg": "none"}, claims(), b""),
        unsigned({"alg": "HS256"}, claims(), issuer.public),
        *(
            jwt.encode(claims(**{name: value}), issuer.private, "RS256")
            for name, value in [
                ("iss", None),
                ("iss", "https://evil.example/"),
                ("aud", None),
                ("aud", "another"),
                ("exp", None),
                ("exp", int(time.time()) - 60),
                ("nbf", int(time.time()) + 60),
                ("sub", None),
                ("sub", ""),
                ("sub", "a" * 201),
                ("sub", "ann\n"),
            ]
        ),
        "a.b.c",
        "." * 30_000,
    ]
    assert [authenticated(known, token) for token in refused] == [None] * len(refused)


@pytest.fixture
def published(
    issuer: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SimpleNamespace]:
    """A provider that publishes its keys over https, and counts how often it is asked."""
    key = {
        **jwt.algorithms.RSAAlgorithm.to_jwk(issuer.private.public_key(), as_dict=True),
        "kid": "one",
        "use": "sig",
    }
    provider = SimpleNamespace(asked=[], body=json.dumps({"keys": [key]}).encode())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(provider.body)

        def log_message(self, *_: object) -> None:
            pass

    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    provider.url = f"https://127.0.0.1:{server.server_port}/jwks"
    yield provider
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_address_that_publishes_no_keys_is_told(
    issuer: SimpleNamespace, published: SimpleNamespace
) -> None:
    published.body = b"<html>maintenance</html>"
    known = Access.model_validate({"jwt": {**ISSUER, "jwks_url": published.url}})
    with pytest.raises(BadInput, match=r"the public keys at .*/jwks cannot be fetched: Expecting value"):
        authenticated(known, jwt.encode(claims(), issuer.private, "RS256", headers={"kid": "one"}))


def test_published_keys_are_fetched_once(issuer: SimpleNamespace, published: SimpleNamespace) -> None:
    known = Access.model_validate({"jwt": {**ISSUER, "jwks_url": published.url}})
    token = jwt.encode(claims(), issuer.private, "RS256", headers={"kid": "one"})
    assert [authenticated(known, token) for _ in range(3)] == [Caller("ann", ("staff",))] * 3
    for number in range(20):
        forged = jwt.encode(
            claims(), issuer.other, "RS256", headers={"kid": f"k{number}", "jku": published.url}
        )
        assert authenticated(known, forged) is None
    assert len(published.asked) == 1


GROUPS = f"""
[groups.everyone]
fields = ["k"]
[groups.cooks]
fields = ["memory"]
allow = ["tea={{folder}}/tea.db", "model:extractive", "!web"]
[users.ann]
keys = ["{DIGEST}"]
groups = ["cooks"]
[users.bob]
"""


def test_a_run_has_the_rules_of_its_users_groups(users: Callable[[str], Path], tmp_path: Path) -> None:
    with open_memory(tmp_path / "tea.db", embeddings="none") as memory:
        memory.add(PROCEDURES)
    users(GROUPS.format(folder=tmp_path))
    graph = build_rag()
    assert graph.invoke(QUESTION, caller("ann"), context={"memory": "tea", "k": 1})["evidence"]
    for who, context, reason in [
        ("bob", {"memory": "tea"}, "may not set memory here"),
        ("ann", {"temperature": 1}, "may not set temperature here"),
        ("ann", {"model": "openai:gpt-5"}, "may not set model here"),
        ("eve", {"k": 1}, "'eve' is no user of this server any more"),
    ]:
        with pytest.raises(BadInput, match=reason):
            graph.invoke(QUESTION, caller(who), context=context)
    users(GROUPS.format(folder=tmp_path).replace('"memory"', '"memory", "model"'))
    with pytest.raises(BadInput, match="may not name the model 'openai:gpt-5' here"):
        graph.invoke(QUESTION, caller("ann"), context={"model": "openai:gpt-5"})


def test_a_server_without_auth_runs_nothing_where_users_are_listed(users: Callable[[str], Path]) -> None:
    users(f"[users.ann]\nkeys = ['{DIGEST}']")
    nobody: Any = {"configurable": {"langgraph_auth_user": None}}
    with pytest.raises(BadInput, match="STEPCRAFT_ACCESS is set, but this server authenticates nobody"):
        build_rag().invoke(QUESTION, nobody)
    assert build_rag().invoke(QUESTION)["answer"], "a program of the operator is no server"


def test_a_changed_state_sets_nothing_more(users: Callable[[str], Path]) -> None:
    users(f"[groups.everyone]\nfields = ['k']\n[users.ann]\nkeys = ['{DIGEST}']")
    graph = build_rag(checkpointer=InMemorySaver())
    thread = caller("ann")
    thread["configurable"]["thread_id"] = "1"
    graph.invoke(QUESTION, thread)
    settings = {"values": {"temperature": 1.0}, "withheld": []}
    graph.update_state(thread, {"settings": settings}, as_node="begin")
    with pytest.raises(BadInput, match="may not set temperature here"):
        graph.invoke(None, thread)


@pytest.mark.parametrize(
    ("identity", "url", "allowed"),
    [
        ("ann", "weaviate://db/Notes?tenant=ann", True),
        ("ann", "weaviate://db/Notes?tenant=bob", False),
        ("ann", "weaviate://db/Notes?tenant={user}", False),
        ("ann", "weaviate://db/Notes", False),
        ("*", "weaviate://db/Notes?tenant=bob", False),
        ("*", "weaviate://db/Notes?tenant=_2A", True),
        ("bob&ef=1", "weaviate://db/Notes?tenant=bob&ef=1", False),
        ("a/../bob", "weaviate://db/Notes?tenant=bob", False),
        ("", "weaviate://db/Notes?tenant={user}", False),
        ("", "weaviate://db/Notes?tenant=", False),
    ],
)
def test_tenants_of_users(identity: str, url: str, allowed: bool) -> None:
    policy = Policy.of("weaviate://db/Notes?tenant={user}").for_caller(identity)
    if allowed:
        policy.check("memory", url, references(url))
    else:
        with pytest.raises(BadInput, match="a run may not name the memory"):
            policy.check("memory", url, references(url))


def test_users_have_different_parts() -> None:
    identities = [
        "ann",
        "Ann",
        "a.nn",
        "a_2Enn",
        "a/nn",
        "_",
        "ä",
        "a" * 64,
        "a" * 65,
        "a" * 66,
        "ann@example.org",
    ]
    parts = [user_part(identity) for identity in identities]
    assert len(set(parts)) == len(parts)
    assert all(
        len(part) <= 64 and part.replace("_", "").replace("-", "").isalnum()
        for part in parts
        if part != "_5F"
    )


def test_a_name_that_is_each_users_own(users: Callable[[str], Path], tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        with open_memory(tmp_path / f"{name}.db", embeddings="none") as memory:
            memory.add(PROCEDURES if name == "ann" else [])
    graph = build_rag(allow=f"mine={tmp_path}/{{user}}.db")
    assert graph.invoke(QUESTION, caller("ann"), context={"memory": "mine"})["evidence"]
    assert graph.invoke(QUESTION, caller("bob"), context={"memory": "mine"})["evidence"] == []
    with pytest.raises(BadInput, match="may not name the memory 'mine'"):
        graph.invoke(QUESTION, context={"memory": "mine"})


def test_a_namespace_that_begins_with_the_user_is_its_own() -> None:
    store = InMemoryStore()
    open_memory("store:ann/recipes", store=store).add(PROCEDURES)
    graph = build_rag(store=store)
    for url in ("store:recipes", "store:ann/recipes"):
        assert graph.invoke(QUESTION, caller("ann"), context={"memory": url})["evidence"]
        assert graph.invoke(QUESTION, caller("bob"), context={"memory": url})["evidence"] == []


LIMITED = f"[groups.everyone]\ncalls_per_day = 9\n[users.ann]\nkeys = ['{DIGEST}']\n[users.bob]\n"


def test_the_calls_of_a_user_end_its_runs(users: Callable[[str], Path], tmp_path: Path) -> None:
    graph = build_aag()
    alone = graph.invoke(QUESTION)["usage"]
    limit = alone["calls"] + 1
    users(LIMITED.replace("= 9", f"= {limit}"))
    first = graph.invoke(QUESTION, caller("ann"))
    second = asyncio.run(graph.ainvoke(QUESTION, caller("ann")))
    counted = open_counters(f"sqlite:///{tmp_path}/limits.db").used(
        "ann", "calls", int(time.time()) // DAY * DAY
    )
    assert first["usage"]["calls"] + second["usage"]["calls"] == counted <= limit
    assert any("its user had only 1 of today's model calls left" in warning for warning in second["warnings"])
    assert first["usage"] == alone == graph.invoke(QUESTION, caller("bob"))["usage"], (
        "another user has its own"
    )


class AnotherWorker(BaseCallbackHandler):
    """Uses eight calls of ann's while a run of hers makes its first."""

    def __init__(self, url: str) -> None:
        self.url = url

    def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        open_counters(self.url).add("ann", "calls", int(time.time()) // DAY * DAY, 8, 9)


def test_a_running_run_is_cut_where_another_worker_uses_the_calls(
    users: Callable[[str], Path], tmp_path: Path
) -> None:
    users(LIMITED)
    config = {**caller("ann"), "callbacks": [AnotherWorker(f"sqlite:///{tmp_path}/limits.db")]}
    with pytest.raises(NoAnswer, match="ann has used the 9 model calls of today"):
        build_aag().invoke(QUESTION, config)


def test_tokens_of_a_user(users: Callable[[str], Path], tmp_path: Path) -> None:
    users(LIMITED.replace("calls_per_day = 9", "tokens_per_day = 50"))
    first = build_rag().invoke(QUESTION, caller("ann"))
    used = first["usage"]["input_tokens"] + first["usage"]["output_tokens"]
    assert used > 50
    counted = open_counters(f"sqlite:///{tmp_path}/limits.db").used(
        "ann", "tokens", int(time.time()) // DAY * DAY
    )
    assert counted == used
    with pytest.raises(
        Exception, match="ann has used the 50 tokens of today; more are allowed from 00:00 UTC"
    ):
        build_aag().invoke(QUESTION, caller("ann"))


def test_a_database_that_is_gone_costs_the_run_and_says_so(
    users: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    users(LIMITED)
    monkeypatch.setenv("STEPCRAFT_LIMITS_DB", "sqlite:////nowhere/limits.db")
    with pytest.raises(
        LimitsFailure, match=r"the limits at /nowhere/limits.db \(STEPCRAFT_LIMITS_DB\) cannot be opened"
    ):
        build_rag().invoke(QUESTION, caller("ann"))


WORKER = """
import sys
from stepcraft.limits import open_counters
counters, taken = open_counters(sys.argv[1]), 0
print("ready", flush=True)
sys.stdin.readline()
for _ in range(700):
    taken += counters.add("ann", "calls", int(sys.argv[2]), 1, 1_000)
print(taken)
"""


def raced(url: str, since: int, workers: int = 2) -> list[int]:
    """How many of 1,000 calls each worker gets, when each asks for 700 and all start at once."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, url, str(since)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(workers)
    ]
    for worker in started:
        assert worker.stdout
        worker.stdout.readline()
    for worker in started:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return [int(worker.communicate(timeout=60)[0]) for worker in started]


def check_counters(url: str) -> None:
    today = int(time.time()) // DAY * DAY
    taken, counters = raced(url, today), open_counters(url)
    print(f"{url.partition(':')[0]}: {' + '.join(map(str, taken))} = {sum(taken)} of 1,000 calls")  # noqa: T201 - for -s
    assert min(taken) >= 300, "both got some"
    assert (sum(taken), counters.used("ann", "calls", today)) == (1_000, 1_000)
    later = today + 60
    assert [counters.add("ann", "calls", later, amount, 3) for amount in (4, 2, 2, 1)] == [
        False,
        True,
        False,
        True,
    ]
    assert counters.add("ann", "calls", later, 100)
    counts = [("ann", "calls", later), ("ann", "runs", later), ("bob", "calls", later)]
    assert [counters.used(*count) for count in counts] == [103, 0, 0]
    counters.forget(later)
    assert [counters.used("ann", "calls", since) for since in (today, later)] == [0, 103]
    for day in range(1, 4):
        counters.add("ann", "calls", today + day * DAY, 1)
    assert [counters.used("ann", "calls", today + day * DAY) for day in range(1, 4)] == [0, 1, 1]


def test_two_workers_share_their_counts_in_sqlite(tmp_path: Path) -> None:
    check_counters(f"sqlite:///{tmp_path}/limits.db")


def test_two_workers_share_their_counts_in_postgres(new_database: Callable[[], str]) -> None:
    check_counters(new_database())
