"""The steps of the baselines."""
