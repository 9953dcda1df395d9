"""``n5zarr.serve``: serve a container over HTTP as N5, Zarr and OME-Zarr, with pages about it.

Knows requests and responses. May import all packages below `viewing`, and its other modules. Must
not parse N5 or Zarr: stores return the bytes of each key.
"""
