"""Read and write N5 with xarray: the engine, ``to_n5``, pyramids, BigDataViewer, ``ds.n5``.

Knows how to convert datasets and axes to variables and coordinates, and back. May import xarray,
`arrays` and everything below. Must not read or write blocks itself.
"""
