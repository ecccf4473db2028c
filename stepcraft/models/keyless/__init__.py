"""The keyless model: a chat model that recombines sentences of its prompt, without a language model behind it."""
