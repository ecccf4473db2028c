"""The nodes of the baselines."""
