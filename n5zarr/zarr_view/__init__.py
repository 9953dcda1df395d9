"""Translate between N5 and Zarr, as values: keys, documents, elements and chunks.

Knows how to present a dataset as Zarr (`dataset_view`), how to translate a Zarr document to N5
(`from_zarr`, `merge`, `record`), and how to convert blocks to chunks (`chunks`). May import
`conventions`, `codecs`, `format` and `errors`. Must not import zarr, nor do input or output.
"""
