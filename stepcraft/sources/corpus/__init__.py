"""Files and folders as a source of evidence."""
