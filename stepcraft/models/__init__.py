"""Language models and embedding models, found by name."""
