"""Secrets in traces and messages are masked, and settings that only sound like secrets are not."""

import json
import re
from typing import NoReturn
from urllib.parse import quote

import pytest

from stepcraft import BadInput, NoAnswer, anonymizer, get_graph
from stepcraft.secrets import excerpt, masked_line, without_secrets
from tests.scripted import ToolModel
from tests.shelf import QUESTION, Shelf

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


@pytest.mark.parametrize("value", ["abcdefgh ijklmnop\nqrstuvwx", "abcdefghijklmnopqrstuvwx"])
@pytest.mark.parametrize("gap", [" ", "\n", "\r\n    ", "\\n"])
def test_a_value_that_spans_lines_is_masked(
    value: str, gap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", value)
    text = f"it failed: abcdefgh{gap}ijklmnop{gap}qrstuvwx is wrong"
    assert without_secrets(text) == "it failed: *** is wrong"
    assert anonymizer()(text) == "it failed: *** is wrong"
    assert masked_line(text, 16) == "it failed: *** i"


@pytest.mark.parametrize("place", ["model", "agent", "source"])
def test_a_value_that_a_message_would_cut_is_masked(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "abcdefghijkl\nmnopqrstuvwx")

    def fail(_query: str = "") -> NoReturn:
        raise RuntimeError("x " * 132 + "abcdefghijkl\nmnopqrstuvwx")

    def reply(_node: str, _prompt: str) -> str:
        return "Haldruvin." if place == "source" else fail()

    shelf = Shelf(fail=fail) if place == "source" else Shelf()
    graph = get_graph("react" if place == "agent" else "rag", model=ToolModel(reply), sources=shelf)
    try:
        shown = str(graph.invoke(QUESTION))
    except NoAnswer as error:
        shown = str(error)
    assert "x x x" in shown
    assert "abcdef" not in shown


def test_a_long_text_is_masked_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is quadratic in it would take minutes, which the test's time-out ends."""
    for number in range(8):
        monkeypatch.setenv(f"SHOP_{number}_API_KEY", f"{number}-ab cd ef gh\n" * 4)
    long = "ab " * 30_000 + "a" + " " * 100_000 + "\\n" * 50_000
    assert without_secrets(long) == long


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
