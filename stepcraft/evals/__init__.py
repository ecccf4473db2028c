"""Evaluations: what a method's answers are worth, and how certain that is."""
