"""Options shared by commands, and the arguments made from them."""

import json
from collections.abc import Callable
from contextlib import suppress
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict, get_args, get_type_hints

from typer import Argument, Option

from stepcraft.errors import BadInput

if TYPE_CHECKING:
    from stepcraft.memory.protocol import ProcedureMemory

_URLS = "weaviate://host:8080/Collection, or store+postgresql://host/database/name"
Memory = Annotated[
    str | None,
    Option(
        "--memory",
        "-m",
        help=f"The memory: a .db, .jsonl or .csv file, {_URLS}. "
        "By default STEPCRAFT_MEMORY, or else the procedures that ship with stepcraft.",
    ),
]
ChangedMemory = Annotated[
    str | None,
    Option(
        "--memory",
        "-m",
        help=f"The memory to change: a .db file, {_URLS}. By default STEPCRAFT_MEMORY.",
    ),
]
Embeddings = Annotated[
    str | None,
    Option(help='The embeddings of the memory: "wordllama", "none" or provider:model.'),
]
Sources = Annotated[
    list[str] | None,
    Option(
        "--from",
        metavar="SPEC",
        help="A source of evidence: corpus:PATH, weaviate://host:8080/Collection, "
        "postgresql://host/database/name, web, memory:URL, package.module:attribute; may be "
        "repeated.",
    ),
]
Model = Annotated[str | None, Option(help='The chat model: "openai:gpt-5-mini", "ollama:…".')]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="FIELD=VALUE",
        help="A setting, as text or JSON: k=5, node_models={…}; may be repeated.",
    ),
]
Question = Annotated[str, Argument(help="The question to answer, or the goal to reach.")]
Using = Annotated[str, Option("--using", help="The available resources, separated by commas.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, Option("--quiet", help="Show no progress and no warnings.")]

Price = Annotated[
    list[str] | None,
    Option(
        metavar="[MODEL=]READ/WRITTEN",
        help="USD per million tokens read and written: 0.25/2.00, or "
        "openai:gpt-5-mini=0.25/2.00; a third figure is for cached input. May be repeated.",
    ),
]

_TRUSTED = ("model", "node_models", "memory", "sources")


class SearchOptions(TypedDict):
    """The options of commands that run a graph with a search."""

    sources: Sources
    memory: Memory
    embeddings: Embeddings
    model: Model
    settings: Settings


class RunOptions(SearchOptions):
    """The options of commands that run a graph."""

    as_json: AsJson
    html: Annotated[
        Path | None,
        Option("--html", help="Write an HTML page that shows the run."),
    ]
    show_changes: Annotated[
        bool, Option("--show-changes", help="Print what each check changed, word by word.")
    ]
    show_checks: Annotated[
        bool, Option("--show-checks", help="Print the verdict on each statement, and its passages.")
    ]
    quiet: Quiet


class WorkOptions(TypedDict):
    """The options of commands that work on many samples or documents."""

    concurrency: Annotated[int | None, Option(min=1, help="Work on N at a time; by default 8.")]
    max_calls: Annotated[int | None, Option(min=1, help="Stop after N model calls.")]
    max_tokens: Annotated[int | None, Option(min=1, help="Stop after N tokens.")]
    max_usd: Annotated[float | None, Option(min=0.0, help="Stop at this cost; needs --price.")]
    price: Price
    quiet: Quiet


class EvaluationOptions(SearchOptions, WorkOptions):
    """The options of an evaluation."""


def unpacked(command: Callable[..., None]) -> Callable[..., None]:
    """Expose the options in a command's `**options: Unpack[…]`, which typer would not see."""
    *first, last = signature(command, eval_str=True).parameters.values()
    hints = get_type_hints(get_args(last.annotation)[0], include_extras=True)
    shared = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=False if get_args(hint)[0] is bool else None,
            annotation=hint,
        )
        for name, hint in hints.items()
    ]

    command.__signature__ = Signature([*first, *shared])  # type: ignore[attr-defined]
    return command


def fields_of(settings: list[str] | None, **options: object) -> dict[str, Any]:
    """Return the settings given by options and by `--set`.

    Raises:
        BadInput: A `--set` has no value.
    """
    fields = {name: value for name, value in options.items() if value}
    for setting in settings or []:
        name, equals, text = setting.partition("=")
        if not equals:
            raise BadInput(f"--set {setting!r} has no value; write --set field=value")
        value: Any = text
        if text.startswith(("{", "[")) or text == "null":
            with suppress(ValueError):  # validating the settings reports the error
                value = json.loads(text)
        fields[name.strip()] = value
    return fields


def tags_of(tags: list[str] | None) -> dict[str, str]:
    """Return the tags that are given as name=value.

    Raises:
        BadInput: A tag has two values.
    """
    chosen: dict[str, str] = {}
    for each in tags or ():
        name, _, value = map(str.strip, each.partition("="))
        if chosen.setdefault(name, value) != value:
            raise BadInput(
                f"the tag {name!r} has two values, {chosen[name]!r} and {value!r}; give it one"
            )
    return chosen


def search_fields(options: SearchOptions, **settings: object) -> dict[str, Any]:
    """Return the settings given by the options, including the sources, memory and model."""
    return fields_of(
        options["settings"],
        model=options["model"],
        memory=options["memory"],
        sources=options["sources"],
        embeddings=options["embeddings"],
        **settings,
    )


def builder_options(graph: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a graph's builder.

    The context of a run can only name registered models, memories and sources. The user of the
    command line is trusted, so these are passed to the builder instead.

    Raises:
        BadInput: The graph has no such setting.
        ValidationError: A value is invalid.
    """
    from stepcraft.graphs.registry import context_of

    settings_type, rest = context_of(graph), dict(fields)
    names = settings_type.model_fields
    for name in fields.keys() - {*names, "embeddings"}:
        raise BadInput(f"{graph} has no setting {name!r}; its settings are {', '.join(names)}")
    embeddings = rest.pop("embeddings", None)
    checked = settings_type(**rest)
    trusted = {name: getattr(checked, name) for name in _TRUSTED if rest.pop(name, None)}
    return {**trusted, "embeddings": embeddings, "settings": settings_type(**rest)}


def work_arguments(options: WorkOptions) -> dict[str, Any]:
    """Return the options shared by commands that process many samples or documents."""
    from stepcraft.cli.output import progress_lines
    from stepcraft.evals.prices import Prices
    from stepcraft.evals.progress import Budget

    return {
        "concurrency": options["concurrency"] or 8,
        "budget": Budget(options["max_calls"], options["max_tokens"], options["max_usd"]),
        "prices": Prices.of(options["price"]),
        "on_progress": progress_lines(quiet=options["quiet"]),
    }


def check_changeable(memory: "ProcedureMemory") -> None:
    """Check that a memory can be changed, before a user or a model prepares a change.

    Raises:
        BadInput: It can only be searched.
    """
    if memory.read_only:
        raise BadInput(
            f"{memory.name} can only be searched, so nothing can be stored in it; name a database "
            "with --memory (`stepcraft memory add` makes one)"
        )


def check_writable(*files: Path | None) -> None:
    """Check that files are writable before any work is done, leaving no new files behind.

    Raises:
        OSError: A file is not writable.
    """
    for file in filter(None, files):
        is_new = not file.exists()
        file.open("ab").close()
        if is_new:
            file.resolve().unlink()  # not a link to it
