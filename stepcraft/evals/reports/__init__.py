"""The results of an evaluation as Markdown, CSV, LaTeX and a single HTML page."""
