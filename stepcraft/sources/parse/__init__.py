"""Parsers of one kind of document each, for `isolated`, whose process alone imports them.

Each takes the bytes of a file and returns its title, its parts (pages, cells or the whole), and
what was not read because of a limit, a sentence.
"""
