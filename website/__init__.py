"""The documentation site: `python -m website` builds it."""
