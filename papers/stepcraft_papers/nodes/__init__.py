"""The nodes of the papers' graphs, and the keys of their states."""
