"""RPG training: samples from records and runs, and a small model that plans and answers.

Implements RPG §3.3 and §3.4. `python -m stepcraft_papers.training` provides the commands.
"""
