"""Parsers for one kind of document each, imported only in the processes of `isolated`.

Each takes the bytes of a file and returns its title, its parts (pages, cells or the whole), and a
sentence about what was not read because of a limit.
"""
