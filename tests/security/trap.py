"""A module that no run may import."""
