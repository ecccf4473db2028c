"""The web as a source of evidence: `open_web`."""

from stepcraft.sources.web.retriever import WebSource, open_web

__all__ = ["WebSource", "open_web"]
