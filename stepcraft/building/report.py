"""Write a build's report page, with each document's procedures, rejections and flagged steps.

Like the page of a run, it fetches nothing and runs no scripts; all text from documents and models
is escaped.
"""

from collections.abc import Sequence
from importlib.resources import files

from stepcraft.building.ledger import Ledger
from stepcraft.errors import Failed
from stepcraft.report.rendering import counted, rendered

_HERE = files("stepcraft.building")

MOST = 2_000
"""The maximum number of documents that are shown."""


def write_page(ledger: Ledger, memory: str, failed: Sequence[Failed], most: int = MOST) -> None:
    """Write the report page for a memory's builds next to the ledger.

    Args:
        ledger: The ledger with the records of the builds.
        memory: The name of the memory.
        failed: The documents that could not be processed.
        most: The maximum number of documents to show.

    Raises:
        OSError: The page cannot be written.
        RunStopped: The ledger cannot be read.
    """
    documents, procedures, calls = ledger.counts()
    records = sorted(ledger.latest(most), key=lambda record: record.source)
    text = rendered(
        "building.html.j2",
        folder=_HERE,
        style=(_HERE / "building.css").read_text("utf-8"),
        title="Building a memory",
        heading=memory,
        facts=[
            counted(documents, "document"),
            counted(procedures, "procedure"),
            counted(calls, "model call"),
            *[f"the latest {most:,} are shown"] * (documents > most),
        ],
        sections=[("warnings", "Warnings")] * bool(failed) + [("documents", "Documents")],
        warnings=[f"{failure.where}: {failure.reason}" for failure in failed],
        records=records,
    )
    ledger.page.write_text(text, encoding="utf-8", errors="replace")
