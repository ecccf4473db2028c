"""JSON schemas of inputs and outputs, which servers and Studio show."""

from pydantic import ConfigDict, Field, with_config

described = with_config(ConfigDict(use_attribute_docstrings=True))
"""A decorator of TypedDicts, whose schemas take the descriptions of fields from the texts below them."""

FOR_PROGRAMS = "for_programs"
"""Marks, in a JSON schema, an input that a program fills in and a model would have to invent."""

for_programs = Field(json_schema_extra={FOR_PROGRAMS: True})
"""The metadata of such a field."""
