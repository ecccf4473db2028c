"""The nodes of RPG."""
