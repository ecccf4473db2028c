"""Procedural memories in Weaviate."""
