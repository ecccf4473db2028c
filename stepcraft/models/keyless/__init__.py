"""The keyless extractive model."""
