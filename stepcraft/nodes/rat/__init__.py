"""The nodes of RAT."""
