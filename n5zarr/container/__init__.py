"""The logic of one container, without input or output.

Knows what is a node, a child, a block and an axis, which changes Zarr makes when it writes, and
what a store object remembers. Every function that needs data from storage is a generator that
yields requests and is sent the answers. May import `zarr_view`, `conventions`, `codecs`, `format`,
the vocabulary of `storage`, and zarr for its data types and codecs (`data_types`, `codec_chain`).
Must not open, read or await anything itself.
"""
