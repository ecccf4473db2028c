"""Chat model access: calls, retries, budgets, prompts and replies."""
