"""The nodes of the graphs.

A node that asks a model is one file: what it asks, how it reads the reply, its fallback.
"""
