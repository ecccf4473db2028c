"""The samples on an evaluation's page, as compressed JSON that its script unpacks."""

import base64
import gzip
import json
import math
from collections.abc import Mapping
from typing import Any

from stepcraft.text.clean import clean

CHARACTERS = 4_000
"""The length beyond which texts are cut on the page."""
SAMPLES = 5_000
"""The maximum number of samples on the page, so that it opens at once."""


def packed(samples: list[dict[str, Any]]) -> str:
    """Return samples as base64 of compressed JSON, with their texts cut and cleaned."""
    data = json.dumps(_cut(samples[:SAMPLES]), ensure_ascii=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(data.encode("utf-8", "replace"), mtime=0)).decode()


def _cut(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        text = clean(value).strip()
        return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}…"
    if isinstance(value, Mapping):
        return {clean(key): _cut(part) for key, part in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None  # a browser cannot read it
    return [_cut(part) for part in value] if isinstance(value, list | tuple) else value
