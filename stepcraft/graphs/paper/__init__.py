"""The papers' algorithms, for comparison and reproduction."""
