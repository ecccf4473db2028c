"""What an evaluation found, as Markdown, CSV, LaTeX and one HTML page."""
