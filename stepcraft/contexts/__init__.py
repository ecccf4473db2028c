"""The settings of a run: one frozen model per graph, with its nodes' instructions as fields."""
