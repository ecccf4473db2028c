"""Pure functions that work on text."""
