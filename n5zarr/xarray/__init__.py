"""N5 for xarray: the engine, ``to_n5``, pyramids, BigDataViewer's views and points, ``ds.n5``.

Knows how datasets and their axes become variables and coordinates, and back. May import xarray,
`arrays` and everything below. Must not read or write blocks itself.
"""
