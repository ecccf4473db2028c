"""The compiled graphs.

Each module has a function `build_…` and, for servers, `graph` without a checkpointer.
"""
