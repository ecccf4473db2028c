"""Print the block of README.md that follows a marker: `readme.py test` after `<!-- ci: test -->`."""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def block(name: str, text: str) -> str:
    """What stands between the fences after the marker."""
    found = re.findall(
        rf"^<!-- ci: {re.escape(name)} -->\n+```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
    )
    if len(found) != 1:
        raise SystemExit(
            f"README.md has {len(found)} blocks marked '<!-- ci: {name} -->'; there must be one."
        )
    return str(found[0])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    sys.stdout.write(block(sys.argv[1], README.read_text(encoding="utf-8")))
