"""The procedural memory and the sources of evidence of a run, as LangChain retrievers."""
