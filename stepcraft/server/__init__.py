"""What a LangGraph server for these graphs adds to langgraph-api, as named in langgraph.json."""
