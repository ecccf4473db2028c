"""The drawings in the documentation: `python -m website.drawings` makes them anew.

A page marks the place of a drawing by `<!-- drawing: NAME -->` above a block of Mermaid. The name
is that of a graph, drawn by LangGraph, or `package`, for the imports between its parts.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from stepcraft.graphs.registry import get_graph

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
FILES: Mapping[str, Path] = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (ROOT / "stepcraft").rglob("*.py")
}
"""The modules of the package."""
_DRAWING = re.compile(
    r"(<!-- drawing: (\w+) -->\n```mermaid\n).*?(?=^```$)", re.MULTILINE | re.DOTALL
)


@cache
def drawing(name: str) -> str:
    """Return a drawing as Mermaid."""
    if name == "package":
        return _package()
    drawn = get_graph(name).get_graph().draw_mermaid(with_styles=False)
    return drawn.strip().expandtabs(2) + "\n"


def with_drawings(page: str) -> str:
    """Return a page with the drawings that its marks ask for."""
    return _DRAWING.sub(lambda mark: mark[1] + drawing(mark[2]), page)


def imports(module: str) -> Iterator[str]:
    """Yield the modules of the package that a module imports, also within functions."""
    for node in ast.walk(ast.parse(FILES[module].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stepcraft"):
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in FILES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("stepcraft"))


def parts() -> dict[str, set[str]]:
    """Return the parts of the package, folders or modules, that each part imports."""
    imported: dict[str, set[str]] = {}
    for module in FILES.keys() - {"stepcraft"}:
        part = module.split(".")[1]
        others = {other.split(".")[1] for other in imports(module) if other != "stepcraft"}
        imported.setdefault(part, set()).update(others - {part})
    return imported


def _package() -> str:
    """Draw an arrow for each import between parts that does not follow from two others."""
    imported = parts()

    @cache
    def reached(part: str) -> frozenset[str]:
        return frozenset(imported[part]).union(*map(reached, imported[part]))

    lines = ["flowchart TD"]
    for part in sorted(imported, key=lambda part: (-len(reached(part)), part)):
        below = imported[part]
        direct = sorted(
            other for other in below if not any(other in reached(each) for each in below)
        )
        if direct:
            lines.append(f"  {part} --> {' & '.join(direct)}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Make the drawings of all pages anew."""
    for page in PAGES:
        text = page.read_text("utf-8")
        if (drawn := with_drawings(text)) != text:
            page.write_text(drawn, "utf-8")
            print(f"{page.relative_to(ROOT)}: drawn anew")
    return 0


if __name__ == "__main__":
    sys.exit(main())
