"""The cells of a notebook as Markdown, without their outputs."""

import json

from stepcraft.text.clean import clean


def notebook(data: bytes) -> tuple[str, list[str], str]:
    """Return the cells, code between fences."""
    parts: list[str] = []
    for cell in json.loads(data)["cells"]:
        source = clean("".join(cell["source"]))
        is_code = cell["cell_type"] == "code" and source.strip()
        parts.append(f"```\n{source}\n```" if is_code else source)
    return "", parts, ""
