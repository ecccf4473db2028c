"""RPG's training: samples from records and from runs, and a small model that plans and answers.

RPG §3.3 and §3.4. `python -m stepcraft_papers.training` has the commands.
"""
