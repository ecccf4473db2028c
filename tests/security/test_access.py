"""Keys and tokens of a server's users, and the namespaces that belong to them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda
from langgraph.store.memory import InMemoryStore

from stepcraft.access import check_may_remember, encode_identity, fill_namespace
from stepcraft.errors import BadInput
from stepcraft.secrets import without_secrets
from stepcraft.server.users import Users, new_key, read_users
from tests.servers.pages_server import PagesServer, Served

DIGEST = "sha256:" + "0" * 64
ANN = f"[users.ann]\nkeys = ['{DIGEST}']\n"
JWT = "[jwt]\nalgorithms = ['RS256']\nissuer = 'i'\naudience = 'a'\n"


def on_server(identity: str | None, **fields: Any) -> dict[str, Any]:
    """Return the config of a run as the server makes it."""
    user = SimpleNamespace(identity=identity) if identity else None
    return {"configurable": {**fields, "langgraph_auth_user": user}}


def in_run(call: Any, config: Any) -> Any:
    return RunnableLambda(lambda _: call()).invoke(None, config)


# The file of users


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "nobody can come in"),
        ("[users.ann", "at the end of a table"),
        ("[users.ann]\nkeys = ['plainplain']", "users.ann.keys.0: String should match pattern"),
        (ANN + "admin = true", "users.ann.admin"),
        (ANN + f"[users.bob]\nkeys = ['{DIGEST}']", "twice"),
        (JWT, "name either key_file or jwks_url"),
        (JWT + "key_file = '/nowhere.pem'", "jwt.key_file"),
        (JWT + "jwks_url = 'http://i/jwks'", "jwt.jwks_url"),
        (JWT.replace("RS256", "HS256") + "jwks_url = 'https://i'", "jwt.algorithms.0"),
        (JWT.replace("issuer = 'i'", "") + "jwks_url = 'https://i'", "jwt.issuer: Field required"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    path = tmp_path / "access.toml"
    path.write_text(text)
    monkeypatch.setenv("STEPCRAFT_ACCESS", str(path))
    with pytest.raises(BadInput) as caught:
        read_users()
    sentence = str(caught.value)
    assert sentence.startswith(f"{path} (STEPCRAFT_ACCESS) cannot be used: ")
    assert reason in sentence
    assert "\n" not in sentence
    assert "plainplain" not in sentence


def test_no_server_starts_without_users() -> None:
    command = [sys.executable, "-c", "import stepcraft.server.auth"]
    run = subprocess.run(command, env={}, stderr=subprocess.PIPE, text=True, check=False)
    assert "BadInput" in run.stderr.splitlines()[-1]
    assert "STEPCRAFT_ACCESS" in run.stderr.splitlines()[-1]


def test_a_changed_file_takes_effect_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old, old_hash), (new, new_hash) = new_key(), new_key()
    path = tmp_path / "access.toml"
    monkeypatch.setenv("STEPCRAFT_ACCESS", str(path))
    for key_hash, identities in ((old_hash, ["ann", None]), (new_hash, [None, "ann"])):
        path.write_text(f"[users.ann]\nkeys = ['{key_hash}']")
        assert [read_users().identify(key) for key in (old, new)] == identities


def test_a_key_is_masked_in_messages_and_nothing_else_lets_in() -> None:
    key, key_hash = new_key()
    users = Users.model_validate({"users": {"ann@example.org": {"keys": [key_hash]}}})
    assert users.identify(key) == "ann@example.org"
    assert [users.identify(text) for text in ("", key[:-1], f"{key} ", key_hash)] == [None] * 4
    assert key[3:] not in without_secrets(f"it is {key}.")


# Tokens

CLAIMS = {"sub": "ann", "iss": "https://login.example/", "aud": "stepcraft"}


@pytest.fixture(scope="module")
def issuer() -> SimpleNamespace:
    private, other = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SimpleNamespace(private=private, other=other, public=public)


def rules(**where: Any) -> Users:
    table = {"algorithms": ["RS256"], "issuer": CLAIMS["iss"], "audience": "stepcraft", **where}
    return Users.model_validate({"jwt": table})


def claims(**changes: Any) -> dict[str, Any]:
    values = {**CLAIMS, "exp": int(time.time()) + 60, **changes}
    return {name: value for name, value in values.items() if value is not None}


def forged(algorithm: str, secret: bytes) -> str:
    """Return a token as an attacker makes it, whatever the library would refuse to sign."""
    body = ".".join(
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": algorithm}, claims())
    )
    signature = hmac.new(secret, body.encode(), hashlib.sha256).digest() if secret else b""
    return f"{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_tokens(tmp_path: Path, issuer: SimpleNamespace) -> None:
    (tmp_path / "key.pem").write_bytes(issuer.public)
    users = rules(key_file=tmp_path / "key.pem", leeway_s=30)

    def signed(**changes: Any) -> str:
        return jwt.encode(claims(**changes), issuer.private, "RS256")

    accepted = [signed(), signed(exp=int(time.time()) - 5)]
    assert [users.identify(token) for token in accepted] == ["ann", "ann"]
    refused = {
        "another key": jwt.encode(claims(), issuer.other, "RS256"),
        "a changed signature": signed()[:-4] + "AAAA",
        "no signature": forged("none", b""),
        "the public key as a secret": forged("HS256", issuer.public),
        "no issuer": signed(iss=None),
        "another issuer": signed(iss="https://evil.example/"),
        "no audience": signed(aud=None),
        "no expiry": signed(exp=None),
        "expired": signed(exp=int(time.time()) - 3600),
        "no subject": signed(sub=None),
        "a long subject": signed(sub="a" * 201),
        "a subject of two lines": signed(sub="ann\n"),
        "a long text": "." * 30_000,
    }
    assert [name for name, token in refused.items() if users.identify(token) is not None] == []


def test_a_key_file_that_is_no_key(tmp_path: Path, issuer: SimpleNamespace) -> None:
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(BadInput, match=r"key\.pem"):
        rules(key_file=tmp_path / "key.pem").identify(jwt.encode(claims(), issuer.private, "RS256"))


@pytest.fixture
def provider(
    issuer: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PagesServer]:
    """A provider that publishes its keys over https at `/jwks`."""
    public = jwt.algorithms.RSAAlgorithm.to_jwk(issuer.private.public_key(), as_dict=True)
    keys = {"keys": [{**public, "kid": "first", "use": "sig"}]}
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    authority.issue_cert("127.0.0.1").configure_cert(context)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with PagesServer({"/jwks": Served(json.dumps(keys).encode())}, context) as server:
        yield server


def test_published_keys_are_fetched_once(issuer: SimpleNamespace, provider: PagesServer) -> None:
    users = rules(jwks_url=f"{provider.url}/jwks")
    token = jwt.encode(claims(), issuer.private, "RS256", headers={"kid": "first"})
    assert [users.identify(token) for _ in range(3)] == ["ann"] * 3
    for number in range(20):
        headers = {"kid": f"k{number}", "jku": f"{provider.url}/jwks"}
        assert users.identify(jwt.encode(claims(), issuer.other, "RS256", headers=headers)) is None
    assert provider.paths == ["/jwks"]


def test_an_address_without_keys_is_an_error(
    issuer: SimpleNamespace, provider: PagesServer
) -> None:
    provider.routes["/jwks"] = Served(b"<html>maintenance</html>")
    token = jwt.encode(claims(), issuer.private, "RS256", headers={"kid": "first"})
    with pytest.raises(BadInput, match="/jwks"):
        rules(jwks_url=f"{provider.url}/jwks").identify(token)


# Who started a run, and its part of the store


@given(st.lists(st.text(max_size=40), min_size=2, max_size=8, unique=True))
@example(["a.b", "a_2Eb", "ann", "Ann", "é", "e\u0301", "x" * 65, "x" * 66, "", "_"])
def test_encoded_identities_differ(identities: list[str]) -> None:
    encoded = [encode_identity(identity) for identity in identities]
    assert len(set(encoded)) == len(encoded)
    assert all(re.fullmatch("[A-Za-z0-9_-]{0,64}", part) for part in encoded)


PROJECT = {"configurable": {"user": "a.b", "project": "p"}}


@pytest.mark.parametrize(
    ("template", "running", "config", "namespace"),
    [
        ("recipes", {}, None, "recipes"),
        ("{user}/recipes", {}, PROJECT, "a_2Eb/recipes"),
        ("{user}/{project}", PROJECT, None, "a_2Eb/p"),
        ("{user}", {}, on_server("ann"), "ann"),
        ("{user}", on_server("ann", user="bob"), PROJECT, "ann"),
        ("{user}", on_server("ann"), on_server("bob"), "ann"),
    ],
)
def test_a_namespace_is_filled(template: str, running: Any, config: Any, namespace: str) -> None:
    filled = in_run(lambda: fill_namespace(tuple(template.split("/")), config), running)
    assert "/".join(filled) == namespace
    InMemoryStore().put(filled, "key", {})


@pytest.mark.parametrize(
    ("template", "running", "config", "message"),
    [
        ("{user}", {}, None, '{user} .*config={"configurable": {"user"'),
        ("{project}", {}, {"configurable": {"user": "ann"}}, '{project} .*{"project"'),
        ("{user}", {}, {"configurable": {"user": ["ann"]}}, "{user}"),
        ("{user}", on_server(None), PROJECT, "{user} .*serve with users"),
        ("{project}", on_server("ann", project="p"), PROJECT, "{project} .*only {user}"),
        ("notes-{user}", {}, PROJECT, "'notes-{user}'"),
    ],
)
def test_a_namespace_that_cannot_be_filled(
    template: str, running: Any, config: Any, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        in_run(lambda: fill_namespace((template,), config), running)


# Whether runs may write to a memory


@pytest.mark.parametrize("value", ["1", "1\r", " true ", "True", "yes", "ON"])
def test_a_deployment_allows_runs_to_write(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("STEPCRAFT_REMEMBER", value)
    in_run(check_may_remember, on_server("ann"))


@pytest.mark.parametrize("value", ["", " ", "0", "false", "No", "off", "none", "disabled", "'1"])
def test_any_other_value_does_not_allow_it(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("STEPCRAFT_REMEMBER", value)
    in_run(check_may_remember, {})  # not on a server
    with pytest.raises(BadInput, match="STEPCRAFT_REMEMBER=1"):
        in_run(check_may_remember, on_server("ann"))
