"""Asking a chat model: calls, retries, budgets, prompts and replies."""
