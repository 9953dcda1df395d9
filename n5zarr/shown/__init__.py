"""Arrays of Zarr shown as datasets of N5, for what reads N5; also of Zarr as Java writes it.

Knows how a store makes documents and blocks when they are read (`made_datasets`), what an array of
Zarr becomes (`zarr_datasets`), and what Java writes that zarr refuses (`java_zarr`). May import
`store` and what it imports. Must not know the formats of images.
"""
