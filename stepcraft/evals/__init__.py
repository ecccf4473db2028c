"""Evaluation of methods: how good their answers are, and how certain the scores are."""
