"""``n5zarr.serve``: a container over HTTP, as N5, as Zarr and as OME-Zarr, and a page about it.

Knows requests and responses. May import all packages above `viewing`, and its other modules. Must
not parse N5 or Zarr: stores give the bytes of each key.
"""
