"""The logic of one container, without input or output.

Knows nodes, children, blocks and axes, the changes that Zarr makes when it writes, and the memory
of a store object. Every function that needs data from storage is a generator that yields requests
and receives the answers. May import `zarr_view`, `conventions`, `codecs`, `format`, `errors`,
`rooms`, the vocabulary of `storage`, and zarr and `_zarr` for data types, codecs, configuration and
the spelling of documents (`data_types`, `codec_chain`, `options`, `updates`). Must not open, read
or await anything itself.
"""
