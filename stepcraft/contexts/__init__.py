"""The settings of a run: one frozen dataclass for each graph, with the instructions of its nodes as fields."""
