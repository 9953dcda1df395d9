"""Read and write N5 with xarray: the engine, ``to_n5``, pyramids, ``ds.n5``.

Knows how to convert datasets and axes to variables and coordinates, and back. Views that a document
names come from a room that `rooms` names. May import xarray, `arrays` and what they import. Must
not read or write blocks itself.
"""
