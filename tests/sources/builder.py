"""Builds a corpus for each line with a folder and a URL, in a process of its own.

It says the number of the process, each file that is done, and the end. The processes are forks of one that has imported
the package.
"""

import os
import sys

import stepcraft.sources.shared.postgres
import stepcraft.sources.shared.weaviate  # noqa: F401 - before the forks
from stepcraft.sources import build_corpus
from stepcraft.sources.corpus.update import Updated
from stepcraft.sources.shared.passages import SharedPassages


def say(text: object) -> None:
    """Write a line at once."""
    os.write(1, f"{text}\n".encode())


def done(report: Updated, _: int) -> None:
    """Say a file."""
    say(report.files)


for line in sys.stdin:
    process = os.fork()
    if not process:
        SharedPassages.batch = 25
        folder, url = line.split()
        build_corpus([folder], url, embeddings="wordllama", on_progress=done)
        say("built")
        os._exit(0)
    say(process)
    os.waitpid(process, 0)
    say("ended")
