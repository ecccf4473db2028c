"""The generated reference: pages that are read off the package when the site is built."""

from collections.abc import Iterator

from website.reference import api, commands, environment, results, settings

_CONTENT = {
    "settings.md": ("Settings", "every setting of every graph, with type, default and bounds"),
    "commands.md": ("Commands", "every command of `stepcraft`, with its arguments and options"),
    "results.md": ("Inputs and results", "the keys of the input and the result of every graph"),
    "environment.md": ("Environment variables", "every variable that the package reads"),
    "python.md": ("Python API", "the public functions and classes, with their signatures"),
}


def pages() -> dict[str, str]:
    """Return the pages of docs/reference/ by the names of their files, as Markdown."""
    return {
        "index.md": "\n".join(_index()),
        "settings.md": settings.page(),
        "commands.md": commands.page(),
        "results.md": results.page(),
        "environment.md": environment.page(),
        "python.md": api.page(),
    }


def _index() -> Iterator[str]:
    yield "# Reference"
    yield ""
    yield "These pages are read off the code when the site is built:"
    yield ""
    for name, (title, about) in _CONTENT.items():
        yield f"- [{title}]({name}): {about}"
    yield ""
    yield "The graphs with their nodes: [AAG](../aag.md), [RAT](../rat.md), [RPG](../rpg.md)."
    yield ""
