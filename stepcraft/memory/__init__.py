"""Procedural memory: procedures, and the places where they are stored and searched."""
