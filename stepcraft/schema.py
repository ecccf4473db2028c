"""JSON schemas of inputs and outputs, which servers and Studio show."""

from pydantic import ConfigDict, with_config

described = with_config(ConfigDict(use_attribute_docstrings=True))
"""Decorate a TypedDict so that the docstrings below its fields become their descriptions."""
