"""Build memories by reading whole documents and adding the procedures that they teach."""

from stepcraft.building.build import BuildReport, build_memory
from stepcraft.building.sources import list_documents

__all__ = ["BuildReport", "build_memory", "list_documents"]
