"""Builds a corpus in a process of its own: says each file that is done, and embeds in small batches."""

import sys

from stepcraft.sources import build_corpus
from stepcraft.sources.shared.passages import SharedPassages

SharedPassages.batch = 25
build_corpus(
    [sys.argv[1]],
    sys.argv[2],
    embeddings=sys.argv[3],
    on_progress=lambda report, _: sys.stdout.write(f"{report.files}\n") and sys.stdout.flush(),
)
sys.stdout.write("done\n")
