"""The node of the comparison of two procedures."""
