"""The keyless model: a chat model that recombines sentences of its prompt by rules."""
