"""The compiled graphs.

Each module has a `build_…` function and, for servers, a `graph` without a checkpointer.
"""
