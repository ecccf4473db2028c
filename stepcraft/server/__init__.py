"""Extensions that a LangGraph server loads for these graphs, as named in langgraph.json."""
