"""A run's procedural memory and sources of evidence, as LangChain retrievers."""
