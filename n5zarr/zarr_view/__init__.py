"""N5 seen as Zarr, as values: keys, documents, elements and chunks, in both directions.

Knows how a dataset looks to Zarr (`dataset_view`), what a Zarr document becomes in N5 (`from_zarr`,
`merge`, `record`), and how the bytes of a block become those of a chunk (`chunks`). May import
`conventions`, `codecs`, `format` and `errors`. Must not import zarr, nor do input or output.
"""
