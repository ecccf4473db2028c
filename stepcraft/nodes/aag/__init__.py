"""The nodes of AAG."""
