"""The cells of a notebook as Markdown, without their outputs."""

import json
from typing import Any

from stepcraft.text.clean import clean


def notebook(data: bytes) -> tuple[str, list[str], str]:
    """Return the cells, code between fences."""
    content: dict[str, Any] = json.loads(data)
    language = content["metadata"].get("kernelspec", {}).get("language", "")
    parts: list[str] = []
    for cell in content["cells"]:
        source = clean("".join(cell["source"]))
        is_code = cell["cell_type"] == "code" and source.strip()
        parts.append(f"```{language}\n{source}\n```" if is_code else source)
    return "", parts, ""
