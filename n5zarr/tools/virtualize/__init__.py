"""Write references to the blocks of a container, for Zarr readers that do not know N5.

Knows kerchunk's references, Icechunk's virtual chunks and VirtualiZarr's manifests. May import all
packages below `tools`, and `tools.jobs`. Must not change the container.
"""
