"""Evaluations: how good a method's answers are, and how certain that is."""
