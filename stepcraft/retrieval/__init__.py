"""What a run searches."""
