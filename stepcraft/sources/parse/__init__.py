"""Parsers, each for one kind of document, imported only in the processes that `isolated` starts.

Each takes the bytes of a file and returns its title, its parts (pages, cells or the whole text),
and a note on anything that was not read because of a limit.
"""
