"""`stepcraft doctor`: show versions and environment, call the model once, and search once."""

import os
import platform
import re
from functools import partial
from importlib.metadata import distributions
from typing import Annotated

from typer import Exit, Option

from stepcraft.cli.options import Memory, Model
from stepcraft.cli.output import say
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import one_line

_PACKAGES = ("stepcraft", "lang", "weaviate", "wordllama", "mcp")
_SECRET = re.compile(
    r"(?:KEYS?|TOKEN|SECRETS?|PASSWORDS?)\d*$|(?:KEY|TOKEN|SECRET|PASSWORD)\d*_(?!HOSTS)"
)
"""The end of a word in the name of a variable that holds a secret, as in OPENAI_API_KEY_2."""
_PREFIXES = ("STEPCRAFT_", "LANGSMITH_", "LANGGRAPH_", "OPENAI_", "WEAVIATE_")


def doctor(
    model: Model = None,
    memory: Memory = None,
    source: Annotated[
        str | None, Option("--from", metavar="SPEC", help="A source to search instead.")
    ] = None,
) -> None:
    """Show versions and environment, call the model once, and search once."""
    say(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    versions: dict[str, str] = {}
    for package in distributions():
        # A package without metadata has no name; asking for it fails in newer versions of Python.
        if package.metadata and (names := package.metadata.get_all("Name")):
            versions.setdefault(names[0], package.version)  # the first is imported
    for name, version in sorted(versions.items()):
        if name.startswith(_PACKAGES):
            say(f"{name} {version}")
    for name, value in sorted(os.environ.items()):
        if name.startswith(_PREFIXES):
            shown = "***" if _SECRET.search(name) else one_line(without_secrets(value))
            say(f"{name}={shown}")
    named = source or (f"memory:{memory}" if memory else "")
    chosen = named or os.environ.get("STEPCRAFT_SOURCE") or "memory:"
    failed = False
    for check in (partial(_call, model), partial(_search, chosen)):
        try:
            say(one_line(check()))
        except Exception as error:
            failed = True
            text = one_line(without_secrets(str(error)))
            say(f"FAILED: {type(error).__name__}: {text:.500}")
    if failed:
        raise Exit(1)


def _call(model: str | None) -> str:
    from langchain_core.messages import HumanMessage

    from stepcraft.models.resolve import EXTRACTIVE, resolve_model

    name = model or os.environ.get("STEPCRAFT_MODEL") or EXTRACTIVE
    if name == EXTRACTIVE:
        return (
            f"The model is {name}, which needs no key; name another with --model or STEPCRAFT_MODEL"
        )
    reply = resolve_model(name).invoke([HumanMessage("Reply with the word: ready")])
    return f"The model {name} replied {reply.text[:80]!r}"


def _search(spec: str) -> str:
    from stepcraft.sources.open import open_source

    documents = open_source(spec, k=1).invoke("How is a first graph built?")
    result = "finds a passage" if documents else "finds nothing"
    return f"A search in {without_secrets(spec)} {result}"
