"""JSON schemas of inputs and outputs, which servers and Studio show."""

from pydantic import ConfigDict, with_config

described = with_config(ConfigDict(use_attribute_docstrings=True))
"""Decorate a TypedDict, whose schema takes the descriptions of fields from the texts below them."""
