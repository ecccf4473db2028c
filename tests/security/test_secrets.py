"""Secrets in traces and messages are masked, and settings that only sound like secrets are not."""

import json
import re
from urllib.parse import quote

import pytest

from stepcraft import BadInput, anonymizer
from stepcraft.secrets import excerpt, without_secrets

SECRETS = [
    ("password=hunter2", "hunter2"),
    ("PGPASSWORD=hunter2", "hunter2"),
    ("secret=abcdef", "abcdef"),
    ("postgresql://me:Tr0ub4dor&3@db/x", "Tr0ub4dor&3"),
    ("Authorization: Bearer abcdefghijklm123", "abcdefghijklm123"),
    ("https://x.example/?api_key=abcd1234efgh", "abcd1234efgh"),
    ("sk-proj-abcdefghijklmnop1234", "abcdefghijklmnop"),
    ("lsv2_pt_0123456789abcdef0123456789abcdef_0123456789", "0123456789abcdef"),
]


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_secret_is_masked(text: str, secret: str) -> None:
    assert secret not in without_secrets(f"it failed: {text}")
    assert secret not in str(anonymizer()({"messages": [{"content": text}]}))
    assert secret not in str(BadInput(f"{text} cannot be used"))


def test_values_of_variables_that_are_named_as_secrets_are_masked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "plainlookingword")
    assert without_secrets("the plainlookingword is here") == "the *** is here"
    assert excerpt("plainlookingword" + "x" * 100).startswith("'***xxx")
    assert "plainlookingword" not in str(anonymizer()("a plainlookingword"))


@pytest.mark.parametrize("variable", ["PGPASSWORD", "GITHUBTOKEN", "DB_PASSPHRASE"])
@pytest.mark.parametrize(
    "value", ["plainlookingword", "abc\\def'ghi", 'two\nlines"here', "p/w?=&12"]
)
def test_such_values_are_masked_in_any_notation(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    for text in (value, repr(value), json.dumps(value), f"https://me:{quote(value, safe='')}@x"):
        masked = without_secrets(f"it failed: {text}")
        assert "***" in masked
        assert not any(part in masked for part in re.findall(r"\w{3,}", value))


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("PIP_KEYRING_PROVIDER", "import", "import langsmith as ls"),
        ("REDIS_KEY_TTL", "3600", "Wait 3600 seconds"),
        ("MAX_TOKENS", "12345678", "12345678 tokens"),
    ],
)
def test_settings_are_no_secrets(
    variable: str, value: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    assert without_secrets(text) == text
