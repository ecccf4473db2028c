"""The steps that the graphs are made of: one verb a file, its prompt beside it."""
