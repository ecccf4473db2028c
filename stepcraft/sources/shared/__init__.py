"""A corpus in Weaviate or Postgres, which is searched by all workers in a deployment."""
