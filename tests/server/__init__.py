"""What a LangGraph server of these graphs does, asked over HTTP."""
