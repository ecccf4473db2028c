"""The keyless model: a chat model that recombines sentences from its prompt by rules."""
