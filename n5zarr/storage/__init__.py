"""Input and output: read and write the keys of a container, in any storage.

Knows the requests that logic makes (`requests`) and how to answer them, from local files
(`local`) or through any zarr store (`zarr_store`), with and without await, and what a location
means (`place`, `url`); the package `servers` opens URLs. May import zarr, `codecs.buffers`,
`codecs.shard`, `format`, `errors`, `rooms` and `_zarr`. Must not know what a dataset, a chunk or a
Zarr document is; `cache` knows the name of documents only, `files` those of blocks and the largest
size of one.
"""
