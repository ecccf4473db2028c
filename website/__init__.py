"""The documentation site: `python -m website` builds it, `python -m website.blocks PAGE` runs the code of a page."""
