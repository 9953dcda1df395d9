"""Zarr arrays and groups over N5 by the fast way: what ``n5zarr.open`` returns.

Knows how to open and create them (`opening`, `creating`), and how to read and write many blocks at
once: in C (`kernel`), and in Python (`pipeline`), which is the reference for the kernel. May import
`store` and everything below. Must not have rules of its own for blocks: what is not ordinary about
one goes to `container` and `codecs`.
"""
