"""The settings of runs, typed, with their prompts."""
