"""Read and write axes, units, scale and offset in attributes: one module per convention.

Knows how attributes of a dataset, and of the groups above it, become one model of its axes
(`model`), how these axes become attributes again, and in which order conventions are tried
(`find`), and what BigStitcher's XML and attributes say of interest points. May import numpy,
`format` and `errors`. Must not import zarr, nor do input or output.
"""
