"""Build memories by reading whole documents and adding the procedures that they teach.

The modules, in the order in which `build.py` uses them:

    sources.py     lists the documents (documents.py) in files, pages, loaders, and agents' runs
                   (threads.py with conversations.py and messages.py, langsmith.py)
    changes.py     handles moved and deleted files, and the procedures that they taught
    read.py        reads a document with the graph in extract.py: a model is asked (nodes.py), and
                   what it wrote (drafted.py) is checked against the document (check.py)
    duplicates.py  adds each procedure, or merges or links it with one for the same task, as
                   decided by a model (compare.py)
    provenance.py  records with each procedure which documents teach it
    ledger.py      records what was read and added, so that no model is asked twice
    report.py      writes the page that shows these records

Outside of builds, dedupe.py finds the duplicates in a whole memory, repair.py corrects a procedure
after a failed run, and learn.py learns or repairs a procedure from an agent's latest run. All share
the instructions for models (settings.py), the text form of procedures (replies.py) and the search
for invented names (grounding.py).
"""

from stepcraft.building.build import BuildReport, build_memory
from stepcraft.building.sources import list_documents

__all__ = ["BuildReport", "build_memory", "list_documents"]
