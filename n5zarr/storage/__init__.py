"""Input and output: where the keys of a container are kept.

Knows the vocabulary of requests (`requests`) and answers them, from local files (`local`) or
through any zarr store (`zarr_store`), with and without await; and what zarr's own stores lack for
URLs (`url`) and caching (`cache`). May import `codecs.buffers`, `format` and `errors`. Must not
know what a dataset, a chunk or a Zarr document is.
"""
