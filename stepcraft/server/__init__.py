"""What a LangGraph server of these graphs adds to langgraph-api; langgraph.json names the parts."""
