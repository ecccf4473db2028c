"""The reranker that scores the sentences of passages against a plan (RPG §3.2)."""
