"""The generated reference: pages that are read off the package when the site is built."""

from collections.abc import Iterator

from website.reference import api, commands, environment, messages, results, settings

_CONTENT = {
    "settings.md": (
        "Settings",
        "every field of the context of every graph, with type, default, bounds and description",
    ),
    "commands.md": ("Commands", "every command of `stepcraft`, with its arguments and options"),
    "results.md": ("Inputs and results", "the keys of the input and of the result of every graph"),
    "environment.md": ("Environment variables", "every variable that the package reads"),
    "messages.md": ("Messages", "every message with which the package stops or warns"),
    "python.md": ("Python API", "the public functions and classes, with signatures and docstrings"),
}
_WRITTEN = {
    "aag.md": "the graph of AAG",
    "rat.md": "the graph of RAT",
    "rpg.md": "the graph of RPG",
    "extraction.md": "the graph of the extraction",
}


def pages() -> dict[str, str]:
    """The pages of docs/reference/ by the names of their files, as Markdown."""
    return {
        "index.md": "\n".join(_index()),
        "settings.md": settings.page(),
        "commands.md": commands.page(),
        "results.md": results.page(),
        "environment.md": environment.page(),
        "messages.md": messages.page(),
        "python.md": api.page(),
    }


def _index() -> Iterator[str]:
    yield "# Reference"
    yield ""
    yield "The reference lists facts, for those who know what they look for. These pages are read off the code when the site is"
    yield "built, so they are those of this version:"
    yield ""
    for name, (title, about) in _CONTENT.items():
        yield f"- [{title}]({name}): {about}"
    yield ""
    yield "The pages of each graph, with its nodes, its options and examples:"
    yield ""
    for name, about in _WRITTEN.items():
        yield f"- [{name.removesuffix('.md')}](../{name}): {about}"
    yield ""
