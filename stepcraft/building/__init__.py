"""Building memories: whole documents are read, and the procedures that they teach are added."""

from stepcraft.building.build import BuildReport, build_memory
from stepcraft.building.sources import list_documents

__all__ = ["BuildReport", "build_memory", "list_documents"]
