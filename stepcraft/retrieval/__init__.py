"""What a run searches: a procedural memory, sources of evidence, or both, as LangChain retrievers."""
