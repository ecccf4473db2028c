"""Evaluations: benchmarks, scores, judges, and the sandbox that runs generated code."""
