"""The web as a source of evidence."""
