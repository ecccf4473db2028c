"""Where evidence comes from: retrievers over the web, files and memories."""
