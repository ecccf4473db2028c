"""The steps of RAT."""
