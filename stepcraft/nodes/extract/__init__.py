"""The nodes of the extraction of procedures from a document."""
