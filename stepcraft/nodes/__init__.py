"""The nodes that make up the graphs.

Each node that asks a model has its own file with its prompt, the parsing of its reply, and its
fallback.
"""
