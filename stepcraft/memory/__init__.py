"""Procedural memory: procedures, and the places that keep and find them."""
