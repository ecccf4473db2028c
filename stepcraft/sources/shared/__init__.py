"""A corpus in Weaviate or Postgres, which all workers of a deployment search."""
