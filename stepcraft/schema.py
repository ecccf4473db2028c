"""JSON schemas of inputs and outputs, which servers and Studio show."""

from pydantic import ConfigDict, with_config

described = with_config(ConfigDict(use_attribute_docstrings=True))
"""A decorator of TypedDicts, whose schemas take the descriptions of fields from the texts below them."""
