"""Read and write axes, units, scale and offset in attributes: one module per convention.

Knows how to convert attributes of a dataset, and of the groups above it, into one model of its axes
(`model`) and back, and in which order to try conventions (`find`). May import numpy, `format` and
`errors`. Must not import zarr, nor do input or output.
"""
