"""The settings of a run: one frozen model a graph, with its nodes' instructions as fields."""
