"""The steps of AAG."""
