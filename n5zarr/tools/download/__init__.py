"""``n5zarr download``: copy a part of a container to local files, byte for byte.

Knows which blocks a box touches, and how to continue an interrupted copy. May import all packages
above `tools`, and `tools.jobs`. Must not decode blocks.
"""
