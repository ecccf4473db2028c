"""The steps of RPG."""
