"""Building memories: whole documents are read, and the procedures that they teach are added to a memory."""
