"""The options that several commands take, and the settings that they make."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

Model = Annotated[str | None, typer.Option(help='The chat model: "openai:gpt-5-mini", "ollama:…".')]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Any field of the graph's context; may be repeated."),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="SPEC",
        help="Where evidence comes from: corpus:PATH, web, memory, weaviate://…; may be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")]
Html = Annotated[
    Path | None, typer.Option("--html", help="Write a page that shows how the answer came about.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress and no warnings.")]
Beside = Annotated[
    list[str] | None,
    typer.Option(
        "--from", metavar="SPEC", help="Answer the questions on the way from this, too: corpus:PATH, web, …"
    ),
]
Kind = Annotated[
    str | None, typer.Option(help="How it is answered: long, short, or multihop (short, in several steps).")
]
Passages = Annotated[
    Path | None,
    typer.Option(help="Answer from these passages: a .jsonl, .json or .csv with text, or a .txt."),
]
Using = Annotated[str, typer.Option("--using", help="The resources at hand, separated by commas.")]
Memory = Annotated[
    str | None, typer.Option(help="The procedures to learn from: a .db, .jsonl, .csv, or a URL.")
]


def values_of(settings: list[str] | None, **options: object) -> dict[str, Any]:
    """The settings of a run from its options and what `--set` names.

    Raises:
        BadInput: a setting has no value.
    """
    from stepcraft.errors import BadInput

    values: dict[str, Any] = {name: value for name, value in options.items() if value}
    for setting in settings or []:
        name, equals, value = setting.partition("=")
        if not equals:
            raise BadInput(f"--set {setting!r} has no value; write --set field=value")
        values[name.strip()] = _value(value)
    return values


def _value(text: str) -> Any:  # noqa: ANN401 - JSON
    if text.startswith(("{", "[")) or text == "null":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
