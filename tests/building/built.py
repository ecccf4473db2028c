"""Pages that teach a task each, a model that reads them, and a build in a process of its own.

`python -m tests.building.built FOLDER MEMORY` builds the pages of a folder, and prints the name of each that the model is
asked about.
"""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from stepcraft.building.build import build_memory
from stepcraft.errors import AddReport
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Procedure
from tests.scripted import ScriptedModel

NOTHING = "REJECTED\nOutput: {}\nReason: it teaches nothing.\nSentence: Nothing is done here."


def write_pages(folder: Path, *names: str, **lasts: str) -> Path:
    """A folder with a page for each name, also with another last step; what they teach has no word in common."""
    folder.mkdir(exist_ok=True)
    for name, last in {**dict.fromkeys(names, "close"), **lasts}.items():
        (folder / f"{name}.md").write_text(page(name, last))
    return folder


def page(name: str, last: str = "close") -> str:
    """A page that teaches the task of this name."""
    return f"# Task {name}\n\nGiven {name}stuff: {name}open `{name}.start`. Then {name}{last} `{name}.{last}`.\n"


def procedure(name: str, last: str = "close") -> str:
    """The reply to that page."""
    steps = f"1. {name}open `{name}.start`.\n2. {name}{last} `{name}.{last}`."
    return f"PROCEDURE\nHeading: Task {name}\nOutput: {name}ware\nInput: {name}stuff\n{steps}"


def read(_node: str, prompt: str) -> str:
    """The reply to the page in a prompt."""
    found = re.search(r"Given (\w+)stuff: .* Then \1(\w+) ", prompt)
    return procedure(found[1], found[2]) if found else NOTHING.format("nothing")


def called(
    tool: str, result: str = "ok", text: str = "", status: Any = "success", **arguments: Any
) -> list[BaseMessage]:
    """A call of a tool, and its result."""
    call = {"name": tool, "args": arguments, "id": f"{tool} {arguments}"}
    reply = ToolMessage(result, tool_call_id=call["id"], status=status)
    return [AIMessage(text, tool_calls=[call]), reply]


def name_in(prompt: str) -> str:
    """The name of the page in a prompt."""
    return prompt.partition("# Task ")[2].split()[0]


def main(folder: str, memory: str, moment: str) -> None:
    """Build, print the pages that the model is asked about, and end at the eighth call or addition."""
    replies, additions = count(1), count(1)

    class Mortal(LocalMemory):
        def add(self, procedures: Iterable[Procedure], **options: Any) -> AddReport:
            if moment == "an addition" and next(additions) == 7:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().add(procedures, **options)

    def reply(node: str, prompt: str) -> str:
        if moment == "a call" and next(replies) == 8:
            os.kill(os.getpid(), signal.SIGKILL)
        sys.stdout.write(f"{name_in(prompt)}\n")
        sys.stdout.flush()
        return read(node, prompt)

    with Mortal(memory, embeddings="none") as opened:
        asyncio.run(build_memory([folder], opened, model=ScriptedModel(reply), concurrency=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
