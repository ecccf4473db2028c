"""The keyless model: a rule-based chat model that recombines sentences from its prompt."""
